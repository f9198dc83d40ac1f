package membership

import (
	"strings"
	"testing"
)

// TestResizeMutants shows that the exploration would find each rule of membership missing or
// weakened, and package reconcile careless: what is named here is what keeps data safe, with the
// invariant that falls without it.
func TestResizeMutants(t *testing.T) {
	resized := ringBound{sizes: []uint8{1, 3}, first: 3, calls: 1, states: 300_000, budget: ringBudget{specs: 2}}
	lossy := ringBound{sizes: []uint8{3}, first: 3, calls: 1, states: 300_000, still: true, claims: true, budget: ringBudget{losses: 1}}
	wiped := ringBound{sizes: []uint8{3}, first: 3, calls: 1, states: 300_000, still: true, patience: true, wipes: true, budget: ringBudget{losses: 1}}
	grown := ringBound{sizes: []uint8{3}, first: 2, calls: 1, states: 300_000, still: true, wipes: true, budget: ringBudget{specs: 1, losses: 1}}
	crashing := func(b ringBound) ringBound { b.crashes = true; return b }
	beyond := func(b ringBound) ringBound { b.beyond = true; return b }
	from := func(first uint8, b ringBound) ringBound { b.first = first; return b }
	to := func(b ringBound, sizes ...uint8) ringBound { b.sizes = sizes; return b }
	with := func(b ringBound, faults ringBudget) ringBound { b.budget = faults; return b }
	safely := func(b ringBound) ringBound { b.safety, b.wipes, b.still = true, true, true; return b }
	behind := ringBound{sizes: []uint8{1, 2}, first: 1, size: 2, calls: 1, states: 300_000, still: true, safety: true, budget: ringBudget{specs: 2, delays: 1}}
	calls := func(n int, b ringBound) ringBound { b.calls = n; return b }

	testRingMutants(t, map[string]ringMutant{
		"WithoutStartMembers": {
			reason: "A member whose Pod is gone does not come back",
			bound:  with(lossy, ringBudget{kills: 1}), mutant: ringWithout("startMembers"), want: "L",
		},
		"WithoutRecordMembers": {
			reason: "A learner that has started is never known to hold its data",
			bound:  resized, mutant: ringWithout("recordMembers"), want: "L",
		},
		"WithoutLostMajority": {
			reason: "A quorum is waited for that can never come",
			bound:  beyond(with(lossy, ringBudget{losses: 2, kills: 2})), mutant: ringWithout("lostMajority"), want: "L3",
		},
		"WithoutQuorumLost": {
			reason: "Members are made though it is not known which there are",
			bound:  resized, mutant: ringWithout("quorumLost"), want: "S11",
		},
		"WithoutUnmanagedMember": {
			reason: "A learner is added beside one that a person has added",
			bound:  with(resized, ringBudget{specs: 1, hands: 1}), mutant: ringWithout("unmanagedMember"), want: "it says that all is well",
		},
		"WithoutCleanUpRemovedMembers": {
			reason: "A removed member leaves Pod and volume behind",
			bound:  resized, mutant: ringWithout("cleanUpRemovedMembers"), want: "it says that all is well",
		},
		"RetiredWithoutList": {
			reason: "What cannot be seen to be a member is taken for none",
			bound:  resized,
			mutant: ringPlanner{phases: inserted(Phases, "quorumOnReplacedVolumes", cleanUpRemovedMembers)},
			want:   "S11",
		},
		"DiscardedTooEarly": {
			reason: "A former member's volume is deleted while it may still be needed",
			bound:  crashing(from(5, to(with(resized, ringBudget{specs: 1}), 3))), mutant: ringReplace("cleanUpRemovedMembers", func(d Desired, o Observed) (Step, bool) { return cleanUpRemovedMembers(d, allServe(o)) }), want: "S10",
		},
		"WithoutRemoveLostVoter": {
			reason: "A voter whose data is gone is waited for",
			bound:  with(lossy, ringBudget{losses: 1, kills: 1}), mutant: ringWithout("removeLostVoter"), want: "L3",
		},
		"LostVoterWhoeverServes": {
			reason: "A voter is removed whose data is gone, though the others are no quorum",
			bound:  crashing(with(lossy, ringBudget{losses: 1, kills: 1})),
			mutant: ringReplace("removeLostVoter", func(d Desired, o Observed) (Step, bool) {
				return removeLostVoter(d, each(allServe(o), func(i *Instance) {
					if o.Member(i.ID) != nil && o.lost(*i) {
						i.Endpoint = Endpoint{}
					}
				}))
			}),
			want: "S5: without the removed voter",
		},
		"AddedBeforeRemoved": {
			reason: "The successor of a lost voter comes first: etcd refuses it",
			bound:  with(lossy, ringBudget{losses: 1, kills: 1}), mutant: addedFirst(), want: "L",
		},
		"WithoutRemoveLearner": {
			reason: "A learner whose volume is gone is waited for",
			bound:  from(2, with(lossy, ringBudget{specs: 1, losses: 1})), mutant: ringWithout("removeLearner"), want: "L",
		},
		"WithoutStartLearner": {
			reason: "A learner gets no Pod",
			bound:  resized, mutant: ringWithout("startLearner"), want: "L3",
		},
		"WithoutPromoteLearner": {
			reason: "A learner never gets a vote",
			bound:  resized, mutant: ringWithout("promoteLearner"), want: "L3",
		},
		"PromotedWhoeverServes": {
			reason: "If the new voter fails, there is no quorum",
			bound:  crashing(to(with(resized, ringBudget{specs: 1}), 3, 5)),
			mutant: ringReplace("promoteLearner", promotedIf(func(_ Observed, i Instance) bool {
				return i.Volume.Recorded() && !i.Pod.Unfenced && !i.Pod.Terminating
			})),
			want: "S6",
		},
		"PromotedDown": {
			reason: "etcd remembers that a learner had caught up",
			bound:  crashing(grown),
			mutant: ringReplace("promoteLearner", func(_ Desired, o Observed) (Step, bool) {
				for _, i := range o.learners() {
					if i.Volume.Recorded() && !i.Pod.Unfenced && o.mayGrow() {
						return Step{Action: Promote, Members: []string{i.Name}, ID: i.ID, Reason: Joining, Message: "any"}, true
					}
				}
				return Step{}, false
			}),
			want: "S6",
		},
		"PromotedUnfenced": {
			reason: "A voter is still told that it may start empty",
			bound:  grown,
			mutant: ringReplace("promoteLearner", promotedIf(func(o Observed, i Instance) bool {
				return i.Volume.Recorded() && !i.Pod.Terminating && o.mayGrow()
			})),
			want: "S2",
		},
		"PromotedUnrecorded": {
			reason: "A voter of which it was not written down that it has data is never told to find that",
			bound:  safely(grown),
			mutant: func() ringPlanner {
				p := ringReplace("promoteLearner", promotedIf(func(o Observed, i Instance) bool { return !i.Pod.Terminating && o.mayGrow() }))
				p.phases = dropped(p.phases, "recordMembers")
				return p
			}(),
			want: "S2",
		},
		"WithoutWaitForLearner": {
			reason: "A cluster with a learner is called healthy",
			bound:  resized, mutant: ringWithout("waitForLearner"), want: "it says that all is well",
		},
		"WithoutPrepareVolumes": {
			reason: "The volumes are not made of members to come",
			bound:  resized, mutant: ringWithout("prepareVolumes"), want: "it says that all is well",
		},
		"WithoutReplaceFailedVoter": {
			reason: "A member that never comes back is never replaced",
			bound:  wiped, mutant: ringWithout("replaceFailedVoter"), want: "L",
		},
		"FailedVoterWithoutSpare": {
			reason: "A member is taken away though no other can be made",
			bound:  wiped,
			mutant: ringReplace("replaceFailedVoter", func(d Desired, o Observed) (Step, bool) { d.Ephemeral = true; return replaceFailedVoter(d, o) }),
			want:   "S15: a member is taken away",
		},
		"WithoutRemoveSurplusVoter": {
			reason: "Too many members are called healthy",
			bound:  resized, mutant: ringWithout("removeSurplusVoter"), want: "it says that all is well",
		},
		"ShrunkWhoeverServes": {
			reason: "A serving voter is removed, and one that does not serve stays",
			bound:  crashing(resized), mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) { return removeSurplusVoter(d, allServe(o)) }), want: "S5",
		},
		"ShrunkWithItsLeader": {
			reason: "The cluster is without a leader for an election",
			bound:  func() ringBound { b := resized; b.leads = true; return b }(),
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) { return removeSurplusVoter(d, each(o, leadless)) }),
			want:   "S15: the leader",
		},
		"WithoutAddLearner": {
			reason: "Etcd never hears of the members to come",
			bound:  resized, mutant: ringWithout("addLearner"), want: "it says that all is well",
		},
		"AddedTwice": {
			reason: "One learner more than etcd allows",
			bound:  safely(resized),
			mutant: ringReplace("removeLearner", func(d Desired, o Observed) (Step, bool) {
				if spares := o.spares(); len(o.learners()) > 0 && len(spares) > 0 && spares[0].ready() {
					return Step{Action: AddLearner, Members: []string{spares[0].Name}, Reason: ScalingUp, Message: "another one"}, true
				}
				return removeLearner(d, o)
			}),
			want: "S4",
		},
		"AddedUnprepared": {
			reason: "A learner is added for which nothing may ever be made",
			bound:  safely(resized),
			mutant: ringReplace("prepareVolumes", func(d Desired, o Observed) (Step, bool) {
				if len(o.voters()) < d.Size && len(o.learners()) == 0 && len(o.Fresh) > 0 {
					return Step{Action: AddLearner, Members: o.Fresh[:1], Reason: ScalingUp, Message: "at once"}, true
				}
				return Step{}, false
			}),
			want: "S4",
		},
		"WithoutWaitForVolumes": {
			reason: "A cluster that waits for volumes is called healthy",
			bound:  resized, mutant: ringWithout("waitForVolumes"), want: "it says that all is well",
		},
		"WithoutMemberDown": {
			reason: "A cluster with a member that does not serve is called healthy",
			bound:  crashing(resized), mutant: ringWithout("memberDown"), want: "it says that all is well",
		},
		"GivenVolumesCountAsSpare": {
			reason: "What a learner may have written becomes another member's beginning",
			bound:  safely(from(1, with(resized, ringBudget{specs: 3}))),
			mutant: ringPlanner{phases: Phases, see: func(o Observed) Observed {
				return each(o, func(i *Instance) { i.Volume.Spare = i.Volume.Spare || i.Volume.Joins != 0 })
			}},
			want: "S4",
		},

		"StartsUnfenced": {
			reason: "A voter whose disk was wiped starts empty",
			bound:  with(wiped, ringBudget{losses: 1, kills: 1}), mutant: ringPlanner{phases: Phases, operator: ringCareless{startsUnfenced: true}}, want: "S2",
		},
		"NeverFences": {
			reason: "A learner that may start empty never becomes a voter",
			bound:  resized, mutant: ringPlanner{phases: Phases, operator: ringCareless{neverFences: true}}, want: "L3",
		},
		"IgnoresVersions": {
			reason: "An operator that is behind stops the member that the Pod of a member to come has become",
			bound:  behind, mutant: ringPlanner{phases: Phases, operator: ringCareless{ignoresVersions: true}}, want: "S15",
		},
		"ReusesNames": {
			reason: "A learner that goes before it has started leaves its name to the next, to which an operator that is behind gives what was its",
			bound:  behind, mutant: ringPlanner{phases: Phases, operator: ringCareless{reusesNames: true}}, want: "S9",
		},
		"JoinsUnchecked": {
			reason: "An operator that is behind tells a voter that it may start empty",
			bound:  with(grown, ringBudget{specs: 1, losses: 1, delays: 1}), mutant: ringPlanner{phases: Phases, operator: ringCareless{joinsUnchecked: true}}, want: "S2",
		},
		"MakesUnchecked": {
			reason: "An operator that is behind makes the Pod of a member to come for a voter whose own is away",
			bound:  with(from(2, to(grown, 2, 3)), ringBudget{specs: 1, kills: 1, delays: 1}), mutant: ringPlanner{phases: Phases, operator: ringCareless{makesUnchecked: true}}, want: "L",
		},
		"WithoutIntent": {
			reason: "Two changes under way, each of them right when it was decided",
			bound:  safely(calls(2, crashing(with(resized, ringBudget{specs: 2, losses: 1})))), mutant: ringPlanner{phases: Phases}, want: "S15",
		},
	})
}

