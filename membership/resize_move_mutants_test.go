package membership

import "testing"

// TestMoveMutants shows the same of what replaces the members whose volumes are not what the spec
// asks for.
func TestMoveMutants(t *testing.T) {
	moved := ringBound{sizes: []uint8{3}, first: 3, calls: 1, states: 300_000, still: true, budget: ringBudget{kinds: 2}}
	crashing := func(b ringBound) ringBound { b.crashes = true; return b }
	sized := func(n uint8, b ringBound) ringBound { b.first, b.sizes = n, []uint8{n}; return b }
	testRingMutants(t, map[string]ringMutant{
		"NeverMoves": {
			reason: "A volume that is not what the spec asks for stays",
			bound:  moved, mutant: sees(func(i *Instance) { i.Volume.Unfit = "" }), want: "it says that all is well",
		},
		"MovesWhoeverServes": {
			reason: "A move is begun while a voter does not serve",
			bound:  crashing(moved), mutant: ringReplace("prepareVolumes", func(d Desired, o Observed) (Step, bool) { return prepareVolumes(d, allServe(o)) }), want: "S17: a move is begun",
		},
		"SuccessorWhoeverServes": {
			reason: "A successor comes though a voter does not serve",
			bound:  crashing(sized(5, moved)),
			mutant: ringReplace("addLearner", func(d Desired, o Observed) (Step, bool) { return addLearner(d, allServe(o)) }),
			want:   "S17: a successor comes",
		},
		"MovesAmidstShrinking": {
			reason: "A learner that is not needed any more gets its vote, for a member is to move",
			bound:  ringBound{sizes: []uint8{1, 3}, first: 1, calls: 1, states: 300_000, still: true, budget: ringBudget{kinds: 1, specs: 2}},
			mutant: ringReplace("removeLearner", func(d Desired, o Observed) (Step, bool) {
				d.Size = len(o.voters()) + 1
				return removeLearner(d, o)
			}),
			want: "S17: one more member",
		},
		"SuccessorGivenUp": {
			reason: "A successor is taken for one member too many",
			bound:  moved,
			mutant: ringReplace("removeLearner", func(d Desired, o Observed) (Step, bool) {
				return removeLearner(d, each(o, func(i *Instance) {
					if m := o.Member(i.ID); m != nil && !m.Learner {
						i.Volume.Unfit = ""
					}
				}))
			}),
			want: "L",
		},
		"UnfitLearnerVotes": {
			reason: "The spec has changed again, and the successor comes to where it is not wanted",
			bound:  moved,
			mutant: ringReplace("removeLearner", func(d Desired, o Observed) (Step, bool) {
				return removeLearner(d, each(o, func(i *Instance) {
					if m := o.Member(i.ID); m != nil && m.Learner {
						i.Volume.Unfit = ""
					}
				}))
			}),
			want: "S17: a member comes",
		},
		"UnfitSparesCount": {
			reason: "What was prepared for an earlier spec becomes a member",
			bound:  moved,
			mutant: sees(func(i *Instance) {
				if i.Volume.Spare {
					i.Volume.Unfit = ""
				}
			}),
			want: "S17: a member comes",
		},
		"UnfitSparesStay": {
			reason: "A second volume is made beside one that is of no use",
			bound:  moved,
			mutant: ringReplace("cleanUpRemovedMembers", func(d Desired, o Observed) (Step, bool) {
				return cleanUpRemovedMembers(d, each(o, func(i *Instance) {
					if i.Volume.Spare {
						i.Volume.Unfit = ""
					}
				}))
			}),
			want: "S17: a second volume",
		},
		"NewestGoes": {
			reason: "The successor goes, and the member it came for stays",
			bound:  func() ringBound { b := moved; b.safety = true; return b }(),
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
				return removeSurplusVoter(d, each(o, func(i *Instance) { i.Volume.Unfit = "" }))
			}),
			want: "S17: a voter where",
		},
		"LeaderFirst": {
			reason: "The leadership moves more often than it has to",
			bound:  func() ringBound { b := sized(2, moved); b.leads, b.safety = true, true; return b }(),
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
				step, ok := removeSurplusVoter(d, o)
				for _, i := range o.voters() {
					if ok && step.Reason == Moving && i.Leads() && i.Volume.Unfit != "" {
						heir, _ := o.Heir(i.Name)
						step.Action, step.Members, step.ID = MoveLeader, []string{heir.Name}, heir.ID
					}
				}
				return step, ok
			}),
			want: "S17: the leader",
		},
	})
}

// sees is the planner that takes the members for what change makes of them.
func sees(change func(*Instance)) ringPlanner {
	return ringPlanner{phases: Phases, see: func(o Observed) Observed { return each(o, change) }}
}
