package membership

import "testing"

// TestPlanLearner: how a learner becomes a voter, or goes again. There is one at most, of a cluster
// of three that grows.
func TestPlanLearner(t *testing.T) {
	joins := Step{Action: Join, Members: []string{"m-3"}, ID: 0xa3, Version: etcd36, Reason: Joining, Message: "starting the learner m-3"}
	promotes := Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"}
	lost := Step{
		Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: MemberLost,
		Message: "removing the learner m-3, whose data is gone; another one takes its place",
	}
	waits := func(what string) Step {
		return Step{Action: Wait, Reason: Joining, Message: "waiting for the learner to catch up: m-3 " + what}
	}
	blank := func(i *Instance) { silent(i); unrecorded(i) }
	testPlan(t, map[string]planCase{
		// removeLearner
		"NotWanted": {
			reason: "The size was taken back while it was joining; it has no vote, so nothing is lost with it",
			base:   formed3,
			args:   []change{learner(3), on(2, silent)},
			want: Step{
				Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: ScalingDown,
				Message: "removing the learner m-3, which is not needed any more",
			},
		},
		"LostVolume": {
			reason: "There is nothing to start on",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, gone)},
			want:   lost,
		},
		"LostVolumeIsGoing": {
			reason: "As a voter it would be lost at its next start",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, going)},
			want:   lost,
		},
		"LostToAnotherMember": {
			reason: "Its volume is known to hold the data of another cluster or member",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, silent), on(3, func(i *Instance) { i.Volume.MemberID = 0xff })},
			want:   lost,
		},
		"LostToEarlierMember": {
			reason: "Its volume was given to another member, whatever is on it",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, blank), on(3, func(i *Instance) { i.Volume.Joins = 0xff })},
			want:   lost,
		},
		"LostEphemeral": {
			reason: "It has run, and its data went with its Pod",
			base:   formed3,
			args:   []change{ephemeral, size(4), learner(3), on(3, gone)},
			want:   lost,
		},
		"LostEphemeralIsGoing": {
			reason: "Its data goes with its Pod",
			base:   formed3,
			args:   []change{ephemeral, size(4), learner(3), on(3, blank), on(3, going), on(3, stopping)},
			want:   lost,
		},
		"Forsaken": {
			reason: "Waiting has not helped, and another one costs nothing",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, forsaken)},
			want: Step{
				Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: MemberFailed,
				Message: "removing the learner m-3, which is on a node that does not answer; another one takes its place",
			},
		},
		"ForsakenAnswering": {
			reason: "One that serves is no failure, whatever its Pod says",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, func(i *Instance) { i.Pod.Forsaken = true })},
			want:   promotes,
		},

		// startLearner
		"Join": {
			reason: "etcd lists it, and its volume is ready",
			base:   formed3,
			args:   []change{size(5), listed(3), spare(4)},
			want:   joins,
		},
		"JoinOverPreparation": {
			reason: "The Pod that prepares is replaced, done or not",
			base:   formed3,
			args:   []change{size(4), listed(3), on(3, preparingStill)},
			want:   joins,
		},
		"JoinAgain": {
			reason: "Its Pod is gone before its data was seen: on the volume that was given to it, it may begin again",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, blank), on(3, noPod)},
			want:   joins,
		},
		"JoinEphemeral": {
			reason: "In memory there is nothing but the Pod",
			base:   formed3,
			args:   []change{ephemeral, size(4), listed(3), on(3, gone)},
			want:   joins,
		},
		"JoinAtRunningVersion": {
			reason: "A newer binary belongs to an upgrade",
			base:   formed3,
			args:   []change{size(4), listed(3), func(d *Desired, _ *Observed) { d.Version = etcd37 }},
			want:   joins,
		},
		"JoinNotTwice": {
			reason: "It has yet to start",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, blank), on(3, unfenced)},
			want:   waits("does not answer"),
		},
		"JoinNotWhileStopping": {
			reason: "The Pod before must be gone",
			base:   formed3,
			args:   []change{size(4), listed(3), on(3, stopping)},
			want:   waits("is terminating"),
		},
		"JoinNotWithData": {
			reason: "Its data is known to be there: it starts like any other member",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, noPod)},
			want: Step{
				Action: Start, Members: []string{"m-3"}, Version: etcd36, Reason: Starting,
				Message: "starting m-3 on the volumes that hold their data",
			},
		},

		// promoteLearner
		"Promote": {
			reason: "Whether it has caught up, etcd judges",
			base:   formed3,
			args:   []change{size(4), learner(3)},
			want:   promotes,
		},
		"PromoteBeforePreparing": {
			reason: "One is resolved before the next one is thought of",
			base:   formed3,
			args:   []change{size(5), learner(3)},
			want:   promotes,
		},
		"PromoteToFiveWhileOneIsDown": {
			reason: "Of four voters three serve, which is a quorum of five",
			base:   formed5,
			args:   []change{size(6), on(2, silent), learner(5)},
			want:   Step{Action: Promote, Members: []string{"m-5"}, ID: 0xa5, Reason: Joining, Message: "making the learner m-5 a voter"},
		},
		"PromoteSecond": {
			reason: "One can only become two by taking the risk",
			base:   formed1,
			args:   []change{size(2), learner(1)},
			want:   Step{Action: Promote, Members: []string{"m-1"}, ID: 0xa1, Reason: Joining, Message: "making the learner m-1 a voter"},
		},
		"RecordedBeforeItHasAName": {
			reason: "Its first attempt to publish its name was lost, and its peer URL tells its identity",
			base:   formed3,
			args: []change{size(4), learner(3), on(3, unrecorded), func(_ *Desired, o *Observed) {
				o.Members[3].Name = ""
			}},
			want: Step{Action: Record, Members: []string{"m-3"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-3"},
		},
		"PromoteNotUnrecorded": {
			reason: "A voter whose volume does not say whose data it holds could never be told from a lost one",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, unrecorded)},
			want:   Step{Action: Record, Members: []string{"m-3"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-3"},
		},
		"PromoteNotUnfenced": {
			reason: "On an empty directory it would start as a new member, with the vote of the one before",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, unfenced)},
			want:   waits("answers"),
		},
		"PromoteNotSilent": {
			reason: "etcd would promote one that has stopped since",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, silent)},
			want:   waits("does not answer"),
		},
		"PromoteNotLeaderless": {
			reason: "It follows no leader",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, leaderless)},
			want:   waits("knows no leader"),
		},
		"PromoteNotStopping": {
			reason: "It would not serve for long",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, stopping)},
			want:   waits("is terminating"),
		},
		"PromoteNotWhileOneIsDown": {
			reason: "With one voter more that may fail, those that serve would be no quorum",
			base:   formed3,
			args:   []change{size(4), learner(3), on(2, silent)},
			want: Step{
				Action: Wait, Reason: Joining,
				Message: "waiting for voters that do not serve, before the learner becomes one: m-3 answers; m-2 does not answer",
			},
		},

		// waitForLearner
		"JoiningBeforeMemberDown": {
			reason: "A learner that does not come is no member that is down",
			base:   formed5,
			args:   []change{size(6), on(2, silent), learner(5), on(5, stuck)},
			want:   Step{Action: Wait, Reason: Joining, Message: "waiting for the learner to catch up: m-5 cannot pull the image etcd:v3.6.16"},
		},
		"JoiningOverdue": {
			reason: "What an image or a node is lacking for, only a person can give",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, stuck), on(3, overdue)},
			want: Step{
				Action: Stall, Reason: Joining,
				Message: "waiting for the learner to catch up: m-3 cannot pull the image etcd:v3.6.16. Waiting has not helped: remove the cause",
			},
		},
		"JoiningDamaged": {
			reason: "A learner that has failed goes by itself in time",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, forsaken), on(3, func(i *Instance) { i.Pod.Forsaken = false })},
			want:   waits("is on a node that does not answer"),
		},
	})
}
