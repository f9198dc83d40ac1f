package membership

import "testing"

func TestPlanVolumeReplaced(t *testing.T) {
	inNamespace := func(d *Desired, _ *Observed) { d.Namespace = "prod" }
	down := func(i *Instance) { restored(i); noPod(i) }
	one := Step{
		Action: Stall, Reason: VolumeReplaced,
		Message: "PersistentVolumeClaim m-1 was restored or copied: its annotation etcd.quorate.dev/volume-uid names another claim, and its data may be old. No member is started on it. To replace the member by a new one, which gets the data from the others: kubectl delete pvc --wait=false m-1 -n prod. To start on the data as it is: kubectl annotate pvc m-1 -n prod etcd.quorate.dev/volume-uid- (acknowledged writes are lost if it is older than the last run of the member)",
	}
	majority := func(claims, command string) Step {
		return Step{
			Action: Stall, Reason: VolumeReplaced,
			Message: "PersistentVolumeClaim " + claims + " was restored or copied: its annotation etcd.quorate.dev/volume-uid names another claim, and its data may be old. No member is started on it, and without it there is no quorum. Do not delete it: its data may be the last copy. To start on the data as it is: kubectl annotate pvc " + command + " -n prod etcd.quorate.dev/volume-uid- (acknowledged writes are lost if it is older than the last run of the member). If that data must not be used: docs/restore.md#which-way-back",
		}
	}
	leftover := Step{
		Action: Stall, Reason: VolumeReplaced,
		Message: "PersistentVolumeClaim m-3 was restored or copied, and belongs to no member. Copy what you need from it, and delete it: kubectl delete pvc m-3 -n prod",
	}
	testPlan(t, map[string]planCase{
		"OneOfThree": {
			reason: "A voter that came back with less than it has acknowledged would take acknowledged writes with it",
			base:   formed3, args: []change{inNamespace, on(1, down)}, want: one,
		},
		"ForLong": {
			reason: "Patience is for those that may come back by themselves", base: formed3,
			args: []change{inNamespace, on(1, restored), on(1, forsaken)}, want: one,
		},
		"Serving": {
			reason: "Its process has the volume of before: it is left alone, and cannot start again",
			base:   formed3, args: []change{inNamespace, on(1, restored)}, want: one,
		},
		"ServingWithoutWhatIsNew": {
			reason: "Nothing is written on what was restored", base: formed3,
			args: []change{inNamespace, on(1, restored), on(1, func(i *Instance) { i.Endpoint.Version = Version{3, 6, 17} })}, want: one,
		},
		"Crashed": {
			reason: "The kubelet starts it again on the volume of before; a new Pod could not be started", base: formed3,
			args: []change{inNamespace, on(1, restored), on(1, silent), on(1, outdated), on(1, func(i *Instance) { i.Pod.Problem = "exited with code 1" })}, want: one,
		},
		"NotStartedYet": {
			reason: "A Pod that was made for the volume of before would start on this one", base: formed3,
			args: []change{on(1, restored), on(1, newPod), on(1, silent), on(1, func(i *Instance) { i.Pod.NeverRan = true })},
			want: Step{Action: Stop, Members: []string{"m-1"}, Reason: VolumeReplaced, Message: "stopping the Pods m-1, which would start on volumes that are not the recorded ones"},
		},
		"OthersFirst": {
			reason: "Others are started before any is asked", base: formed3,
			args: []change{nobodyAnswers, on(1, down), on(0, noPod), on(2, noPod)},
			want: Step{Action: Start, Members: []string{"m-0", "m-2"}, Version: etcd36, Reason: Starting, Message: "starting m-0, m-2 on the volumes that hold their data"},
		},
		"QuorumFirst": {
			reason: "A quorum comes back by itself", base: formed3,
			args: []change{nobodyAnswers, on(1, down)},
			want: Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 does not answer; m-1 has a volume that is another object than its record names; m-2 does not answer"},
		},
		"LostFirst": {
			reason: "A member whose data is gone is replaced meanwhile", base: formed5,
			args: []change{on(1, down), on(2, gone)},
			want: Step{Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: MemberLost, Message: "removing m-2, whose data is gone; a new member takes its place"},
		},
		"LearnerOfOthers": {
			reason: "A learner that cannot become a voter before this is settled", base: formed3,
			args: []change{inNamespace, size(4), on(1, down), learner(3)}, want: one,
		},
		"Learner": {
			reason: "A learner has no vote: another one is as good, and its volume stays", base: formed3,
			args: []change{size(4), learner(3), on(3, down)},
			want: Step{Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: MemberLost, Message: "removing the learner m-3, whose data is gone; another one takes its place"},
		},
		"LearnerServing": {
			reason: "As a voter it could not start again", base: formed3,
			args: []change{inNamespace, size(4), learner(3), on(3, restored)},
			want: Step{
				Action: Stall, Reason: VolumeReplaced,
				Message: "PersistentVolumeClaim m-3 was restored or copied: its annotation etcd.quorate.dev/volume-uid names another claim, and its data may be old. No member is started on it. To replace the member by a new one, which gets the data from the others: kubectl delete pvc --wait=false m-3 -n prod. To start on the data as it is: kubectl annotate pvc m-3 -n prod etcd.quorate.dev/volume-uid- (acknowledged writes are lost if it is older than the last run of the member)",
			},
		},
		"GivenUp": {
			reason: "A person has deleted it", base: formed3, args: []change{on(1, down), on(1, gone)},
			want: Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: MemberLost, Message: "removing m-1, whose data is gone; a new member takes its place"},
		},
		"OfNoMember": {
			reason: "Nor is it deleted because its member was removed: a person has brought it back", base: formed3,
			args: []change{inNamespace, voter(3), on(3, down), removed(3)}, want: leftover,
		},
		"Majority": {
			reason: "It is not lost: with it there is a quorum", base: formed3,
			args: []change{inNamespace, noQuorum, on(1, down), on(2, down)}, want: majority("m-1, m-2", "m-1 m-2"),
		},
		"MajorityLost": {
			reason: "Even with it there is none", base: formed3,
			args: []change{noQuorum, on(0, gone), on(1, down), on(2, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0", "m-2"},
				Message: "the data of m-0, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-1, or from a snapshot; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back",
			},
		},
		"Namespace": {
			reason: "A namespace that was restored as a whole, without a status: nothing begins empty", base: formed3,
			args: []change{inNamespace, noLatch, forgotten, nobodyAnswers, onAll(down)}, want: majority("m-0, m-1, m-2", "m-0 m-1 m-2"),
		},
		"NamespaceWithStatus": {
			reason: "And with one", base: formed3,
			args: []change{inNamespace, nobodyAnswers, onAll(down)}, want: majority("m-0, m-1, m-2", "m-0 m-1 m-2"),
		},
		"NamespaceOfFirstStart": {
			reason: "It was saved while the first start was being recorded", base: formed3,
			args: []change{inNamespace, noLatch, forgotten, intended, nobodyAnswers, onAll(down), on(2, blankVolume), on(2, func(i *Instance) { i.ID = 0 })},
			want: majority("m-0, m-1", "m-0 m-1"),
		},
		"Accepted": {
			reason: "A person has accepted some: they tell the members", base: formed3,
			args: []change{noLatch, forgotten, nobodyAnswers, onAll(noPod), on(2, restored)},
			want: Step{Action: Start, Members: []string{"m-0", "m-1"}, Version: etcd36, Reason: Starting, Message: "starting m-0, m-1 on the volumes that hold their data"},
		},
		"AcceptedAndStarting": {
			reason: "And are waited for", base: formed3,
			args: []change{noLatch, forgotten, nobodyAnswers, on(1, down), on(2, down)},
			want: Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 does not answer; m-1 has a volume that is another object than its record names; m-2 has a volume that is another object than its record names"},
		},
		"Scaled": {
			reason: "One too many goes first, and its volume stays", base: formed3,
			args: []change{size(2), on(1, down)},
			want: Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: ScalingDown, Message: "removing m-1: spec.replicas is 2"},
		},
		"Hibernated": {
			reason: "Nothing runs that could need it", base: formed3,
			args: []change{size(0), nobodyAnswers, onAll(down)},
			want: Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
	})
}
