package membership

import "testing"

// TestPlanUndecided: while it is not known whether small volumes can grow, what may be a successor
// stays, and gets no vote.
func TestPlanUndecided(t *testing.T) {
	waits := func(names, before string) Step {
		return Step{
			Action: Wait, Reason: Moving,
			Message: "waiting for the API server to tell whether the volumes of " + names + " can grow, before " + before,
		}
	}
	first3 := func(f func(*Instance)) change {
		return func(d *Desired, o *Observed) {
			for n := range 3 {
				on(n, f)(d, o)
			}
		}
	}
	testPlan(t, map[string]planCase{
		"VoterStays": {
			reason: "What votes on a new volume is not one too many",
			base:   formed3,
			args:   []change{first3(unsure), voter(3)},
			want:   waits("m-0, m-1, m-2", "one of m-0, m-1, m-2, m-3 is removed"),
		},
		"VoterStaysForOne": {
			reason: "One that is not known is enough",
			base:   formed3,
			args:   []change{on(0, unsure), voter(3)},
			want:   waits("m-0", "one of m-0, m-1, m-2, m-3 is removed"),
		},
		"DownGoes": {
			reason: "What does not serve is worth less, whatever its volume",
			base:   formed3,
			args:   []change{first3(unsure), on(2, forsaken), voter(3)},
			want: Step{
				Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: ScalingDown,
				Message: "removing m-2: spec.replicas is 3",
			},
		},
		"LearnerStays": {
			reason: "Nor does it get a vote that may not be needed",
			base:   formed3,
			args:   []change{first3(unsure), learner(3)},
			want:   waits("m-0, m-1, m-2", "the learner m-3 becomes a voter, or goes"),
		},
		"LearnerOfOneThatLeavesVotes": {
			reason: "It is known which member it replaces",
			base:   formed3,
			args:   []change{first3(unsure), on(1, fit), on(1, going), learner(3)},
			want:   Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"},
		},
		"OneThatLeavesGoes": {
			reason: "Its successor votes, whatever becomes of the others",
			base:   formed3,
			args:   []change{first3(unsure), on(1, fit), on(1, unfit), voter(3)},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: Moving,
				Message: "removing m-1 (its volume is of another class): spec.replicas is 3",
			},
		},
		"LearnerVotesWhereOneLacks": {
			reason: "Without it there are fewer than wanted",
			base:   formed3,
			args:   []change{size(5), first3(unsure), learner(3)},
			want:   Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"},
		},
		"LostLearnerGoes": {
			reason: "It never becomes a voter",
			base:   formed3,
			args:   []change{first3(unsure), learner(3), on(3, gone)},
			want: Step{
				Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: MemberLost,
				Message: "removing the learner m-3, whose data is gone; another one takes its place",
			},
		},
		"SpareStays": {
			reason: "It is asked in earnest whether the volumes can grow, which tells",
			base:   formed3,
			args:   []change{first3(unsure), spare(3)},
			want:   Step{Action: Expand, Members: []string{"m-0", "m-1", "m-2"}, Reason: Changing, Message: "growing the volumes of m-0, m-1, m-2"},
		},
		"UnfitSpareGoes": {
			reason: "It is no successor",
			base:   formed3,
			args:   []change{first3(unsure), spare(3), on(3, unfit), on(3, noPod)},
			want:   Step{Action: Discard, Members: []string{"m-3"}, Reason: Retiring, Message: "deleting the volumes of m-3, no members any more"},
		},
		"Image": {
			reason: "A change in place may pass a policy by",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, func(i *Instance) { i.Pod.Undecided = true })},
			want: Step{
				Action: Wait, Reason: Changing,
				Message: "waiting for the API server to tell whether a policy sees the image of m-1 when it is changed in place",
			},
		},
	})
}

// untold is a look in which it is not known of any member whether its volume can grow, while so
// many votes are there.
func untold(voters int) func(Observed) Observed {
	return func(o Observed) Observed {
		if len(o.voters()) != voters {
			return o
		}
		return each(o, func(i *Instance) {
			if o.Member(i.ID) != nil && i.Volume.Unfit != "" {
				unsure(i)
				i.Volume.Small = false // the model knows no sizes
			}
		})
	}
}

// TestMoveUndecided explores moves of which the API server tells nothing once the successor votes.
func TestMoveUndecided(t *testing.T) {
	bound := ringBound{sizes: []uint8{3}, first: 3, calls: 1, states: 300_000, still: true, safety: true, budget: ringBudget{kinds: 2}}
	t.Run("Rules", func(t *testing.T) {
		t.Parallel()
		x, bad := exploreRing(bound, ringPlanner{phases: Phases, see: untold(4)})
		if bad != nil {
			t.Fatal(bad)
		}
		t.Logf("%d states", len(x.states))
	})
	testRingMutants(t, map[string]ringMutant{
		"UndecidedIsFit": {
			reason: "That a dry run has shown nothing is taken for a volume that can grow: the successor goes",
			bound:  bound,
			mutant: func() ringPlanner {
				p := ringReplace("removeSurplusVoter", func(d Desired, o Observed) (Step, bool) {
					return removeSurplusVoter(d, each(o, func(i *Instance) { i.Volume.Undecided = false }))
				})
				p.see = untold(4)
				return p
			}(),
			want: "S17: a voter where",
		},
	})
}
