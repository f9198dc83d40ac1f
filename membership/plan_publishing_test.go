package membership

import "testing"

// publishing is a member that follows the leader, and serves no clients yet.
func publishing(i *Instance) {
	i.Endpoint = Endpoint{ClusterID: 0xc1, Publishing: i.ID, Version: etcd36, Applied: 9}
}

// fetching is a learner that has not got its data yet.
func fetching(i *Instance) {
	i.Endpoint = Endpoint{ClusterID: 0xc1, Fetching: i.ID, Version: etcd36}
}

// restarted is a problem that the Pod has had, and which is told until it is ready.
func restarted(i *Instance) {
	i.Pod.Problem, i.Pod.Overdue, i.Pod.Damaged, i.Pod.Forsaken = "exited with code 137", true, true, true
}

// TestPlanPublishing: members that take part in the log, and do not serve clients yet.
func TestPlanPublishing(t *testing.T) {
	promotes := Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"}
	const what = " serves no clients yet: etcd repeats the proposal of its name after 7 s"
	waits := func(message string) Step { return Step{Action: Wait, Reason: Joining, Message: message + what} }
	testPlan(t, map[string]planCase{
		// recordMembers
		"Record": {
			reason: "Its metrics say as well whose data its volume holds, whether its name was published or not",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, unrecorded), on(3, publishing)},
			want:   Step{Action: Record, Members: []string{"m-3"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-3"},
		},
		"RecordFetching": {
			reason: "Its volume is its own before it has got any data, and it must not begin again on an empty one",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, unrecorded), on(3, fetching)},
			want:   Step{Action: Record, Members: []string{"m-3"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-3"},
		},
		"RecordNotAnother": {
			reason: "What runs there is another member",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, unrecorded), on(3, publishing), on(3, func(i *Instance) { i.Endpoint.Publishing = 0xa2 })},
			want:   waits("waiting for the learner to catch up: m-3"),
		},
		"RecordNoVersion": {
			reason: "That another version works shows when it serves, and not before",
			base:   formed3,
			args:   []change{on(2, publishing), on(2, func(i *Instance) { i.Endpoint.Version = etcd37 })},
			want:   waits("waiting for members that do not serve: m-2"),
		},

		// promoteLearner
		"Promote": {
			reason: "It follows the leader, which judges whether it has caught up",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, publishing)},
			want:   promotes,
		},
		"PromoteRestarted": {
			reason: "What was the matter with its Pod is over",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, publishing), on(3, restarted)},
			want:   promotes,
		},
		"PromoteNotFetching": {
			reason: "It would be a voter that has nothing of what is acknowledged",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, fetching)},
			want:   Step{Action: Wait, Reason: Joining, Message: "waiting for the learner to catch up: m-3 has not got its data yet"},
		},
		"FetchingAgain": {
			reason: "What has ended it before may end it again, and is what is told of",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, fetching), on(3, func(i *Instance) { i.Pod.Problem, i.Pod.Damaged = "exited with code 137", true })},
			want:   Step{Action: Wait, Reason: Joining, Message: "waiting for the learner to catch up: m-3 exited with code 137"},
		},
		"PromoteNextOne": {
			reason: "The one before counts as failing, and three of five are a quorum",
			base:   formed3,
			args:   []change{size(5), voter(3), on(3, publishing), learner(4), on(4, publishing)},
			want:   Step{Action: Promote, Members: []string{"m-4"}, ID: 0xa4, Reason: Joining, Message: "making the learner m-4 a voter"},
		},
		"PromoteNotSecond": {
			reason: "Of two both are needed",
			base:   formed1,
			args:   []change{size(3), learner(1), on(1, publishing)},
			want:   waits("waiting for the learner to catch up: m-1"),
		},
		"PromoteNotUnfenced": {
			reason: "On an empty directory it would start as a new member, with the vote of the one before",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, publishing), on(3, unfenced)},
			want:   waits("waiting for the learner to catch up: m-3"),
		},
		"PromoteNotThird": {
			reason: "The second does not serve yet, and one of three is no quorum",
			base:   formed1,
			args:   []change{size(3), voter(1), on(1, publishing), learner(2), on(2, publishing)},
			want:   waits("waiting for voters that do not serve, before the learner becomes one: m-2" + what + "; m-1"),
		},

		// addLearner
		"AddNextOne": {
			reason: "It is prepared and joins while the one before waits",
			base:   formed3,
			args:   []change{size(5), voter(3), on(3, publishing), spare(4)},
			want:   Step{Action: AddLearner, Members: []string{"m-4"}, Reason: ScalingUp, Message: "adding m-4 as a learner"},
		},

		// waitForLearner
		"FailedNotBeforeSuccessorServes": {
			reason: "A failed member goes when its successor serves",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, publishing), on(2, forsaken)},
			want: Step{
				Action: Wait, Reason: Joining,
				Message: "waiting for voters that do not serve, before the learner becomes one: m-3" + what + "; m-2 is on a node that does not answer",
			},
		},

		// replaceFailedVoter, memberDown
		"Voter": {
			reason: "A voter that takes part has not failed, whatever its Pod says, and there is nothing to do",
			base:   formed5,
			args:   []change{on(4, publishing), on(4, restarted), on(4, outdated)},
			want:   waits("waiting for members that do not serve: m-4"),
		},
		"BesideMemberDown": {
			reason: "One that is down is what is told of",
			base:   formed5,
			args:   []change{on(3, publishing), on(4, silent)},
			want: Step{
				Action: Wait, Reason: MemberDown,
				Message: "waiting for members that do not serve: m-3" + what + "; m-4 does not answer",
			},
		},

		// removeSurplusVoter
		"ShrinkNewest": {
			reason: "It is the one to go",
			base:   formed3,
			args:   []change{voter(3), on(3, publishing)},
			want:   Step{Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: ScalingDown, Message: "removing m-3: spec.replicas is 3"},
		},
		"ShrinkNotBeforeSuccessorServes": {
			reason: "It has come in the place of another one, which stays until it serves",
			base:   formed3,
			args:   []change{on(1, unfit), voter(3), on(3, publishing)},
			want: Step{
				Action: Wait, Reason: Moving,
				Message: "waiting to remove m-1 (its volume is of another class): m-3" + what,
			},
		},
		"ShrinkDown": {
			reason: "A member that is down is of no use",
			base:   formed3,
			args:   []change{on(1, silent), voter(3), on(3, publishing)},
			want:   Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: ScalingDown, Message: "removing m-1: spec.replicas is 3"},
		},
	})
}
