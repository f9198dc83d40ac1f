package membership

import "testing"

func TestPlanInPlace(t *testing.T) {
	testPlan(t, map[string]planCase{
		// stopFormerMembers
		"Stop": {
			reason: "All former members stop at once",
			base:   replacing,
			want:   Step{Action: StopFormer, Members: []string{"m-0", "m-1", "m-2"}, Reason: Restoring, Message: "stopping the former members (m-0, m-1, m-2); their volumes are kept"},
		},
		"StopTheRest": {
			reason: "One that is stopping is not stopped again, and what has another owner is not ours",
			base:   replacing,
			args:   []change{former(0, stopping), former(1, foreignPod)},
			want:   Step{Action: StopFormer, Members: []string{"m-2"}, Reason: Restoring, Message: "stopping the former members (m-2); their volumes are kept"},
		},
		"Stopping": {
			reason: "Nothing is marked or made while a process of before may run",
			base:   replacing,
			args:   []change{onFormer(stopping), former(1, noPod)},
			want:   Step{Action: Wait, Members: []string{"m-0", "m-2"}, Reason: Restoring, Message: "waiting for the former members to stop (m-0, m-2)"},
		},
		"StoppingOnSilentNode": {
			reason: "Nothing but a person can tell that the node is off",
			base:   replacing,
			args:   []change{onFormer(stopping), former(1, func(i *Instance) { i.Pod.AwayLong = true })},
			want: Step{
				Action: Stall, Members: []string{"m-0", "m-1", "m-2"}, Reason: Restoring,
				Message: "waiting for the former members to stop (m-0, m-1, m-2). Nothing is heard of the nodes of m-1: once they are off, delete the Pods (kubectl -n ns delete pod m-1 --force)",
			},
		},
		"SetAside": {
			reason: "What has no volume that stays, or has the mark, gets none",
			base:   replacing,
			args:   []change{onFormer(noPod), former(0, going), former(2, asideEarlier)},
			want:   Step{Action: SetAside, Members: []string{"m-1"}, Reason: Restoring, Message: "setting aside the volumes of the former members (m-1)"},
		},
		"Provision": {
			reason: "New members come once all former volumes are set aside, with ordinals, token and snapshot of their own",
			base:   aside3,
			want: Step{
				Action: Provision, Members: []string{"m-3", "m-4", "m-5"}, First: inPlaceOf3, Version: etcd36,
				Reason: Provisioning, Message: "creating the volumes of m-3, m-4, m-5",
			},
		},
		"Bootstrap": {
			reason: "They start together",
			base:   aside3,
			args:   []change{onAll(inPlaceVolume)},
			want: Step{
				Action: Bootstrap, Members: []string{"m-3", "m-4", "m-5"}, First: inPlaceOf3, Version: etcd36, Reason: Bootstrapping,
				Message: "starting the first members m-3, m-4, m-5, restored from snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z)",
			},
		},
		"StopLate": {
			reason: "A former member that an operator with an old view has started stops first",
			base:   aside3,
			args:   []change{onAll(inPlaceVolume), former(1, newPod)},
			want:   Step{Action: StopFormer, Members: []string{"m-1"}, Reason: Restoring, Message: "stopping the former members (m-1); their volumes are kept"},
		},
		"StopAfterwards": {
			reason: "So it does after the new members have formed a cluster",
			base:   restoredInPlace,
			args:   []change{former(1, newPod)},
			want:   Step{Action: StopFormer, Members: []string{"m-1"}, Reason: Restoring, Message: "stopping the former members (m-1); their volumes are kept"},
		},
		"NotSetAsideAfterwards": {
			reason: "A person who takes a mark away then does not get it back",
			base:   restoredInPlace,
			args:   []change{former(1, unmarked)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"HibernatedLater": {
			reason: "That the spec wants no members comes after the former ones",
			base:   replacing,
			args:   []change{size(0)},
			want:   Step{Action: StopFormer, Members: []string{"m-0", "m-1", "m-2"}, Reason: Restoring, Message: "stopping the former members (m-0, m-1, m-2); their volumes are kept"},
		},

		// startOver
		"LostWhileForming": {
			reason: "A restore that cannot succeed is taken back by deleting the EtcdRestore",
			base:   aside3,
			args:   []change{onAll(inPlaceVolume), onAll(newPod), intended, on(1, noVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-4"},
				Message: "the volumes of m-4 were lost while the cluster was forming, before it served clients; delete EtcdRestore back: the former members come back with their data",
			},
		},
		"CannotBeFetched": {
			reason: "The same where the snapshot cannot be read",
			base:   aside3,
			args: []change{onAll(inPlaceVolume), onAll(newPod), intended, onAll(func(i *Instance) {
				i.Pod.Problem, i.Pod.Overdue = "cannot be restored: access denied", true
			})},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for the first members to form a cluster, restored from snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z): m-3 cannot be restored: access denied; m-4 cannot be restored: access denied; m-5 cannot be restored: access denied. Waiting has not helped: remove the cause, or correct the spec. Nothing was served yet: it is also safe to delete EtcdRestore back: the former members come back with their data",
			},
		},
		"SizeChanged": {
			reason: "A first start goes on with the size that it began with",
			base:   aside3,
			args:   []change{onAll(inPlaceVolume), onAll(newPod), intended, size(1)},
			want: Step{
				Action: Wait, Reason: Restoring,
				Message: "waiting for the first members to form a cluster, restored from snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z): m-3 does not answer; m-4 does not answer; m-5 does not answer; this first start has 3 members, as the spec said when it began: if it cannot succeed, delete EtcdRestore back: the former members come back with their data",
			},
		},

		// revertRestore
		"RevertStop": {
			reason: "The new members stop first",
			base:   reverting3,
			args:   []change{on(0, stopping)},
			want:   Step{Action: Stop, Members: []string{"m-4", "m-5"}, Reason: Reverting, Message: "stopping the members that were started from the snapshot (m-4, m-5): the EtcdRestore was deleted"},
		},
		"RevertDiscard": {
			reason: "Their volumes go while they stop, for nothing but the snapshot was ever written to them",
			base:   reverting3,
			args:   []change{onAll(stopping), on(0, going)},
			want:   Step{Action: Discard, Members: []string{"m-4", "m-5"}, Reason: Reverting, Message: "deleting the volumes of the members that were started from the snapshot (m-4, m-5)"},
		},
		"RevertWait": {
			reason: "No former member comes back before all of that is gone",
			base:   reverting3,
			args:   []change{onAll(stopping), onAll(going), on(0, gone), on(1, noPod), on(2, noVolume)},
			want:   Step{Action: Wait, Members: []string{"m-4", "m-5"}, Reason: Reverting, Message: "waiting for the members that were started from the snapshot to be gone (m-4, m-5)"},
		},
		"Readmit": {
			reason: "What stays and has the mark of this restore loses it; what an earlier one has set aside keeps it",
			base:   reverting3,
			args:   []change{onAll(gone), former(0, asideEarlier), former(1, going)},
			want:   Step{Action: Readmit, Members: []string{"m-2"}, Reason: Reverting, Message: "taking back the volumes of the former members (m-2)"},
		},
		"Revert": {
			reason: "Then the former members are those of the cluster again",
			base:   reverting3,
			args:   []change{onAll(gone), onFormer(unmarked), former(0, asideEarlier)},
			want:   Step{Action: Revert, Reason: Reverting, Message: "going on with the former members"},
		},
		"RevertBeforeFormerStop": {
			reason: "A former member that runs is left alone meanwhile",
			base:   reverting3,
			args:   []change{onAll(gone), onFormer(unmarked), onFormer(newPod)},
			want:   Step{Action: Revert, Reason: Reverting, Message: "going on with the former members"},
		},
		"RevertMixed": {
			reason: "What the new volumes say of another cluster holds nothing up",
			base:   reverting3,
			args:   []change{onAll(func(i *Instance) { i.Volume.ClusterID, i.Volume.MemberID = 0xc2, ID(i.Ordinal) }), on(0, func(i *Instance) { i.Volume.ClusterID = 0xc3 })},
			want:   Step{Action: Stop, Members: []string{"m-3", "m-4", "m-5"}, Reason: Reverting, Message: "stopping the members that were started from the snapshot (m-3, m-4, m-5): the EtcdRestore was deleted"},
		},

		// orphanedVolumes
		"Stray": {
			reason: "A status that was lost does not tell which data is wanted",
			base:   aside3,
			args:   []change{func(_ *Desired, o *Observed) { o.InPlace = InPlace{} }, former(1, going)},
			want: Step{
				Action: Stall, Members: []string{"m-0", "m-2"}, Reason: DataLost,
				Message: "a restore in place was interrupted, and Quorate does not know which data the cluster is to have. The data from before the restore is on the volumes of m-0, m-2. To use that: delete all other PersistentVolumeClaims of the cluster (kubectl -n ns get pvc -L etcd.quorate.dev/cluster shows the cluster of each), and then run kubectl -n ns annotate pvc m-0 m-2 etcd.quorate.dev/set-aside-. To use a snapshot, and lose the data from before the restore: delete the EtcdCluster and all its PersistentVolumeClaims, and apply it with spec.bootstrap.restore. See docs/restore.md#which-way-back",
			},
		},
		"StrayAsked": {
			reason: "Nor does an EtcdRestore that is asked for again",
			base:   aside3,
			args:   []change{asks(anyway), former(0, gone), former(1, gone)},
			want: Step{
				Action: Stall, Members: []string{"m-2"}, Reason: DataLost,
				Message: "a restore in place was interrupted, and Quorate does not know which data the cluster is to have. The data from before the restore is on the volumes of m-2. To use that: delete all other PersistentVolumeClaims of the cluster (kubectl -n ns get pvc -L etcd.quorate.dev/cluster shows the cluster of each), and then run kubectl -n ns annotate pvc m-2 etcd.quorate.dev/set-aside-. To use a snapshot, and lose the data from before the restore: delete the EtcdCluster and all its PersistentVolumeClaims, and apply it with spec.bootstrap.restore. See docs/restore.md#which-way-back",
			},
		},
		"StrayBesideFormed": {
			reason: "Where the new members have formed a cluster, their data is what is wanted",
			base:   restoredInPlace,
			args:   []change{noLatch},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
	})
}
