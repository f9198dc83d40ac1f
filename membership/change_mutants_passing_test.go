package membership

import (
	"slices"
	"testing"
)

// passingMutants are what keeps options with which etcd answers now and then, and ends again, from
// more than one member.
var passingMutants = map[string]rollMutant{
	"BelievesAnswers": {
		reason: "The next member is changed as soon as the last one answers",
		bound:  "Passing", safety: true, mutant: rollReplace("waitForUpdate", func(d Desired, o Observed) (Step, bool) {
			return waitForUpdate(d, each(o, func(i *Instance) { i.Pod.Unproved = i.Pod.Unproved && len(i.Pod.Untried) == 0 }))
		}), want: "S7: a member is changed while another one has yet to prove",
	},
	"WritesAnswers": {
		reason: "What is written down as good is what etcd has answered from, and has yet to stay up with",
		bound:  "OnePassing", safety: true, mutant: rollPlanner{phases: Phases, operator: rollCareless{believesAnswers: true}}, want: "no member has served",
	},
	"ForgetsCrashes": {
		reason: "An answer is taken for proof though etcd has ended since the change",
		bound:  "Passing", safety: true, mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsCrashes: true}}, want: "S7: a member is changed while another one has yet to prove",
	},
	"Impatient": {
		reason: "A member that has just not proved itself yet is rolled back",
		bound:  "Passing", safety: true, mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			young := func(i Instance) bool { return i.Pod.Unproved && len(i.Pod.Untried) > 0 && i.Serves() }
			if n := slices.IndexFunc(o.Instances, young); n >= 0 {
				return Step{Action: PutBack, Members: []string{o.Instances[n].Name}, Version: o.Instances[n].Volume.Version, Reason: ChangeFailed}, true
			}
			return rollback(d, o)
		}), want: "a member that runs what it was changed to",
	},
	"WaitsForMute": {
		reason: "A member whose etcd runs and never serves is waited for",
		bound:  "Mute", mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			return rollback(d, each(o, func(i *Instance) { i.Pod.Idle, i.Pod.IdleLong = false, false }))
		}), want: "L",
	},
	"WaitsForMuteVersion": {
		reason: "A member whose etcd runs and never serves is waited for if its version was changed as well",
		bound:  "OneMute", mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			return rollback(d, each(o, func(i *Instance) {
				if i.Volume.Changes() {
					i.Pod.Idle, i.Pod.IdleLong = false, false
				}
			}))
		}), want: "L",
	},
	"HurriesForOptions": {
		reason: "A member that may read its data with the version that the spec asks for is rolled back because of other options",
		bound:  "OneHangs", safety: true, mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			return rollback(d, each(o, func(i *Instance) { i.Pod.Parts = append(slices.Clone(i.Pod.Parts), "image") }))
		}), want: "a member is rolled back that may read its log",
	},
	"WaitsForUnstarted": {
		reason: "A member whose kubelet starts no etcd is waited for when the spec was reverted",
		bound:  "Unstarted", mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			return rollback(d, each(o, func(i *Instance) { i.Pod.NeverRan = i.Pod.NeverRan && !i.Pod.Unstarted }))
		}), want: "L",
	},
	"CountsAnswers": {
		reason: "The last member of a version is taken for one that the spec does not ask for, for all that answer run that version",
		bound:  "LastBroken", mutant: rollPlanner{phases: Phases, operator: rollCareless{countsAnswers: true}}, want: "L",
	},
	"CountsAnswersHanging": {
		reason: "So is one that reads its log",
		bound:  "LastHangs", safety: true, mutant: rollPlanner{phases: Phases, operator: rollCareless{countsAnswers: true}}, want: "a member is rolled back that may read its log",
	},
	"WaitsForReverted": {
		reason: "A member that runs on with a version that the spec does not ask for any more is waited for",
		bound:  "OneHangs", mutant: rollReplace("rollback", func(d Desired, o Observed) (Step, bool) {
			return rollback(d, each(o, func(i *Instance) {
				if !i.Pod.Outdated {
					i.Pod.Idle = false
				}
			}))
		}), want: "L",
	},
	"ForgetsLaterMinor": {
		reason: "It is not written down that a later minor has taken the data, though etcd says so",
		bound:  "OneMute", mutant: rollReplace("recordLaterMinor", func(Desired, Observed) (Step, bool) { return Step{}, false }), want: "L",
	},
	"ForgetsTrial": {
		reason: "A member whose Pod is deleted while it is on trial gets what it served with, and another one is tried",
		bound:  "Passing", safety: true, mutant: rollPlanner{operator: rollCareless{forgetsTrial: true}, phases: replaced(Phases, "recordMembers", func(d Desired, o Observed) (Step, bool) {
			return recordMembers(d, each(o, func(i *Instance) { i.Pod.Unproved = false }))
		})}, want: "what does not come up touches a second member",
	},
}

// TestChangePassingMutants shows that the exploration would find each of them.
func TestChangePassingMutants(t *testing.T) { testMutants(t, passingMutants) }