// ringMutant is a planner or an operator that is wrong in one way.
type ringMutant struct {
	reason string
	bound  ringBound
	mutant ringPlanner
	want   string // how the violation begins
}

func testRingMutants(t *testing.T, cases map[string]ringMutant) {
	t.Helper()
	found := counted(t, "mutants")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, bad := exploreRing(tc.bound, tc.mutant)
			if bad == nil {
				t.Fatalf("%s: not found in %d states", tc.reason, len(x.states))
			}
			if !strings.HasPrefix(bad.violation, tc.want) {
				t.Errorf("%s: want a violation of %s, got %s", tc.reason, tc.want, bad)
			}
			found.Add(1)
			t.Logf("%.100s: found after %d states, in %d steps", bad.violation, len(x.states), len(bad.lines))
		})
	}
}

func ringWithout(name string) ringPlanner { return ringPlanner{phases: dropped(Phases, name)} }

func ringReplace(name string, by decide) ringPlanner {
	return ringPlanner{phases: replaced(Phases, name, by)}
}

// allServe is the same where every member serves.
func allServe(o Observed) Observed {
	var alarms []Alarm
	for _, i := range o.Instances {
		alarms = append(alarms, i.Endpoint.Alarms...)
	}
	first := true
	return each(o, func(i *Instance) {
		if o.Member(i.ID) == nil {
			return
		}
		i.Endpoint = Endpoint{ClusterID: o.ClusterID, MemberID: i.ID, Leader: 0xff, Version: Version{3, 7, 1}}
		if i.Hash == (Hash{}) {
			i.Hash = Hash{Revision: 1}
		}
		if first { // that is enough to tell of an alarm
			i.Endpoint.Alarms, first = alarms, false
		}
	})
}

