package membership

import (
	"slices"
	"testing"
)

// TestDoomedMutants is TestResizeMutants of members whose claims are deleted while their Pods live,
// and of members that were removed.
func TestDoomedMutants(t *testing.T) {
	all := ringBound{sizes: []uint8{3}, first: 3, all: true, still: true, calls: 1, states: 300_000, budget: ringBudget{losses: 1, kills: 1}}
	with := func(b ringBound, change func(*ringBound)) ringBound { change(&b); return b }
	moved := ringBound{sizes: []uint8{2}, first: 2, claims: true, leads: true, still: true, safety: true, calls: 1, states: 300_000, budget: ringBudget{losses: 1, kinds: 1}}
	testRingMutants(t, map[string]ringMutant{
		"DoomedIsLost": {
			reason: "A member is removed that serves, before anything takes its place",
			bound:  all, mutant: ringReplace("removeLostVoter", unkeptVoter), want: "S5: a serving voter is removed, and not",
		},
		"ClaimGoneIsLost": {
			reason: "So is one whose claim is gone from under its Pod",
			bound:  with(all, func(b *ringBound) { b.all, b.strips = false, true }), mutant: ringReplace("removeLostVoter", unkeptVoter), want: "S5: a serving voter is removed, and not",
		},
		"DoomedStays": {
			reason: "A member is content with a volume that goes with its Pod",
			bound:  all,
			mutant: sees(func(i *Instance) {
				if i.Endpoint.Answered() {
					i.Volume.Terminating = false
				}
			}),
			want: "it says that all is well",
		},
		"DoomedBeforeSuccessor": {
			reason: "One of them goes first, and fewer than wanted are left",
			bound:  all,
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
				if _, moves := moving(d, o); moves {
					d.Size--
				}
				return removeSurplusVoter(d, o)
			}),
			want: "S17: a serving voter goes",
		},
		"DoomedWhoeverServes": {
			reason: "A move is begun while a voter does not serve",
			bound:  with(all, func(b *ringBound) { b.crashes = true }),
			mutant: ringReplace("prepareVolumes", func(d Desired, o Observed) (Step, bool) { return prepareVolumes(d, allServe(o)) }), want: "S17: a move is begun",
		},
		"NeverRanIsDoomed": {
			reason: "A Pod that no kubelet starts is waited for",
			bound:  ringBound{sizes: []uint8{3}, first: 3, claims: true, still: true, calls: 1, states: 300_000, budget: ringBudget{losses: 1, kills: 1}},
			mutant: sees(func(i *Instance) { i.Pod.NeverRan = i.Pod.NeverRan && i.Volume.Spare }), want: "L",
		},
		"UnfitBeforeDoomed": {
			reason: "A member goes whose volume stays, before one whose volume may be gone at any time",
			bound:  moved,
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
				return removeSurplusVoter(d, each(o, func(i *Instance) {
					if i.Volume.Unfit != "" && !i.Volume.Terminating {
						i.Pod.Forsaken, i.Endpoint = true, Endpoint{}
					}
				}))
			}),
			want: "S17: a voter where",
		},
		"DoomedLeaderFirst": {
			reason: "The leadership moves more often than it has to",
			bound:  with(all, func(b *ringBound) { b.leads, b.safety = true, true }),
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
				step, ok := removeSurplusVoter(d, o)
				for _, i := range o.voters() {
					if ok && step.Reason == Moving && i.Leads() && o.Doomed(i) {
						heir, _ := o.Heir(i.Name)
						step.Action, step.Members, step.ID = MoveLeader, []string{heir.Name}, heir.ID
					}
				}
				return step, ok
			}),
			want: "S17: the leader",
		},
		"DoomedWithItsLeader": {
			reason: "The cluster is without a leader for an election",
			bound:  with(all, func(b *ringBound) { b.leads, b.safety = true, true }),
			mutant: ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) { return removeSurplusVoter(d, each(o, leadless)) }),
			want:   "S15: the leader",
		},
		"LostThrowsAway": {
			reason: "What was made for the successor goes, because the member is lost meanwhile and is yet to be removed",
			bound:  all,
			mutant: ringReplace("cleanUpRemovedMembers", func(d Desired, o Observed) (Step, bool) {
				return cleanUpRemovedMembers(d, each(o, func(i *Instance) { // its volume is there, and not being deleted
					if m := o.Member(i.ID); m != nil && !m.Learner && o.lost(*i) {
						i.Volume.UID, i.Volume.Terminating, i.Volume.ClusterID, i.Volume.MemberID = "there", false, o.ClusterID, i.ID
					}
				}))
			}),
			want: "S17: what was made",
		},
		"SpendsGoing": {
			reason: "A learner stays for ever, for its volume is being deleted and cannot be given to it",
			bound:  with(all, func(b *ringBound) { b.first, b.size = 2, 3 }), mutant: ringPlanner{phases: Phases, operator: ringCareless{spendsGoing: true}}, want: "L",
		},
		"StartsRemoved": {
			reason: "The only member is stopping and is not asked, so that a removed one that has its volume still is started",
			bound:  ringBound{sizes: []uint8{1}, first: 2, still: true, calls: 1, states: 300_000, budget: ringBudget{specs: 1, kills: 1}},
			mutant: ringReplace("startMembers", func(d Desired, o Observed) (Step, bool) { o.Remembered = false; return startMembers(d, o) }), want: "S9: a removed member",
		},
	})
}

// unkeptVoter removes voters as lost whose data goes with their Pods.
func unkeptVoter(_ Desired, o Observed) (Step, bool) {
	for _, i := range slices.Backward(o.voters()) {
		if (o.lost(i) || o.Doomed(i)) && o.mayRemove(i) {
			return Step{Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: MemberLost, Message: "removing " + i.Name}, true
		}
	}
	return Step{}, false
}
