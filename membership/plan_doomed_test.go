package membership

import "testing"

// TestPlanDoomed: claims that are marked for deletion while their Pods live. pvc-protection keeps
// such a claim, and with it the data, until the Pod ends.
func TestPlanDoomed(t *testing.T) {
	moves := func(step Step, message string) Step {
		step.Reason, step.Message = Moving, message
		return step
	}
	prepares := func(message string) Step {
		return moves(Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36}, "preparing the volume of m-3, to take the place of "+message)
	}
	lost := func(name string, id ID) Step {
		return Step{
			Action: Remove, Members: []string{name}, ID: id, Reason: MemberLost,
			Message: "removing " + name + ", whose data is gone; a new member takes its place",
		}
	}
	testPlan(t, map[string]planCase{
		"All": {
			reason: "kubectl delete pvc --all: no data is lost yet, and every member is needed until its successor votes",
			base:   formed3,
			args:   []change{onAll(going)},
			want:   prepares("m-2, whose volume is being deleted; then m-1, m-0"),
		},
		"One": {
			reason: "One of three",
			base:   formed3,
			args:   []change{on(1, going)},
			want:   prepares("m-1, whose volume is being deleted"),
		},
		"Only": {
			reason: "One becomes two, and one again: that saves the data",
			base:   formed1,
			args:   []change{on(0, going)},
			want: moves(Step{Action: Provision, Members: []string{"m-1"}, Version: etcd36},
				"preparing the volume of m-1, to take the place of m-0, whose volume is being deleted"),
		},
		"ClaimGone": {
			reason: "Its finalizer was taken away: what the process has open is there for as long as its Pod lives",
			base:   formed3,
			args:   []change{onAll(noVolume)},
			want:   prepares("m-2, whose volume is gone; then m-1, m-0"),
		},
		"Retired": {
			reason: "It serves from a volume on which nothing ever runs again",
			base:   formed3,
			args:   []change{on(1, func(i *Instance) { i.Volume.Retired = true })},
			want:   prepares("m-1, whose volume is retired"),
		},
		"ClaimGoneSilent": {
			reason: "What its Pod has open is not known",
			base:   formed3,
			args:   []change{on(1, noVolume), on(1, silent)},
			want:   lost("m-1", 0xa1),
		},
		"Add": {
			reason: "Its successor comes first",
			base:   formed3,
			args:   []change{onAll(going), spare(3)},
			want: moves(Step{Action: AddLearner, Members: []string{"m-3"}},
				"adding m-3 as a learner, to take the place of m-2, whose volume is being deleted; then m-1, m-0"),
		},
		"Promote": {
			reason: "The successor is no member too many",
			base:   formed3,
			args:   []change{onAll(going), learner(3)},
			want:   Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"},
		},
		"Remove": {
			reason: "Once its successor votes, one of them goes",
			base:   formed3,
			args:   []change{onAll(going), voter(3)},
			want: moves(Step{Action: Remove, Members: []string{"m-2"}, ID: 0xa2},
				"removing m-2 (its volume is being deleted): spec.replicas is 3; then m-1, m-0"),
		},
		"MoveLeader": {
			reason: "It hands over its leadership before it goes, to the member that is there for longer",
			base:   formed3,
			args:   []change{on(0, going), voter(3), on(3, func(i *Instance) { i.Endpoint.RaftIndex = 10 })},
			want: moves(Step{Action: MoveLeader, Members: []string{"m-3"}, ID: 0xa3},
				"moving the leadership from m-0 (its volume is being deleted) to m-3"),
		},
		"BeforeUnfit": {
			reason: "Of two kinds of volume the one goes first that may be gone at any time",
			base:   formed3,
			args:   []change{onAll(unfit), on(1, going), voter(3)},
			want: moves(Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1},
				"removing m-1 (its volume is being deleted): spec.replicas is 3; then m-2, m-0"),
		},
		"LeaderBeforeUnfit": {
			reason: "So it is of the leader",
			base:   formed3,
			args:   []change{onAll(unfit), on(0, going)},
			want:   prepares("m-0, whose volume is being deleted; then m-2, m-1"),
		},

		// with other facts
		"NotWhileOneIsDown": {
			reason: "Every member is needed, and the one that is down may come back",
			base:   formed3,
			args:   []change{onAll(going), on(2, silent)},
			want: Step{
				Action: Wait, Reason: MemberDown,
				Message: "waiting for members that do not serve: m-2 does not answer. The volumes of m-0, m-1, m-2 are being deleted, and their data goes with their Pods: leave these Pods until other members have taken their places",
			},
		},
		"NotWhileOneOfFiveIsDown": {
			reason: "There would be a quorum, but the one that is down may come back",
			base:   formed5,
			args:   []change{on(0, going), on(1, silent)},
			want: Step{
				Action: Wait, Reason: MemberDown,
				Message: "waiting for members that do not serve: m-1 does not answer. The volume of m-0 is being deleted, and its data goes with its Pod: leave this Pod until another member has taken its place",
			},
		},
		"AfterWhoIsLost": {
			reason: "A member whose Pod ended has lost its data: it goes first, since etcd adds no member to three of which one is down",
			base:   formed3,
			args:   []change{onAll(going), on(2, noPod)},
			want:   lost("m-2", 0xa2),
		},
		"LostKeepsSpare": {
			reason: "What was made for it while it served is its successor's still",
			base:   formed3,
			args:   []change{on(2, going), spare(3), on(2, noPod)},
			want:   lost("m-2", 0xa2),
		},
		"LostWithStoppingPod": {
			reason: "Its Pod is stopping, and the volume goes with it",
			base:   formed3,
			args:   []change{onAll(going), on(1, stopping), on(1, silent)},
			want:   lost("m-1", 0xa1),
		},
		"LostWithEndedPod": {
			reason: "An evicted Pod starts no container again",
			base:   formed3,
			args:   []change{on(1, going), on(1, silent), on(1, func(i *Instance) { i.Pod.Ended = true })},
			want:   lost("m-1", 0xa1),
		},
		"LostWithPodThatNeverRan": {
			reason: "The kubelet does not start a Pod whose claim is being deleted",
			base:   formed3,
			args:   []change{on(1, going), on(1, stuck)},
			want:   lost("m-1", 0xa1),
		},
		"LostWithFailedChange": {
			reason: "To put it back may mean another Pod, with which the volume goes",
			base:   formed3,
			args:   []change{on(1, going), on(1, broken(etcd37))},
			want:   lost("m-1", 0xa1),
		},
		"Failed": {
			reason: "It has not come back for long: its successor is prepared first",
			base:   formed3,
			args:   []change{onAll(going), on(2, forsaken), spare(3)},
			want: Step{
				Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: MemberFailed,
				Message: "removing m-2, which is on a node that does not answer; a new member takes its place",
			},
		},
		"Changed": {
			reason: "It has come to what it was changed to, which is not written to a claim that is being deleted",
			base:   formed3,
			args:   []change{on(1, going), on(1, next(etcd37)), on(1, func(i *Instance) { i.Endpoint.Version = etcd37 })},
			want:   prepares("m-1, whose volume is being deleted"),
		},
		"Changing": {
			reason: "It has yet to come to what it was changed to",
			base:   formed3,
			args:   []change{on(1, going), on(1, next(etcd37))},
			want: Step{
				Action: Wait, Reason: Changing,
				Message: "waiting for updated members before the membership changes: m-1 answers",
			},
		},
		"GrowFirst": {
			reason: "Members that the size lacks come first, all at once",
			base:   formed3,
			args:   []change{size(5), onAll(going)},
			want: Step{
				Action: Provision, Members: []string{"m-3", "m-4"}, Version: etcd36, Reason: ScalingUp,
				Message: "preparing the volumes of m-3, m-4",
			},
		},
		"ShrinkFirst": {
			reason: "One that goes anyway is one of them, and needs no successor",
			base:   formed5,
			args:   []change{size(3), on(1, going)},
			want:   Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: ScalingDown, Message: "removing m-1: spec.replicas is 3"},
		},
		"LearnerToo": {
			reason: "A learner has no vote: it goes at once, and another one comes",
			base:   formed3,
			args:   []change{onAll(going), learner(3), on(3, going)},
			want: Step{
				Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: MemberLost,
				Message: "removing the learner m-3, whose data is gone; another one takes its place",
			},
		},
		"SpareToo": {
			reason: "Another one is prepared before it goes",
			base:   formed3,
			args:   []change{onAll(going), spare(3), on(3, going)},
			want: moves(Step{Action: Provision, Members: []string{"m-4"}, Version: etcd36},
				"preparing the volume of m-4, to take the place of m-2, whose volume is being deleted; then m-1, m-0"),
		},
		"InterruptsDowngrade": {
			reason: "No member can come while etcd is being downgraded",
			base:   upgrading(etcd37, etcd36),
			args:   []change{on(2, going), downgradingTo(Version{3, 6, 0})},
			want: Step{
				Action: CancelDowngrade, Reason: Downgrading,
				Message: "taking back the downgrade until the members are complete again",
			},
		},
		"Suspended": {
			reason: "What would come is told",
			base:   formed3,
			args:   []change{suspended, on(2, going)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: preparing the volume of m-3, to take the place of m-2, whose volume is being deleted",
			},
		},

		// no successor can be made
		"Preparing": {
			reason: "The volume takes its time",
			base:   formed3,
			args:   []change{onAll(going), spare(3), on(3, preparingStill)},
			want: moves(Step{Action: Wait},
				"waiting for the volumes of members to come: m-3 is being prepared. It is to take the place of m-2, whose volume is being deleted; then m-1, m-0"),
		},
		"PreparingOverdue": {
			reason: "No room, no quota, no node: no member goes, and the Pods must stay",
			base:   formed3,
			args:   []change{on(2, going), spare(3), on(3, unschedulable)},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for the volumes of members to come: m-3 cannot be scheduled (0/3 nodes are available). It is to take the place of m-2, whose volume is being deleted. The cluster goes on with the 3 voters it has. Waiting has not helped: remove the cause. The volume of m-2 is being deleted, and its data goes with its Pod: leave this Pod until another member has taken its place",
			},
		},
		"PreparingOverdueOnly": {
			reason: "All the data there is goes with this Pod",
			base:   formed1,
			args:   []change{on(0, going), spare(1), on(1, unschedulable)},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for the volumes of members to come: m-1 cannot be scheduled (0/3 nodes are available). It is to take the place of m-0, whose volume is being deleted. The cluster goes on with the 1 voter it has. Waiting has not helped: remove the cause. The volume of m-0 is being deleted, and its data goes with its Pod: leave this Pod until another member has taken its place. It has the only copy of the data: save that (in one terminal: kubectl port-forward m-0 2379; in another: etcdctl --endpoints localhost:2379 snapshot save FILE, with TLS as in docs/tls.md#connect)",
			},
		},
		"Alarm": {
			reason: "A member that comes while etcd refuses writes would not get far",
			base:   formed3,
			args:   []change{on(2, going), alarm(1, AlarmNoSpace, 0xa1)},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: noSpace + ". The volume of m-2 is being deleted, and its data goes with its Pod: leave this Pod until another member has taken its place",
			},
		},
		"Cramped": {
			reason: "A member on a volume that is too small would refuse writes, and all others with it",
			base:   formed3,
			args:   []change{on(2, going), room(512 << 20), on(1, func(i *Instance) { i.Endpoint.DBSize = 512 << 20 })},
			want: Step{
				Action: Stall, Reason: VolumeTooSmall,
				Message: "m-2 stay on their volumes: the database is larger than it may be on new ones (512 MiB). Raise spec.storage.size or spec.options.quotaBackendSize, or make the database smaller: compact (read the revision: kubectl exec m-0 -c etcd -- etcdctl endpoint status -w json; then kubectl exec m-0 -c etcd -- etcdctl compact REVISION), then defragment one member after the other (kubectl exec m-1 -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-2 -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-0 -c etcd -- etcdctl defrag --command-timeout=5m). The volume of m-2 is being deleted, and its data goes with its Pod: leave this Pod until another member has taken its place",
			},
		},
	})
}

// unschedulable is a member to come for which there is no node.
func unschedulable(i *Instance) {
	i.Pod.Provisioned, i.Pod.Problem, i.Pod.Overdue = false, "cannot be scheduled (0/3 nodes are available)", true
}
