package membership

import "testing"

// TestLateMutants is TestResizeMutants of members that take part before they serve clients.
func TestLateMutants(t *testing.T) {
	late := func(sizes []uint8, first uint8, budget ringBudget) ringBound {
		return ringBound{sizes: sizes, first: first, late: true, still: true, calls: 1, states: 300_000, budget: budget}
	}
	losing := late([]uint8{3}, 2, ringBudget{specs: 1, losses: 1})
	losing.wipes = true
	safely := losing
	safely.safety = true
	crashing := late([]uint8{3}, 2, ringBudget{specs: 1})
	crashing.crashes = true
	testRingMutants(t, map[string]ringMutant{
		"SecondPromoted": {
			reason: "Of two voters one does not serve, and both are needed",
			bound:  late([]uint8{2}, 1, ringBudget{specs: 1}),
			mutant: ringReplace("promoteLearner", latePromotedIf(func(o Observed, i Instance) bool {
				return i.Volume.Recorded() && !i.Pod.Unfenced && !i.Pod.Terminating && o.mayGrow()
			})),
			want: "S6: the second of two",
		},
		"PromotedUnfenced": {
			reason: "A voter is still told that it may start empty",
			bound:  losing,
			mutant: ringReplace("promoteLearner", latePromotedIf(func(o Observed, i Instance) bool {
				return i.Volume.Recorded() && !i.Pod.Terminating && len(o.voters()) > 1 && o.mayGrow()
			})),
			want: "S2",
		},
		"PromotedUnrecorded": {
			reason: "A voter of which it was not written down that it has data is never told to find that",
			bound:  safely,
			mutant: func() ringPlanner {
				p := ringReplace("promoteLearner", latePromotedIf(func(o Observed, i Instance) bool {
					return !i.Pod.Terminating && len(o.voters()) > 1 && o.mayGrow()
				}))
				p.phases = dropped(p.phases, "recordMembers")
				return p
			}(),
			want: "S2",
		},
		"PromotedWhoSaysNothing": {
			reason: "A learner that has stopped since looks like one that does not serve yet",
			bound:  crashing,
			mutant: ringReplace("promoteLearner", func(d Desired, o Observed) (Step, bool) {
				return promoteLearner(d, each(o, func(i *Instance) {
					if m := o.Member(i.ID); m != nil && m.Learner && i.Pod.Exists() && i.Endpoint.Member() == 0 {
						i.Endpoint.Publishing = i.ID
					}
				}))
			}),
			want: "S6: a learner that does not take part",
		},
		"PromotedBeforeItHasData": {
			reason: "A learner that has yet to get its data looks like one that has it",
			bound:  late([]uint8{3}, 2, ringBudget{specs: 1}),
			mutant: ringReplace("promoteLearner", func(d Desired, o Observed) (Step, bool) {
				return promoteLearner(d, each(o, func(i *Instance) { i.Endpoint.Publishing = i.Endpoint.Member() }))
			}),
			want: "S6: a learner without data",
		},
		"CountsAsServing": {
			reason: "The next one is promoted, and with it it is not known whether there would be a quorum",
			bound:  late([]uint8{4}, 2, ringBudget{specs: 1}),
			mutant: ringPlanner{phases: Phases, see: func(o Observed) Observed {
				return each(o, func(i *Instance) {
					if i.Publishes() {
						i.Endpoint.MemberID, i.Endpoint.Leader = i.ID, 0xff
						i.Hash = Hash{Revision: 1} // one that serves would have been compared
					}
				})
			}},
			want: "S6: if the promoted learner fails",
		},
		"ShrunkByItself": {
			reason: "A member that came in the place of another goes again, as one that does not serve",
			bound:  late([]uint8{3}, 3, ringBudget{kinds: 1}),
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
				return removeSurplusVoter(d, each(o, func(i *Instance) { i.Endpoint.Publishing = 0 }))
			}),
			want: "S17",
		},
	})
}

// latePromotedIf is promoted with other conditions for a learner that takes part.
func latePromotedIf(ok func(Observed, Instance) bool) decide {
	return func(_ Desired, o Observed) (Step, bool) {
		for _, i := range o.learners() {
			if (i.Serves() || i.Publishes()) && ok(o, i) {
				return Step{Action: Promote, Members: []string{i.Name}, ID: i.ID, Reason: Joining, Message: "making the learner " + i.Name + " a voter"}, true
			}
		}
		return Step{}, false
	}
}
