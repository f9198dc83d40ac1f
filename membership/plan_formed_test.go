package membership

import "testing"

func TestPlanFormed(t *testing.T) {
	testPlan(t, map[string]planCase{
		// lostMajority
		"LostMajority": {
			reason: "Too few volumes are left: nothing is started empty, ever",
			base:   formed3,
			args:   []change{noQuorum, on(1, gone), on(2, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1", "m-2"},
				Message: "the data of m-1, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-0 (log up to entry 9 at least), or from a snapshot; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back",
			},
		},
		"LostMajorityOfForgotten": {
			reason: "After the status is lost too, the volume that is left knows how many there were",
			base:   formed3,
			args: []change{
				noLatch, forgotten, noQuorum, on(1, gone), on(2, gone),
				on(1, func(i *Instance) { i.ID = 0 }), on(2, func(i *Instance) { i.ID = 0 }),
			},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1", "m-2"},
				Message: "the data of m-1, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-0 (log up to entry 9 at least), or from a snapshot; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back",
			},
		},
		"LostMajorityNotGuessed": {
			reason: "The status is lost too, and the member whose data is there has yet to name the others",
			base:   formed3,
			args: []change{
				noLatch, forgotten, nobodyAnswers, on(1, gone), on(2, gone),
				on(1, func(i *Instance) { i.ID = 0 }), on(2, func(i *Instance) { i.ID = 0 }),
			},
			want: Step{
				Action: Wait, Reason: Unreachable,
				Message: "no member answers: m-0 does not answer; m-1 has no Pod; m-2 has no Pod",
			},
		},
		"LostMajorityOfFewerNow": {
			reason: "What is remembered counts for more than the first start: of two one is left",
			base:   formed3,
			args:   []change{nobodyAnswers, on(1, gone), on(2, gone), on(2, func(i *Instance) { i.ID = 0 })},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the data of m-1 is gone: of 2 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-0, or from a snapshot; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back",
			},
		},
		"LostAll": {
			reason: "Losing every volume never gives a silently empty cluster",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0", "m-1", "m-2"},
				Message: "every volume of the cluster is gone. No member is started empty under its old name. Bring the volumes back; or create an EtcdRestore from a snapshot; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back",
			},
		},

		// quorumLost
		"QuorumLost": {
			reason: "The volumes are there, the members are not: wait, and say why",
			base:   formed3,
			args:   []change{noQuorum, on(0, stuck), on(2, silent)},
			want: Step{
				Action: Wait, Reason: QuorumLost,
				Message: "no quorum answers: m-0 cannot pull the image etcd:v3.6.16; m-1 knows no leader; m-2 does not answer",
			},
		},
		"Unreachable": {
			reason: "That no member answers may be the network between them and the operator",
			base:   formed3,
			args:   []change{nobodyAnswers},
			want: Step{
				Action: Wait, Reason: Unreachable,
				Message: "no member answers: m-0 does not answer; m-1 does not answer; m-2 does not answer",
			},
		},
		"QuorumLostOverdue": {
			reason: "What does not come back by itself needs a person",
			base:   formed3,
			args:   []change{noQuorum, on(0, stuck), on(0, overdue), on(2, silent)},
			want: Step{
				Action: Stall, Reason: QuorumLost,
				Message: "no quorum answers: m-0 cannot pull the image etcd:v3.6.16; m-1 knows no leader; m-2 does not answer. Waiting has not helped: remove the cause; where a member's data is gone, bring its volume back, or restore it: docs/restore.md#which-way-back",
			},
		},

		// unmanagedMember
		"ForeignMember": {
			reason: "Members that we did not make are reported, by all that is known of them, and left alone",
			base:   formed3,
			args: []change{func(_ *Desired, o *Observed) {
				o.Members = append(o.Members, Member{ID: 0xff, Name: "x", PeerURLs: []string{"http://a:1", "http://b:1"}}, Member{ID: 0xfe, PeerURLs: []string{"http://c:1"}})
			}},
			want: Step{
				Action: Stall, Reason: ForeignMember,
				Message: "etcd lists members that Quorate did not make: fe (http://c:1), x ff (http://a:1, http://b:1). To remove them, run: kubectl exec m-0 -c etcd -- etcdctl member remove fe; kubectl exec m-0 -c etcd -- etcdctl member remove ff",
			},
		},

		// alarmRaised
		"NoSpace": {
			reason: "etcd refuses writes until a person has made room",
			base:   formed3,
			args:   []change{alarm(0, AlarmNoSpace, 0xa0), alarm(2, AlarmNoSpace, 0xa0)},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: noSpace,
			},
		},
		"NoSpaceBeforeMemberDown": {
			reason: "It needs a person, where a member that is down may come back",
			base:   formed3,
			args:   []change{alarm(0, AlarmNoSpace, 0xa0), on(2, silent)},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: noSpace,
			},
		},

		// memberDown
		"MemberDown": {
			reason: "One member does not answer, another knows no leader",
			base:   formed3,
			args:   []change{on(1, silent), on(2, leaderless)},
			want: Step{
				Action: Wait, Reason: MemberDown,
				Message: "waiting for members that do not serve: m-1 does not answer; m-2 knows no leader",
			},
		},
		"MemberDownOverdue": {
			reason: "A crash loop that does not end needs a person",
			base:   formed3,
			args:   []change{on(2, stuck), on(2, overdue)},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16. Waiting has not helped: remove the cause",
			},
		},
		"MemberDownTriedInstead": {
			reason: "What the spec asks for instead cannot be pulled either",
			base:   formed3,
			args: []change{
				on(2, stuck), on(2, overdue), on(2, func(i *Instance) { i.Pod.ImageUnavailable = true }),
				func(d *Desired, _ *Observed) {
					d.Version, d.GivenUp = Version{3, 6, 15}, "m-2: with etcd 3.6.15 it cannot pull the image etcd:v3.6.15"
				},
			},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16. Waiting has not helped: remove the cause. Quorate tried the spec, and rolled it back (m-2: with etcd 3.6.15 it cannot pull the image etcd:v3.6.15). It tries the next change of the spec: set spec.version to another patch of the running minor, or spec.image.repository to a registry that has the image",
			},
		},
		"MemberDownDamaged": {
			reason: "One that will be replaced in time needs no person yet",
			base:   formed3,
			args:   []change{on(2, forsaken), on(2, func(i *Instance) { i.Pod.Forsaken = false }), func(d *Desired, _ *Observed) { d.Patience = "5m" }},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-2 is on a node that does not answer; a member that is down for 5m is replaced (spec.recovery.replaceAfter)",
			},
		},
		"MemberDownBeforeGrown": {
			reason: "A wish does not hide that a member is down",
			base:   formed3,
			args:   []change{on(2, silent), on(1, small)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},

		// expandVolumes
		"Grown": {
			reason: "Volumes grow under running members, all at once",
			base:   formed3,
			args:   []change{on(0, small), on(2, small)},
			want:   Step{Action: Expand, Members: []string{"m-0", "m-2"}, Reason: Changing, Message: "growing the volumes of m-0, m-2"},
		},
		// waitForExpansion
		"Growing": {
			reason: "A volume has been asked to grow, and the file system comes last",
			base:   formed3,
			args:   []change{on(1, func(i *Instance) { i.Volume.Growing = true })},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for the volumes of m-1 to grow"},
		},
		"GrowthStuck": {
			reason: "A driver that hangs, or a file system that only a mount lets grow, is no reason to keep a turn for ever",
			base:   formed3,
			args: []change{on(0, func(i *Instance) { i.Volume.Growing = true }), on(1, func(i *Instance) {
				i.Volume.Growing, i.Volume.Stuck = true, "has 1Gi of 2Gi (NodeResizePending)"
			})},
			want: Step{
				Action: Stall, Reason: Changing,
				Message: "waiting for the volumes of m-0, m-1 to grow: that of m-1 has 1Gi of 2Gi (NodeResizePending). To give it up, revert spec.storage.size and set spec.storage.changePolicy to Replace in the same apply: members whose volumes have not grown stay on them, and those whose volumes have grown are replaced one by one",
			},
		},
	})
}
