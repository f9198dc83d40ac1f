package membership

import "testing"

// Writes that the API server refuses, in the model of a cluster whose members come to run something
// else: a policy, a quota or a webhook, for as long as it is there. A pass ends at the write that
// is refused. Before a member is changed all that would be written for it is tried (dry run), but
// for the Pod that follows one that is deleted.

// rollWrite is a kind of write.
type rollWrite uint8

const (
	writeNone   rollWrite = iota
	writeClaim            // what is to run on a volume, or has served there
	writePod              // the image of a Pod, and its marks
	writeDelete           // of a Pod
	writeCreate           // of a Pod
)

var rollWrites = [...]string{"nothing", "writes on volumes", "changes of Pods", "deletions of Pods", "new Pods"}

// rehearsed reports whether all that is tried before a change is taken.
func (w *roll) rehearsed(f rollFlight, marks bool) bool {
	switch w.refused {
	case writeClaim:
		return !marks
	case writePod:
		return f.change != rollInPlace
	case writeDelete:
		return f.change == rollInPlace
	default:
		return true
	}
}

// refusals begin and end.
func (b *rollBound) refusals(s *rollState, visit rollVisit) {
	become := func(what string, refused rollWrite) {
		to := *s
		to.roll.refused = refused
		visit(what, to, "")
	}
	switch {
	case !b.refuses:
	case s.roll.refused != writeNone:
		become("the API server takes everything again", writeNone)
	default:
		for kind := writeClaim; kind <= writeCreate; kind++ {
			become("the API server refuses "+rollWrites[kind], kind)
		}
	}
}

// refusedPods tells of members without a Pod, as package reconcile does where the last one was
// refused.
func (g *rollGlance) refusedPods(o *Observed) {
	for n := range o.Instances {
		i := &o.Instances[n]
		s := &g.seats[i.Ordinal]
		if g.refused != writeCreate || s.image != rollNone || s.role < rollLearner || s.lost || s.good == rollUnknown {
			continue
		}
		i.Pod.Problem, i.Pod.NeverRan, i.Pod.Overdue = "has no Pod: refused", true, true
		made := g.made(s)
		if made != s.good {
			i.Pod.Untried = []string{"options"}
		}
		if !g.givenUp && made != g.template {
			i.Pod.Outdated, i.Pod.Change = true, ChangePod
		}
	}
}

// refusalMutants are what keeps refused writes from going round in a circle.
var refusalMutants = map[string]rollMutant{
	"AnnouncesFirst": {
		reason: "A change is announced before it is known whether it can be made, and taken back since it was not",
		bound:  "OneRefused", mutant: rollPlanner{phases: Phases, operator: rollCareless{announcesFirst: true}}, want: "L1: it goes round",
	},
	"AnnouncesFirstOfThree": {
		reason: "The same of three members",
		bound:  "Refused", mutant: rollPlanner{phases: Phases, operator: rollCareless{announcesFirst: true}}, want: "L1: it goes round",
	},
	"PutsBackFirst": {
		reason: "A Pod is deleted to be rolled back, and what its volume says cannot be: it is made as it was, again and again",
		bound:  "OneRefusedWrong", mutant: rollPlanner{phases: Phases, operator: rollCareless{putsBackFirst: true}}, want: "L1: it goes round",
	},
}

// TestChangeRefusalMutants shows that the exploration would find each of them.
func TestChangeRefusalMutants(t *testing.T) { testMutants(t, refusalMutants) }