// promotedIf is promoted with other conditions for a learner that serves.
func promotedIf(ok func(Observed, Instance) bool) decide {
	return func(_ Desired, o Observed) (Step, bool) {
		for _, i := range o.learners() {
			if i.Serves() && ok(o, i) {
				return Step{Action: Promote, Members: []string{i.Name}, ID: i.ID, Reason: Joining, Message: "making the learner " + i.Name + " a voter"}, true
			}
		}
		return Step{}, false
	}
}

// leadless hides the leader.
func leadless(i *Instance) {
	if i.Endpoint.Leader != 0 {
		i.Endpoint.Leader = 0xff
	}
}

// addedFirst makes the successors of lost voters before these go.
func addedFirst() ringPlanner {
	more := func(r decide) decide {
		return func(d Desired, o Observed) (Step, bool) {
			for _, i := range o.voters() {
				if o.lost(i) {
					d.Size++
				}
			}
			return r(d, o)
		}
	}
	phases := Phases
	for _, name := range []string{"cleanUpRemovedMembers", "removeLearner", "prepareVolumes", "waitForVolumes"} {
		phases = replaced(phases, name, more(decideOf(name)))
	}
	phases = replaced(phases, "addLearner", more(func(d Desired, o Observed) (Step, bool) {
		if spares := o.spares(); len(o.voters()) < d.Size && len(o.learners()) == 0 && len(spares) > 0 && spares[0].ready() {
			return Step{Action: AddLearner, Members: []string{spares[0].Name}, Reason: ScalingUp, Message: "adding " + spares[0].Name}, true
		}
		return addLearner(d, o)
	}))
	phases = replaced(phases, "removeLostVoter", func(d Desired, o Observed) (Step, bool) {
		if len(o.voters()) <= d.Size {
			return Step{}, false
		}
		return removeLostVoter(d, o)
	})
	return ringPlanner{phases: phases}
}
