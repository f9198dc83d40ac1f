package membership

import "testing"

// TestPlanMove: volumes that are not what the spec asks for, and cannot become that.
func TestPlanMove(t *testing.T) {
	moves := func(step Step, message string) Step {
		step.Reason, step.Message = Moving, message
		return step
	}
	testPlan(t, map[string]planCase{
		// moving
		"Prepare": {
			reason: "One volume at a time, of a member more than there are, and the one that goes is told before; the leader last",
			base:   formed3,
			args:   []change{onAll(unfit)},
			want: moves(Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36},
				"preparing the volume of m-3, to take the place of m-2, whose volume is of another class; then m-1, m-0"),
		},
		"PrepareOne": {
			reason: "One becomes two, and one again",
			base:   formed1,
			args:   []change{on(0, unfit)},
			want: moves(Step{Action: Provision, Members: []string{"m-1"}, Version: etcd36},
				"preparing the volume of m-1, to take the place of m-0, whose volume is of another class"),
		},
		"PrepareTwo": {
			reason: "Two can be spared a third",
			base:   formed3,
			args:   []change{two, on(0, unfit), leader(1)},
			want: moves(Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36},
				"preparing the volume of m-3, to take the place of m-0, whose volume is of another class"),
		},
		"NotWhileOneIsDown": {
			reason: "Nothing is begun",
			base:   formed3,
			args:   []change{onAll(unfit), on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"NotWithAlarm": {
			reason: "Nothing is begun",
			base:   formed3,
			args:   []change{onAll(unfit), alarm(1, AlarmNoSpace, 0xa1)},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: noSpace,
			},
		},
		"SpareStaysWhileOneIsDown": {
			reason: "What has been made is not thrown away for a moment's silence",
			base:   formed3,
			args:   []change{onAll(unfit), spare(3), on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"SuccessorTakesPlaceOfFailed": {
			reason: "A member that has failed meanwhile goes first, whatever its volume",
			base:   formed3,
			args:   []change{onAll(unfit), on(0, fit), spare(3), leader(1), on(0, forsaken)},
			want: Step{
				Action: Remove, Members: []string{"m-0"}, ID: 0xa0, Reason: MemberFailed,
				Message: "removing m-0, which is on a node that does not answer; a new member takes its place",
			},
		},
		"Add": {
			reason: "It begins as a learner",
			base:   formed3,
			args:   []change{onAll(unfit), spare(3)},
			want: moves(Step{Action: AddLearner, Members: []string{"m-3"}},
				"adding m-3 as a learner, to take the place of m-2, whose volume is of another class; then m-1, m-0"),
		},
		"AddNotWhileOneOfFiveIsDown": {
			reason: "There would be a quorum, but there is no hurry",
			base:   formed5,
			args:   []change{onAll(unfit), spare(5), on(4, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-4 does not answer"},
		},
		"LearnerStays": {
			reason: "It is no member too many, but the successor of one",
			base:   formed3,
			args:   []change{onAll(unfit), learner(3)},
			want:   Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"},
		},
		"Remove": {
			reason: "Once its successor votes",
			base:   formed3,
			args:   []change{onAll(unfit), voter(3)},
			want: moves(Step{Action: Remove, Members: []string{"m-2"}, ID: 0xa2},
				"removing m-2 (its volume is of another class): spec.replicas is 3; then m-1, m-0"),
		},
		"RemoveFollowerBeforeLeader": {
			reason: "The leader last, wherever it is",
			base:   formed3,
			args:   []change{onAll(unfit), voter(3), leader(2)},
			want: moves(Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1},
				"removing m-1 (its volume is of another class): spec.replicas is 3; then m-0, m-2"),
		},
		"MoveLeader": {
			reason: "It hands over before it goes, to one that is where the spec asks for",
			base:   formed3,
			args:   []change{on(1, unfit), voter(3), leader(1), on(3, func(i *Instance) { i.Endpoint.RaftIndex = 10 })},
			want: moves(Step{Action: MoveLeader, Members: []string{"m-3"}, ID: 0xa3},
				"moving the leadership from m-1 (its volume is of another class) to m-3"),
		},
		"Discard": {
			reason: "Nothing more is begun before its volume is gone",
			base:   formed3,
			args:   []change{onAll(unfit), voter(3), removed(2), on(2, noPod)},
			want: Step{
				Action: Discard, Members: []string{"m-2"}, Reason: Retiring,
				Message: "deleting the volumes of m-2, no members any more",
			},
		},

		// stopping
		"Preparing": {
			reason: "The volume takes its time",
			base:   formed3,
			args:   []change{onAll(unfit), spare(3), on(3, preparingStill)},
			want: moves(Step{Action: Wait},
				"waiting for the volumes of members to come: m-3 is being prepared. It is to take the place of m-2, whose volume is of another class; then m-1, m-0"),
		},
		"PreparingOverdue": {
			reason: "No such class, or no room: no member goes, and the way back is told",
			base:   formed3,
			args: []change{onAll(unfit), on(0, fit), on(1, fit), spare(3), on(3, func(i *Instance) {
				i.Pod.Provisioned, i.Pod.Problem, i.Pod.Overdue = false, `cannot be scheduled (storageclass "nosuch" not found)`, true
			})},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: `waiting for the volumes of members to come: m-3 cannot be scheduled (storageclass "nosuch" not found). It is to take the place of m-2, whose volume is of another class. The cluster goes on with the 3 voters it has. Waiting has not helped: remove the cause, or revert spec.storage`,
			},
		},
		"SetBackWithSpare": {
			reason: "Nothing is left of it",
			base:   formed3,
			args:   []change{spare(3), on(3, unfit)},
			want:   Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},
		"SetBackWithLearner": {
			reason: "It has no vote yet",
			base:   formed3,
			args:   []change{learner(3), on(3, unfit)},
			want:   moves(Step{Action: Remove, Members: []string{"m-3"}, ID: 0xa3}, "removing the learner m-3, whose volume is of another class"),
		},
		"SetBackWithVoter": {
			reason: "The successor is now the one whose volume is wanted no more",
			base:   formed3,
			args:   []change{voter(3), on(3, unfit)},
			want: moves(Step{Action: Remove, Members: []string{"m-3"}, ID: 0xa3},
				"removing m-3 (its volume is of another class): spec.replicas is 3"),
		},
		"ChangedAgain": {
			reason: "What was prepared for an earlier spec is no member's beginning",
			base:   formed3,
			args:   []change{onAll(unfit), spare(3), on(3, unfit)},
			want:   Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},

		// volumeTooSmall
		"Cramped": {
			reason: "A member on a volume that is too small would refuse writes, and all others with it",
			base:   formed3,
			args:   []change{onAll(unfit), room(512 << 20), on(1, func(i *Instance) { i.Endpoint.DBSize = 512 << 20 })},
			want: Step{
				Action: Stall, Reason: VolumeTooSmall,
				Message: "m-0, m-1, m-2 stay on their volumes: the database is larger than it may be on new ones (512 MiB). Revert spec.storage.size, or raise spec.options.quotaBackendSize, or make the database smaller: compact (read the revision: kubectl exec m-0 -c etcd -- etcdctl endpoint status -w json; then kubectl exec m-0 -c etcd -- etcdctl compact REVISION), then defragment one member after the other (kubectl exec m-1 -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-2 -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-0 -c etcd -- etcdctl defrag --command-timeout=5m)",
			},
		},
		"CrampedMeanwhile": {
			reason: "It stops there, and nothing is left over",
			base:   formed3,
			args:   []change{onAll(unfit), spare(3), on(3, fit), room(512 << 20), on(1, func(i *Instance) { i.Endpoint.DBSize = 1 << 30 })},
			want:   Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},
		"RoomEnough": {
			reason: "Below the limit it moves",
			base:   formed3,
			args:   []change{on(2, unfit), room(512 << 20), onAll(func(i *Instance) { i.Endpoint.DBSize = 511 << 20 })},
			want: moves(Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36},
				"preparing the volume of m-3, to take the place of m-2, whose volume is of another class"),
		},
		"CrampedWithoutMoving": {
			reason: "Volumes that stay have the room that they have",
			base:   formed3,
			args:   []change{room(1 << 20), onAll(func(i *Instance) { i.Endpoint.DBSize = 2 << 20 })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// with other changes at once: size, volumes, versions
		"GrowFirst": {
			reason: "A member that comes because of the size has the new volumes already",
			base:   formed3,
			args:   []change{size(5), onAll(unfit)},
			want: Step{
				Action: Provision, Members: []string{"m-3", "m-4"}, Version: etcd36, Reason: ScalingUp,
				Message: "preparing the volumes of m-3, m-4",
			},
		},
		"ShrinkFirst": {
			reason: "The one that goes anyway is one whose volume is unfit, and needs no successor",
			base:   formed5,
			args:   []change{size(3), on(1, unfit), on(3, unfit), on(4, unfit)},
			want:   Step{Action: Remove, Members: []string{"m-4"}, ID: 0xa4, Reason: ScalingDown, Message: "removing m-4: spec.replicas is 3; then m-1"},
		},
		"BeforeVersion": {
			reason: "A member that goes is not changed before, and one that comes runs what the others run",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, unfit)},
			want: moves(Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36},
				"preparing the volume of m-3, to take the place of m-2, whose volume is of another class"),
		},
		"AfterWhoIsBeingChanged": {
			reason: "A member on its way to another version arrives first",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(unfit), on(1, stuck), on(1, next(etcd37))},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 cannot pull the image etcd:v3.6.16",
			},
		},
		"InterruptsDowngrade": {
			reason: "No member can come while etcd is being downgraded",
			base:   upgrading(etcd37, etcd36),
			args:   []change{on(2, unfit), downgradingTo(Version{3, 6, 0})},
			want: Step{
				Action: CancelDowngrade, Reason: Downgrading,
				Message: "taking back the downgrade until the members are complete again",
			},
		},
		"BeforeGrowth": {
			reason: "Those that can grow do so when the others have moved",
			base:   formed3,
			args:   []change{onAll(small), on(2, unfit)},
			want: moves(Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36},
				"preparing the volume of m-3, to take the place of m-2, whose volume is of another class"),
		},
		"Suspended": {
			reason: "What would come is told",
			base:   formed3,
			args:   []change{suspended, on(2, unfit)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: preparing the volume of m-3, to take the place of m-2, whose volume is of another class",
			},
		},
	})
}
