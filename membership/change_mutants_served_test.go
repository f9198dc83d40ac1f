package membership

import "testing"

// servedMutants are what keeps a wrong spec from more than one member, and that one from staying
// down.
var servedMutants = map[string]rollMutant{
	"UntriedOff": {
		reason: "A member stays down with options with which etcd does not start",
		bound:  "Wrong", mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			return rollback(d, each(o, func(i *Instance) { i.Pod.Untried = nil }))
		}), want: "L",
	},
	"IgnoresServed": {
		reason: "A member that was rolled back, or whose Pod a user deletes, is started with options that no member has served with",
		bound:  "Wrong", safety: true, mutant: rollPlanner{phases: Phases, operator: rollCareless{ignoresServed: true}}, want: "what does not come up touches a second member",
	},
	"ServesEarly": {
		reason: "What was written down as good is what has not been tried",
		bound:  "OneWrong", mutant: rollPlanner{phases: Phases, operator: rollCareless{servesEarly: true}}, want: "no member has served",
	},
	"ServesAnyhow": {
		reason: "The spec has changed since the Pod was made that serves",
		bound:  "OneWrong", mutant: rollPlanner{phases: Phases, operator: rollCareless{servesAnyhow: true}}, want: "no member has served",
	},
	"TriesSpec": {
		reason: "etcd has run in a later version, and then does not start with other options: it is rolled back to the version before",
		bound:  "OneWrongSlow", mutant: rollPlanner{phases: Phases, operator: rollCareless{triesSpec: true}}, want: "S13",
	},
	"ForgetsMended": {
		reason: "A member that does not come up any more with what it has served with never gets what the spec was mended to",
		bound:  "OneWrong", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsMended: true}}, want: "L1: it goes round",
	},
	"TriesAgain": {
		reason: "A member that does not come up with what it was rolled back to goes from the one to the other for ever",
		bound:  "OneWrong", mutant: rollPlanner{phases: Phases, operator: rollCareless{triesAgain: true}}, want: "L1: it goes round",
	},
}

// TestChangeServedMutants shows that the exploration would find each of them.
func TestChangeServedMutants(t *testing.T) { testMutants(t, servedMutants) }

// TestChangeSpaceMutants shows the same of those of a database that is full.
func TestChangeSpaceMutants(t *testing.T) { testMutants(t, spaceMutants) }
