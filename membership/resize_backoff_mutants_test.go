package membership

import "testing"

// TestBackOffMutants is TestResizeMutants of members that wait for their kubelets, that are away
// for the node controller alone, or whose volumes came back empty.
func TestBackOffMutants(t *testing.T) {
	killed := ringBound{sizes: []uint8{3}, first: 3, backOff: true, crashes: true, still: true, calls: 1, states: 300_000}
	doomed := killed
	doomed.claims, doomed.safety, doomed.budget = true, true, ringBudget{losses: 1}
	behind := killed
	behind.safety, behind.budget = true, ringBudget{delays: 1}
	marked := ringBound{sizes: []uint8{3}, first: 3, marks: true, still: true, calls: 1, states: 300_000}
	wiped := ringBound{sizes: []uint8{3}, first: 3, patience: true, wipes: true, still: true, calls: 1, states: 300_000, budget: ringBudget{losses: 1}}
	of := func(name string, see func(*Instance)) ringPlanner {
		return ringReplace(name, func(d Desired, o Observed) (Step, bool) { return decideOf(name)(d, each(o, see)) })
	}
	testRingMutants(t, map[string]ringMutant{
		"WithoutRecreateBackedOffPod": {
			reason: "Kubelets wait, and the operator waits for them",
			bound:  killed, mutant: ringWithout("recreateBackedOffPod"), want: "L1: it stalls",
		},
		"RecreatedWithQuorum": {
			reason: "Nothing depends on it",
			bound:  killed,
			mutant: ringPlanner{phases: inserted(Phases, "quorumLost", func(d Desired, o Observed) (Step, bool) {
				o.Reach = min(o.Reach, ReachSome)
				return recreateBackedOffPod(d, each(o, func(i *Instance) { i.Endpoint = Endpoint{} }))
			})},
			want: "S18: a Pod is recreated because of its back-off, and there is a quorum",
		},
		"RecreatedUnseen": {
			reason: "The operator is blind, and takes that for the loss of the quorum",
			bound:  killed,
			mutant: of("recreateBackedOffPod", func(i *Instance) { i.Pod.Ready = false }), want: "S18: a Pod is recreated because of its back-off, and there is a quorum",
		},
		"RecreatedWithoutLimit": {
			reason: "What ends as soon as it starts is recreated without end",
			bound:  killed,
			mutant: of("recreateBackedOffPod", func(i *Instance) { i.Pod.Young = false }), want: "S18: a Pod is recreated again and again",
		},
		"RecreatedWithItsVolume": {
			reason: "The volume that is being deleted goes with its Pod",
			bound:  doomed,
			mutant: of("recreateBackedOffPod", func(i *Instance) { i.Volume.Terminating = false }), want: "S18: a Pod is recreated whose volume goes with it",
		},
		"RecreatedWhateverItDoesNow": {
			reason: "Its kubelet has started it since, and it serves",
			bound:  behind,
			mutant: ringPlanner{phases: Phases, operator: ringCareless{ignoresVersions: true}}, want: "S15: it stops a member that serves",
		},
		"NobodyIsTold": {
			reason: "Members serve, and the operator waits for them to answer",
			bound:  killed,
			mutant: of("quorumLost", func(i *Instance) { i.Pod.ReadyLong = false }), want: "L4",
		},
		"GivenUpByItsNodeAlone": {
			reason: "A member that serves is replaced because its kubelet is away",
			bound:  marked,
			mutant: ringPlanner{phases: Phases, see: func(o Observed) Observed {
				return each(o, func(i *Instance) {
					if i.Pod.Forsaken {
						i.Endpoint = Endpoint{}
					}
				})
			}},
			want: "S5: a serving voter is removed",
		},
		"EmptyForEver": {
			reason: "A member whose volume came back empty is waited for without end",
			bound:  wiped,
			mutant: ringPlanner{phases: Phases, see: func(o Observed) Observed { return each(o, func(i *Instance) { i.Pod.EmptyLong = false }) }},
			want:   "L",
		},
		"EmptyWithoutSuccessor": {
			reason: "It goes at once, though no other can be made",
			bound:  wiped,
			mutant: ringReplace("replaceFailedVoter", func(_ Desired, o Observed) (Step, bool) {
				for _, i := range o.voters() {
					if i.emptied() && i.Endpoint.Member() == 0 {
						return replaces(i), true
					}
				}
				return Step{}, false
			}),
			want: "S15: a member is taken away before its successor",
		},
	})
}
