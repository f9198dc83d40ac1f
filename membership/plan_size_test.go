package membership

import "testing"

// TestPlanSize: fewer and more members than there are.
func TestPlanSize(t *testing.T) {
	shrinks := func(name string, id ID, to string) Step {
		return Step{
			Action: Remove, Members: []string{name}, ID: id, Reason: ScalingDown,
			Message: "removing " + name + ": spec.replicas is " + to,
		}
	}
	prepares := func(list string, names ...string) Step {
		return Step{
			Action: Provision, Members: names, Version: etcd36, Reason: ScalingUp,
			Message: "preparing the volumes of " + list,
		}
	}
	adds := func(name string) Step {
		return Step{Action: AddLearner, Members: []string{name}, Reason: ScalingUp, Message: "adding " + name + " as a learner"}
	}
	testPlan(t, map[string]planCase{
		// removeSurplusVoter
		"Shrink": {
			reason: "Among equals the newest goes, one at a time",
			base:   formed3,
			args:   []change{size(1)},
			want:   shrinks("m-2", 0xa2, "1"),
		},
		"ShrinkToLast": {
			reason: "Two become one as well",
			base:   formed3,
			args:   []change{size(1), removed(2), on(2, gone)},
			want:   shrinks("m-1", 0xa1, "1"),
		},
		"ShrinkOutdated": {
			reason: "One that was made from an older spec is worth less",
			base:   formed3,
			args:   []change{size(2), on(1, outdated)},
			want:   shrinks("m-1", 0xa1, "2"),
		},
		"ShrinkDown": {
			reason: "One that is down is worth less still",
			base:   formed3,
			args:   []change{size(2), on(0, silent), on(1, outdated)},
			want:   shrinks("m-0", 0xa0, "2"),
		},
		"ShrinkFailed": {
			reason: "It is not replaced first",
			base:   formed3,
			args:   []change{size(2), on(0, forsaken)},
			want:   shrinks("m-0", 0xa0, "2"),
		},
		"ShrinkLost": {
			reason: "One whose volume is going is worth more than one that is down, as long as its Pod lives",
			base:   formed5,
			args:   []change{size(3), leader(2), on(0, going), on(1, silent)},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: ScalingDown,
				Message: "removing m-1: spec.replicas is 3",
			},
		},
		"ShrinkMovesLeader": {
			reason: "The leader hands over before it goes, to one that stays",
			base:   formed3,
			args:   []change{size(2), leader(2)},
			want: Step{
				Action: MoveLeader, Members: []string{"m-1"}, ID: 0xa1, Reason: ScalingDown,
				Message: "moving the leadership from m-2 to m-1",
			},
		},
		"ShrinkMovesLeaderToMostAdvanced": {
			reason: "What has most of the log needs the least time to lead; one that goes as well is no heir, whatever it has",
			base:   formed5,
			args: []change{
				size(3), leader(4),
				on(0, func(i *Instance) { i.Endpoint.RaftIndex = 10 }), on(3, func(i *Instance) { i.Endpoint.RaftIndex = 11 }),
			},
			want: Step{
				Action: MoveLeader, Members: []string{"m-0"}, ID: 0xa0, Reason: ScalingDown,
				Message: "moving the leadership from m-4 to m-0",
			},
		},
		"ShrinkBeforeLeader": {
			reason: "One that follows no leader goes before one whose volume is going, whatever it has",
			base:   formed5,
			args:   []change{size(4), leader(2), on(2, going), on(4, leaderless), on(4, func(i *Instance) { i.Endpoint.RaftIndex = 10 })},
			want: Step{
				Action: Remove, Members: []string{"m-4"}, ID: 0xa4, Reason: ScalingDown,
				Message: "removing m-4: spec.replicas is 4; then m-2",
			},
		},
		"ShrinkWaits": {
			reason: "Those that serve would be no quorum of the rest",
			base:   formed3,
			args:   []change{size(2), on(0, silent), on(2, silent)},
			want: Step{
				Action: Wait, Reason: ScalingDown,
				Message: "waiting to remove m-2: without it those that serve would be no quorum; m-2 does not answer; m-0 does not answer",
			},
		},
		"ShrinkOverdue": {
			reason: "What does not come back by itself needs a person",
			base:   formed3,
			args:   []change{size(2), on(1, silent), on(2, stuck), on(2, overdue)},
			want: Step{
				Action: Stall, Reason: ScalingDown,
				Message: "waiting to remove m-2: without it those that serve would be no quorum; m-2 cannot pull the image etcd:v3.6.16; m-1 does not answer. Waiting has not helped: remove the cause",
			},
		},

		// prepareVolumes
		"Grow": {
			reason: "The volumes of all members to come at once, before etcd hears of any; the first start is not theirs",
			base:   formed3,
			args:   []change{size(5)},
			want:   prepares("m-3, m-4", "m-3", "m-4"),
		},
		"GrowRest": {
			reason: "Only what is missing is made",
			base:   formed3,
			args:   []change{size(5), spare(3)},
			want:   prepares("m-4", "m-4"),
		},
		"GrowPodOfSpare": {
			reason: "A spare whose Pod is gone needs another one, or its volume may never be made",
			base:   formed3,
			args:   []change{size(5), spare(3), on(3, noPod)},
			want:   prepares("m-3, m-4", "m-3", "m-4"),
		},
		"GrowNotOnSpareThatIsGoing": {
			reason: "Its volume goes with its Pod",
			base:   formed3,
			args:   []change{size(4), spare(3), on(3, going)},
			want:   prepares("m-4", "m-4"),
		},
		"GrowNotOnSpareThatStops": {
			reason: "Its node may never let its Pod go",
			base:   formed3,
			args:   []change{size(4), spare(3), on(3, stopping)},
			want:   prepares("m-4", "m-4"),
		},
		"GrowBeyondFailed": {
			reason: "A successor for the one that has failed, and one for the size",
			base:   formed3,
			args:   []change{size(4), on(0, forsaken)},
			want:   prepares("m-3, m-4", "m-3", "m-4"),
		},
		"GrowAtRunningVersion": {
			reason: "A newer binary belongs to an upgrade, and an older one than the cluster's does not start",
			base:   formed3,
			args: []change{
				size(4), func(d *Desired, _ *Observed) { d.Version = etcd37 },
				on(0, func(i *Instance) { i.Volume.Version, i.Endpoint.Version = etcd37, etcd37 }),
			},
			want: prepares("m-3", "m-3"),
		},

		// addLearner
		"Add": {
			reason: "A member begins as a learner, which has no vote",
			base:   formed3,
			args:   []change{size(5), spare(3), spare(4)},
			want:   adds("m-3"),
		},
		"AddToOne": {
			reason: "One can only become two by taking the risk",
			base:   formed1,
			args:   []change{size(2), spare(1)},
			want:   adds("m-1"),
		},
		"AddFirstReady": {
			reason: "A volume that cannot be made yet holds up no other",
			base:   formed3,
			args:   []change{size(5), spare(3), on(3, preparingStill), spare(4)},
			want:   adds("m-4"),
		},
		"AddEphemeral": {
			reason: "In memory there is nothing to prepare",
			base:   formed3,
			args:   []change{ephemeral, size(5)},
			want:   adds("m-3"),
		},
		"AddNotWhileOneIsDown": {
			reason: "With one voter more, those that serve would be no quorum; etcd refuses it too",
			base:   formed3,
			args:   []change{size(4), spare(3), on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"AddToFiveWhileOneIsDown": {
			reason: "Of five, those that serve would be one",
			base:   formed5,
			args:   []change{size(6), spare(5), on(2, silent)},
			want:   adds("m-5"),
		},

		"LastVolumeIsRescued": {
			reason: "A second member is asked for, and will have it",
			base:   formed1,
			args:   []change{size(2), on(0, going)},
			want:   prepares("m-1", "m-1"),
		},

		// waitForVolumes
		"Preparing": {
			reason: "No volume is ready",
			base:   formed3,
			args:   []change{size(5), spare(3), on(3, preparingStill), spare(4), on(4, preparingStill)},
			want: Step{
				Action: Wait, Reason: ScalingUp,
				Message: "waiting for the volumes of members to come: m-3 is being prepared; m-4 is being prepared",
			},
		},
		"PreparingOverdue": {
			reason: "There may be no room: the cluster is left as it is, and a person is told how to give up",
			base:   formed3,
			args: []change{size(4), spare(3), on(3, func(i *Instance) {
				i.Pod.Provisioned, i.Pod.Problem, i.Pod.Overdue = false, "has no node with room for it", true
			})},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for the volumes of members to come: m-3 has no node with room for it. The cluster goes on with the 3 voters it has. Waiting has not helped: remove the cause, or set spec.replicas to 3",
			},
		},
		"PreparingOutdated": {
			reason: "What a spare waits for is wanted no more: it is recreated",
			base:   formed3,
			args: []change{size(4), spare(3), on(3, outdated), on(3, func(i *Instance) {
				i.Pod.Provisioned, i.Pod.NeverRan, i.Pod.Problem = false, true, "has no node with room for it"
			})},
			want: Step{
				Action: Stop, Members: []string{"m-3"}, Reason: Replacing,
				Message: "replacing the Pods m-3, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
	})
}
