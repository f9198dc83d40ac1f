package membership

import "testing"

// TestPlanReplaced: which member goes, whatever the size, and what is left of former ones.
func TestPlanReplaced(t *testing.T) {
	lost := func(name string, id ID) Step {
		return Step{
			Action: Remove, Members: []string{name}, ID: id, Reason: MemberLost,
			Message: "removing " + name + ", whose data is gone; a new member takes its place",
		}
	}
	failing := func(name string, id ID) Step {
		return Step{
			Action: Remove, Members: []string{name}, ID: id, Reason: MemberFailed,
			Message: "removing " + name + ", which is on a node that does not answer; a new member takes its place",
		}
	}
	testPlan(t, map[string]planCase{
		// cleanUpRemovedMembers
		"Stop": {
			reason: "The Pod of a member that was removed goes, and a volume that is still used is not deleted yet",
			base:   formed3,
			args:   []change{removed(2)},
			want:   Step{Action: Stop, Members: []string{"m-2"}, Reason: Retiring, Message: "stopping m-2, no members any more"},
		},
		"StopWithoutWaiting": {
			reason: "A Pod that takes nothing but its own restarts goes though another member is down",
			base:   formed5,
			args:   []change{on(0, silent), removed(2), removed(3), on(3, stopping)},
			want:   Step{Action: Stop, Members: []string{"m-2"}, Reason: Retiring, Message: "stopping m-2, no members any more"},
		},
		"Discard": {
			reason: "The data is not needed of a member that was removed where all others serve",
			base:   formed3,
			args:   []change{size(2), removed(2), on(2, stopping)},
			want:   Step{Action: Discard, Members: []string{"m-2"}, Reason: Retiring, Message: "deleting the volumes of m-2, no members any more"},
		},
		"DiscardRetained": {
			reason: "The spec wants to keep it: it is only marked",
			base:   formed3,
			args:   []change{size(2), removed(2), on(2, noPod), retain},
			want: Step{
				Action: Discard, Members: []string{"m-2"}, Reason: Retiring,
				Message: "retiring the volumes of m-2, no members any more; they are kept",
			},
		},
		"DiscardNotTwice": {
			reason: "What is marked, or going, needs nothing more",
			base:   formed5,
			args: []change{
				size(3), removed(3), on(3, noPod), on(3, func(i *Instance) { i.Volume.Retired = true }), removed(4), on(4, noPod), on(4, going),
			},
			want: Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"DiscardNotWhileOneIsDown": {
			reason: "As long as not all voters serve, no data is deleted; that does not keep a successor from being made",
			base:   formed3,
			args:   []change{on(1, silent), removed(2), on(2, noPod)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},
		"StopSpare": {
			reason: "A spare that is not needed any more goes as well",
			base:   formed3,
			args:   []change{spare(3)},
			want:   Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},
		"StopWorseSpare": {
			reason: "Of two spares for one member the one that is ready stays",
			base:   formed3,
			args:   []change{size(4), spare(3), on(3, preparingStill), spare(4)},
			want:   Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},
		"StopSpareThatIsGoing": {
			reason: "Once another one was made in its place",
			base:   formed3,
			args:   []change{size(4), spare(3), on(3, going), spare(4), on(4, preparingStill)},
			want:   Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},
		"DiscardSpare": {
			reason: "Nothing was ever on it: it goes though a member is down, and is not kept",
			base:   formed3,
			args:   []change{spare(3), on(3, noPod), on(1, silent)},
			want:   Step{Action: Discard, Members: []string{"m-3"}, Reason: Retiring, Message: "deleting the volumes of m-3, no members any more"},
		},

		// removeLostVoter
		"Lost": {
			reason: "One member's data is gone, the rest serves",
			base:   formed3,
			args:   []change{on(1, gone)},
			want:   lost("m-1", 0xa1),
		},
		"LostBeforeDoomed": {
			reason: "Of two the one that does not serve goes; the other one is needed until it has a successor",
			base:   formed3,
			args:   []change{on(0, going), on(2, gone)},
			want:   lost("m-2", 0xa2),
		},
		"LostLastFirst": {
			reason: "One at a time",
			base:   formed5,
			args:   []change{on(1, gone), on(4, gone)},
			want:   lost("m-4", 0xa4),
		},
		"LostNotWithoutQuorum": {
			reason: "Those that serve would be no quorum of the rest",
			base:   formed3,
			args:   []change{on(1, gone), on(2, silent)},
			want: Step{
				Action: Wait, Reason: MemberDown,
				Message: "waiting for members that do not serve: m-1 has no Pod; m-2 does not answer",
			},
		},
		"LostWhateverTheSize": {
			reason: "A member without data is removed before anything is prepared or added",
			base:   formed3,
			args:   []change{size(5), on(0, gone)},
			want:   lost("m-0", 0xa0),
		},
		"LostBeforeLearner": {
			reason: "A learner could not be promoted as long as one of three is down",
			base:   formed3,
			args:   []change{size(4), learner(3), on(1, gone)},
			want:   lost("m-1", 0xa1),
		},
		"LostAndRetained": {
			reason: "Nothing ever runs on a retired volume, though it is a member's",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, func(i *Instance) { i.Volume.Retired = true })},
			want:   lost("m-1", 0xa1),
		},
		"LostSuccessor": {
			reason: "Once it is removed, another one is made, never under its name",
			base:   formed3,
			args:   []change{on(1, gone), removed(1)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},

		// replaceFailedVoter
		"FailedFirstPrepares": {
			reason: "Nothing is taken away where nothing can be made",
			base:   formed3,
			args:   []change{on(2, forsaken)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},
		"FailedWaitsForSuccessor": {
			reason: "A volume that is still being made may never be",
			base:   formed3,
			args:   []change{on(2, forsaken), spare(3), on(3, preparingStill)},
			want:   Step{Action: Wait, Reason: ScalingUp, Message: "waiting for the volumes of members to come: m-3 is being prepared"},
		},
		"Failed": {
			reason: "Its successor can be made",
			base:   formed3,
			args:   []change{on(2, forsaken), spare(3)},
			want:   failing("m-2", 0xa2),
		},
		"FailedEphemeral": {
			reason: "In memory there is nothing to prepare",
			base:   formed3,
			args:   []change{ephemeral, on(0, forsaken)},
			want:   failing("m-0", 0xa0),
		},
		"FailedOneByOne": {
			reason: "Two have failed, and the rest is a quorum of what is left each time",
			base:   formed5,
			args:   []change{on(1, forsaken), on(3, forsaken), spare(5)},
			want:   failing("m-3", 0xa3),
		},
		"FailedBeforeAdded": {
			reason: "etcd adds no member to three of which one is down",
			base:   formed3,
			args:   []change{size(4), on(1, forsaken), spare(3), spare(4)},
			want:   failing("m-1", 0xa1),
		},
		"FailedBeforeLearner": {
			reason: "With one of three down the learner could never be promoted: it is the successor",
			base:   formed3,
			args:   []change{size(4), learner(3), on(2, forsaken)},
			want:   failing("m-2", 0xa2),
		},
		"FailedNotBeforeSuccessorServes": {
			reason: "The learner that is to be its successor may not come either",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, silent), on(2, forsaken)},
			want: Step{
				Action: Wait, Reason: Joining,
				Message: "waiting for voters that do not serve, before the learner becomes one: m-3 does not answer; m-2 is on a node that does not answer",
			},
		},
		"FailedNotBeforeLearnerWithoutNeed": {
			reason: "Of five, one that has failed keeps no learner from becoming a voter",
			base:   formed5,
			args:   []change{size(6), on(2, forsaken), learner(5)},
			want:   Step{Action: Promote, Members: []string{"m-5"}, ID: 0xa5, Reason: Joining, Message: "making the learner m-5 a voter"},
		},
		"FailedNotAnswering": {
			reason: "One that answers is no failure, whatever its Pod says",
			base:   formed3,
			args:   []change{on(2, func(i *Instance) { i.Pod.Forsaken = true })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"FailedNotWithoutQuorum": {
			reason: "With a second member down, the one that has failed may be needed; no person has to act, since it will be replaced",
			base:   formed3,
			args:   []change{on(1, silent), on(2, forsaken)},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 does not answer; m-2 is on a node that does not answer",
			},
		},
	})
}
