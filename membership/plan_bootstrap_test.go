package membership

import "testing"

func TestPlanBootstrap(t *testing.T) {
	testPlan(t, map[string]planCase{
		// volumeLostWhileForming
		"LostWhileForming": {
			reason: "A first member may have voted on the volume that is gone",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), on(1, noVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volumes of m-1 were lost while the cluster was forming, before it served clients; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingExchanged": {
			reason: "A volume of the same name is another volume",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), on(1, func(i *Instance) { i.Volume.UID = "another" })},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volumes of m-1 were lost while the cluster was forming, before it served clients; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingGoing": {
			reason: "A volume that is being deleted under its Pod is as good as lost",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), on(1, going)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volumes of m-1 were lost while the cluster was forming, before it served clients; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingRecorded": {
			reason: "The operator was interrupted while it recorded, and then a volume went",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, on(1, unrecorded), on(2, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-2"},
				Message: "the volumes of m-2 were lost while the cluster was forming, before it served clients; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingEarlier": {
			reason: "An earlier EtcdCluster may have started etcd on the volume that is missing",
			base:   fresh,
			args:   []change{onAll(earlierVolume), on(0, noVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0"},
				Message: "the volumes of m-0 were lost while the cluster was forming, before it served clients; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},

		// provisionVolumes
		"Provision": {
			reason: "A fresh cluster gets all its volumes at once",
			base:   fresh,
			want: Step{
				Action: Provision, Members: []string{"m-0", "m-1", "m-2"}, First: firstOf3, Version: etcd36,
				Reason: Provisioning, Message: "creating the volumes of m-0, m-1, m-2",
			},
		},
		"ProvisionRest": {
			reason: "After a crash only what is missing is made, and what was made for another size is made over",
			base:   fresh,
			args:   []change{on(0, blankVolume), on(1, blankVolume), on(1, func(i *Instance) { i.Volume.First.Size = 1 })},
			want: Step{
				Action: Provision, Members: []string{"m-1", "m-2"}, First: firstOf3, Version: etcd36,
				Reason: Provisioning, Message: "creating the volumes of m-1, m-2",
			},
		},
		"ProvisionWaits": {
			reason: "A new volume cannot have the name of one that is still being deleted",
			base:   fresh,
			args:   []change{on(0, earlierVolume), on(0, going), on(1, earlierVolume), on(1, going)},
			want:   Step{Action: Wait, Reason: Terminating, Message: "waiting for the earlier volumes of m-0, m-1 to be gone"},
		},
		"ProvisionAfterDeletion": {
			reason: "Recorded volumes that are being deleted do not make the next cluster a formed one",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), onAll(going)},
			want:   Step{Action: Wait, Reason: Terminating, Message: "waiting for the earlier volumes of m-0, m-1, m-2 to be gone"},
		},

		// bootstrap
		"Bootstrap": {
			reason: "All first members start together",
			base:   fresh,
			args:   []change{onAll(blankVolume)},
			want: Step{
				Action: Bootstrap, Members: []string{"m-0", "m-1", "m-2"}, First: firstOf3, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-0, m-1, m-2",
			},
		},
		"BootstrapRest": {
			reason: "A Pod that was not made, or was deleted while the cluster forms, comes on the volume that was intended",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), on(0, newPod), on(2, newPod)},
			want: Step{
				Action: Bootstrap, Members: []string{"m-1"}, First: firstOf3, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-1",
			},
		},
		"BootstrapSizeIsFrozen": {
			reason: "A first start that has begun keeps its size, whatever the spec says now",
			base:   fresh,
			args:   []change{size(1), intended, onAll(blankVolume)},
			want: Step{
				Action: Bootstrap, Members: []string{"m-0", "m-1", "m-2"}, First: firstOf3, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-0, m-1, m-2",
			},
		},
		"BootstrapEarlier": {
			reason: "A first start that an earlier EtcdCluster began goes on with its token and size: its etcd may have run",
			base:   fresh,
			args:   []change{size(1), onAll(earlierVolume)},
			want: Step{
				Action: Bootstrap, Members: []string{"m-0", "m-1", "m-2"}, First: earlier, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-0, m-1, m-2",
			},
		},
		"BootstrapEphemeral": {
			reason: "Without volumes there is nothing to provision",
			base:   fresh,
			args:   []change{ephemeral},
			want: Step{
				Action: Bootstrap, Members: []string{"m-0", "m-1", "m-2"}, First: firstOf3, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-0, m-1, m-2",
			},
		},
		"BootstrapInterruptedRecord": {
			reason: "While not every volume is recorded, no client was served, and a Pod comes back as a first member",
			base:   formed3,
			args:   append(firstStart(), on(0, func(i *Instance) { i.Volume.ClusterID, i.Volume.MemberID = 0xc1, 0xa0 }), on(1, noPod)),
			want: Step{
				Action: Bootstrap, Members: []string{"m-1"}, First: firstOf3, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-1",
			},
		},

		// recordFormed
		"Formed": {
			reason: "All first members answer and are in etcd's list, and no other member",
			base:   formed3,
			args:   firstStart(),
			want: Step{
				Action: Record, Members: []string{"m-0", "m-1", "m-2"}, Reason: Formed,
				Message: "the cluster has formed with 3 members",
			},
		},
		"FormedNotByMajority": {
			reason: "The last one could not be told from one that lost its data",
			base:   formed3,
			args:   append(firstStart(), on(2, silent)),
			want: Step{
				Action: Wait, Reason: Bootstrapping,
				Message: "waiting for the first members to form a cluster: m-2 does not answer",
			},
		},
		"FormedNotWithoutVolume": {
			reason: "There is nothing to write it down on",
			base:   formed3,
			args:   append(firstStart(), ephemeral, on(2, noVolume)),
			want:   Step{Action: Wait, Reason: Bootstrapping, Message: "waiting for the first members to form a cluster"},
		},
		"FormedNotWithStranger": {
			reason: "A list with a foreign member is not that of a first start",
			base:   formed3,
			args: append(firstStart(), func(_ *Desired, o *Observed) {
				o.Members = append(o.Members, Member{ID: 0xff, Name: "stranger"})
			}),
			want: Step{Action: Wait, Reason: Bootstrapping, Message: "waiting for the first members to form a cluster"},
		},
		"FormedNotUnderAnotherName": {
			reason: "A member that answers at the address of another one proves nothing",
			base:   formed3,
			args:   append(firstStart(), on(2, func(i *Instance) { i.Endpoint.MemberID = 0xa1 })),
			want:   Step{Action: Wait, Reason: Bootstrapping, Message: "waiting for the first members to form a cluster"},
		},
		"FormedNotWithoutQuorum": {
			reason: "Only a linearizable list counts",
			base:   formed3,
			args:   append(firstStart(), noQuorum),
			want: Step{
				Action: Wait, Reason: Bootstrapping,
				Message: "waiting for the first members to form a cluster: m-0 knows no leader; m-1 knows no leader; m-2 knows no leader",
			},
		},

		// waitForForming
		"FormingOverdue": {
			reason: "What does not start by itself needs a person",
			base:   formed3,
			args:   append(firstStart(), on(2, stuck), on(2, overdue)),
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for the first members to form a cluster: m-2 cannot pull the image etcd:v3.6.16. Waiting has not helped: remove the cause, or correct the spec. Nothing was served yet: it is also safe to delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"FormingVoteless": {
			reason: "etcd of the only member may have ended before it had voted: with what that has left it never elects itself",
			base:   fresh,
			args:   append(aloneAtFirst(), on(0, idles)),
			want: Step{
				Action: Stop, Members: []string{"m-0"}, Reason: Replacing,
				Message: "recreating the Pod of m-0: etcd of all first members runs and elects no leader; it may have ended before it wrote a vote to its log",
			},
		},
		"FormingVotelessCleared": {
			reason: "That is not the reason then, and no network is: there is no other member",
			base:   fresh,
			args:   append(aloneAtFirst(), on(0, idles), on(0, func(i *Instance) { i.Pod.Cleared = true }), func(d *Desired, _ *Observed) { d.Namespace = "prod" }),
			want: Step{
				Action: Stall, Reason: Bootstrapping,
				Message: "waiting for the first members to form a cluster: m-0 runs and does not serve. etcd runs in m-0, the only member, and does not serve: its log says why (kubectl logs m-0 -n prod). If etcd of m-0 ended in its first second (kubectl logs --previous m-0 -n prod), remove the cause, and then kubectl delete pod m-0 -n prod",
			},
		},
		"FormingVotelessRestored": {
			reason: "What was made of a snapshot has votes in it",
			base:   fresh,
			args:   append(aloneAtFirst(), on(0, idles), on(0, func(i *Instance) { i.Volume.First.Snapshot = "sum monday" }), func(d *Desired, o *Observed) { d.Restore, o.Snapshot = true, ParseSnapshot("sum monday") }),
			want: Step{
				Action: Stall, Reason: Restoring,
				Message: "waiting for the first members to form a cluster, restored from snapshot monday: m-0 runs and does not serve. etcd runs in m-0, the only member, and does not serve: its log says why (kubectl logs m-0)",
			},
		},
		"FormingVotelessOfThree": {
			reason: "One is enough: the others vote for it, and are sent all",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), onAll(idles)},
			want: Step{
				Action: Stop, Members: []string{"m-0"}, Reason: Replacing,
				Message: "recreating the Pod of m-0: etcd of all first members runs and elects no leader; it may have ended before it wrote a vote to its log",
			},
		},
		"FormingIdle": {
			reason: "That has not helped: they may not reach each other",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), onAll(idles), on(0, func(i *Instance) { i.Pod.Cleared = true })},
			want: Step{
				Action: Stall, Reason: Bootstrapping,
				Message: "waiting for the first members to form a cluster: m-0 runs and does not serve; m-1 runs and does not serve; m-2 runs and does not serve. etcd runs in m-0, m-1, m-2, enough for a quorum, and does not serve. The members may not reach each other: allow port 2380 among them (NetworkPolicy, service mesh). Or a log says why: kubectl logs m-0. If etcd of m-0 ended in its first second (kubectl logs --previous m-0), remove the cause, and then kubectl delete pod m-0",
			},
		},
		"FormingMendedMemory": {
			reason: "The data of a first member goes with its Pod, and nothing was served of it",
			base:   fresh,
			args:   []change{ephemeral, onAll(newPod), on(1, outdated), on(1, func(i *Instance) { i.Pod.Problem = "exited with code 1" })},
			want: Step{
				Action: Stop, Members: []string{"m-1"}, Reason: Replacing,
				Message: "replacing the Pods m-1, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"FormingOtherSize": {
			reason: "It says why the size of the spec is not that of the first start",
			base:   formed3,
			args:   append(firstStart(), size(1), on(2, silent)),
			want: Step{
				Action: Wait, Reason: Bootstrapping,
				Message: "waiting for the first members to form a cluster: m-2 does not answer; this first start has 3 members, as the spec said when it began: if it cannot succeed, delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
	})
}

// aloneAtFirst is a first start of one member, whose Pod is there.
func aloneAtFirst() []change {
	return []change{
		size(1), func(_ *Desired, o *Observed) { o.Instances = o.Instances[:1] }, intended,
		on(0, blankVolume), on(0, func(i *Instance) { i.Volume.First.Size = 1 }), on(0, newPod),
	}
}

// idles: etcd has run for long, and has never served.
func idles(i *Instance) {
	i.Pod.Idle, i.Pod.IdleLong, i.Pod.UnreadyLong, i.Pod.Unfenced = true, true, true, true
}
