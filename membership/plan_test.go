package membership

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	etcd37   = Version{3, 7, 3}
	firstOf3 = First{Token: "new", Size: 3}
	earlier  = First{Token: "old", Size: 3}
)

// fresh is what an operator sees first of an EtcdCluster of three.
func fresh() (Desired, Observed) {
	d := Desired{Size: 3, Version: etcd36, Token: "new"}
	o := Observed{}
	for n := range 3 {
		o.Instances = append(o.Instances, Instance{Name: name(n), Ordinal: n})
	}
	return d, o
}

// formed3 is a cluster of three that has formed and is healthy.
func formed3() (Desired, Observed) {
	d, o := fresh()
	o.ClusterID, o.Reach = 0xc1, ReachQuorum
	for n := range o.Instances {
		i := &o.Instances[n]
		i.ID = ID(0xa0 + n)
		i.Volume = Volume{UID: fmt.Sprintf("volume-%d", n), ClusterID: 0xc1, MemberID: i.ID, First: firstOf3, Version: etcd36}
		i.Pod = Pod{UID: fmt.Sprintf("pod-%d", n)}
		i.Endpoint = Endpoint{ClusterID: 0xc1, MemberID: i.ID, Leader: 0xa0, Version: etcd36, RaftIndex: 9}
		o.Members = append(o.Members, Member{ID: i.ID, Name: i.Name, PeerURLs: []string{"http://" + i.Name + ".m.ns.svc:2380"}})
	}
	return d, o
}

// The changes that rows make, one fact each.

type change func(*Desired, *Observed)

func on(n int, change func(*Instance)) change {
	return func(_ *Desired, o *Observed) { change(&o.Instances[n]) }
}

func onAll(change func(*Instance)) change {
	return func(_ *Desired, o *Observed) {
		for n := range o.Instances {
			change(&o.Instances[n])
		}
	}
}

func size(n int) change                 { return func(d *Desired, _ *Observed) { d.Size = n } }
func ephemeral(d *Desired, _ *Observed) { d.Ephemeral = true }
func suspended(d *Desired, _ *Observed) { d.Suspended = true }
func deleted(d *Desired, _ *Observed)   { d.Deleting = true }

func noPod(i *Instance)         { i.Pod, i.Endpoint = Pod{}, Endpoint{} }
func noVolume(i *Instance)      { i.Volume = Volume{} }
func gone(i *Instance)          { noPod(i); noVolume(i) }
func silent(i *Instance)        { i.Endpoint = Endpoint{} }
func leaderless(i *Instance)    { i.Endpoint.Leader = 0 }
func unrecorded(i *Instance)    { i.Volume.ClusterID, i.Volume.MemberID = 0, 0 }
func going(i *Instance)         { i.Volume.Terminating = true }
func stopping(i *Instance)      { i.Pod.Terminating = true }
func foreignPod(i *Instance)    { i.Pod.Foreign = true }
func foreignVolume(i *Instance) { i.Volume.Foreign = true }
func outdated(i *Instance)      { i.Pod.Outdated = true }
func stuck(i *Instance) {
	silent(i)
	i.Pod.Problem, i.Pod.NeverRan = "cannot pull the image etcd:v3.6.16", true
}
func overdue(i *Instance) { i.Pod.Overdue = true }
func blankVolume(i *Instance) {
	i.Volume = Volume{UID: fmt.Sprintf("volume-%d", i.Ordinal), First: firstOf3, Version: etcd36}
}
func earlierVolume(i *Instance) { blankVolume(i); i.Volume.First = earlier }
func newPod(i *Instance)        { i.Pod = Pod{UID: fmt.Sprintf("pod-%d", i.Ordinal)} }

func noQuorum(_ *Desired, o *Observed) {
	o.Reach, o.Members = ReachSome, nil
	for n := range o.Instances {
		leaderless(&o.Instances[n])
	}
}

func nobodyAnswers(_ *Desired, o *Observed) {
	o.Reach, o.Members = ReachNone, nil
	for n := range o.Instances {
		silent(&o.Instances[n])
	}
}

func noLatch(_ *Desired, o *Observed) { o.ClusterID = 0 }

func intended(_ *Desired, o *Observed) {
	o.Bootstrapping = map[string]string{}
	for _, i := range o.Instances {
		o.Bootstrapping[i.Name] = fmt.Sprintf("volume-%d", i.Ordinal)
	}
}

func changed(parts ...string) change { return func(_ *Desired, o *Observed) { o.Pending = parts } }

// firstStart is a first start in which all members answer.
func firstStart() []change {
	return []change{noLatch, intended, onAll(unrecorded)}
}

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
		want   Step
	}{
		"Healthy": {
			reason: "A formed cluster at rest needs nothing",
			base:   formed3,
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// deleting
		"Deleting": {
			reason: "What is being deleted gets nothing new",
			base:   fresh,
			args:   []change{deleted},
			want:   Step{Action: None, Reason: Deleting, Message: "the cluster is being deleted"},
		},
		"DeletingBeforeForeign": {
			reason: "Nobody has to clear the way for a cluster that goes",
			base:   formed3,
			args:   []change{deleted, on(0, foreignPod)},
			want:   Step{Action: None, Reason: Deleting, Message: "the cluster is being deleted"},
		},

		// foreignInstance
		"ForeignPod": {
			reason: "A Pod with a name of ours is somebody else's",
			base:   fresh,
			args:   []change{on(1, newPod), on(1, foreignPod)},
			want: Step{
				Action: Stall, Reason: ForeignObject,
				Message: "the Pods m-1 belong to somebody else; delete or rename them, or give this EtcdCluster another name",
			},
		},
		"ForeignVolumeBeforeHibernated": {
			reason: "Nothing is touched, not even to hibernate",
			base:   formed3,
			args:   []change{size(0), on(1, foreignVolume), on(2, foreignVolume), on(2, foreignPod)},
			want: Step{
				Action: Stall, Reason: ForeignObject,
				Message: "the Pods m-2 and the PersistentVolumeClaims m-1, m-2 belong to somebody else; delete or rename them, or give this EtcdCluster another name",
			},
		},

		// mixedClusters
		"MixedVolume": {
			reason: "The status and a volume disagree about the cluster",
			base:   formed3,
			args:   []change{on(2, func(i *Instance) { gone(i); i.Volume = Volume{UID: "x", ClusterID: 0xc2, MemberID: 1} })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the status, the volume of m-0, m-0, the volume of m-1, m-1) and c2 (the volume of m-2); nothing is started or changed until only one is left",
			},
		},
		"MixedEndpointBeforeHibernated": {
			reason: "A member answers for another cluster: stopping it would hide that",
			base:   formed3,
			args:   []change{size(0), on(2, func(i *Instance) { i.Endpoint.ClusterID = 0xc2 })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the status, the volume of m-0, m-0, the volume of m-1, m-1, the volume of m-2) and c2 (m-2); nothing is started or changed until only one is left",
			},
		},
		"MixedWithoutStatus": {
			reason: "Without the status, no volume outvotes another",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), on(2, func(i *Instance) { i.Volume.ClusterID = 0xc2 })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the volume of m-0, the volume of m-1) and c2 (the volume of m-2); nothing is started or changed until only one is left",
			},
		},

		// hibernated
		"HibernatedStops": {
			reason: "Zero replicas: all Pods go at once, except those that are going",
			base:   formed3,
			args:   []change{size(0), on(1, stopping)},
			want:   Step{Action: Stop, Members: []string{"m-0", "m-2"}, Reason: Hibernating, Message: "stopping m-0, m-2; the volumes are kept"},
		},
		"HibernatedWaits": {
			reason: "It is not at rest before the last Pod is gone",
			base:   formed3,
			args:   []change{size(0), nobodyAnswers, on(0, noPod), on(1, stopping), on(2, noPod)},
			want:   Step{Action: Wait, Reason: Hibernating, Message: "waiting for m-1 to stop"},
		},
		"HibernatedBeforeStarted": {
			reason: "Volumes alone are the goal",
			base:   formed3,
			args:   []change{size(0), nobodyAnswers, onAll(noPod)},
			want:   Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
		"HibernatedFresh": {
			reason: "Nothing is provisioned for a cluster that begins with zero replicas",
			base:   fresh,
			args:   []change{size(0)},
			want:   Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
		"HibernatedEphemeral": {
			reason: "Data in memory would go with the Pods",
			base:   formed3,
			args:   []change{size(0), ephemeral},
			want:   Step{Action: Stall, Reason: InvalidSpec, Message: "spec.replicas 0 would lose the data of storage.medium Memory; set it back"},
		},

		// unstuck
		"Unstuck": {
			reason: "Pods that cannot run and were made from an earlier spec are made anew, together",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), on(0, stuck), on(0, outdated), on(2, stuck), on(2, outdated)},
			want: Step{
				Action: Stop, Members: []string{"m-0", "m-2"}, Reason: Replacing,
				Message: "replacing the Pods m-0, m-2, which do not run and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"UnstuckNotCurrent": {
			reason: "A new Pod of the same spec would be stuck as well",
			base:   formed3,
			args:   []change{on(2, stuck)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16"},
		},
		"UnstuckNotServing": {
			reason: "A member that answers is not stopped because its Pod has a problem",
			base:   formed3,
			args:   []change{on(2, outdated), on(2, func(i *Instance) { i.Pod.Problem = "exited with code 137" })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"UnstuckNotWithoutProblem": {
			reason: "A member that only starts slowly is left alone",
			base:   formed3,
			args:   []change{on(2, outdated), on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"UnstuckNotTerminating": {
			reason: "It is going already",
			base:   formed3,
			args:   []change{on(2, outdated), on(2, stuck), on(2, stopping)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16"},
		},
		"UnstuckNotEphemeralThatRan": {
			reason: "A Pod that has run holds its data in memory",
			base:   formed3,
			args:   []change{ephemeral, on(2, outdated), on(2, stuck), on(2, func(i *Instance) { i.Pod.NeverRan = false })},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16"},
		},
		"UnstuckEphemeral": {
			reason: "One that has never run holds nothing",
			base:   fresh,
			args:   []change{ephemeral, onAll(newPod), on(2, stuck), on(2, outdated)},
			want: Step{
				Action: Stop, Members: []string{"m-2"}, Reason: Replacing,
				Message: "replacing the Pods m-2, which do not run and never will: they have ended for good, or were made from an earlier spec",
			},
		},

		// lostWhileForming
		"LostWhileForming": {
			reason: "A first member may have voted on the volume that is gone",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), on(1, noVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volumes of m-1 were lost while the cluster was forming, before it served anybody; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingExchanged": {
			reason: "A volume of the same name is another volume",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), on(1, func(i *Instance) { i.Volume.UID = "another" })},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volumes of m-1 were lost while the cluster was forming, before it served anybody; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingGoing": {
			reason: "A volume that is being deleted under its Pod is as good as lost",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), on(1, going)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volumes of m-1 were lost while the cluster was forming, before it served anybody; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingRecorded": {
			reason: "The operator was interrupted while it recorded, and then a volume went",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, on(1, unrecorded), on(2, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-2"},
				Message: "the volumes of m-2 were lost while the cluster was forming, before it served anybody; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostWhileFormingEarlier": {
			reason: "An earlier EtcdCluster may have started etcd on the volume that is missing",
			base:   fresh,
			args:   []change{onAll(earlierVolume), on(0, noVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0"},
				Message: "the volumes of m-0 were lost while the cluster was forming, before it served anybody; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},

		// provisioned
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

		// bootstrapped
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
			reason: "While not every volume is recorded, nobody was served, and a Pod comes back as a first member",
			base:   formed3,
			args:   append(firstStart(), on(0, func(i *Instance) { i.Volume.ClusterID, i.Volume.MemberID = 0xc1, 0xa0 }), on(1, noPod)),
			want: Step{
				Action: Bootstrap, Members: []string{"m-1"}, First: firstOf3, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-1",
			},
		},

		// formed
		"Formed": {
			reason: "All first members answer and are in etcd's list, and nobody else",
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
			reason: "A list with somebody else is not that of a first start",
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

		// forming
		"FormingOverdue": {
			reason: "What does not start by itself needs a person",
			base:   formed3,
			args:   append(firstStart(), on(2, stuck), on(2, overdue)),
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for the first members to form a cluster: m-2 cannot pull the image etcd:v3.6.16. Waiting has not helped: remove the cause, or set the spec right; nothing was served yet, so the EtcdCluster and its PersistentVolumeClaims can also be deleted and applied again",
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

		// started
		"Start": {
			reason: "A deleted Pod comes back on its volume at once",
			base:   formed3,
			args:   []change{on(1, noPod)},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartAll": {
			reason: "All of them together, with nothing but the volumes to go by",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), onAll(func(i *Instance) { i.ID = i.Volume.MemberID })},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1, m-2 on the volumes that hold their data",
			},
		},
		"StartRetainedUnderNewToken": {
			reason: "An EtcdCluster that is applied again over retained volumes has their data, and is not bootstrapped",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), func(d *Desired, _ *Observed) { d.Token = "newer" }},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1, m-2 on the volumes that hold their data",
			},
		},
		"StartVersionOfVolume": {
			reason: "The version that ran on the volume can read it; the others follow in the next pass",
			base:   formed3,
			args: []change{
				nobodyAnswers, onAll(noPod), func(d *Desired, _ *Observed) { d.Version = etcd37 },
				on(2, func(i *Instance) { i.Volume.Version = etcd37 }),
			},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1 on the volumes that hold their data",
			},
		},
		"StartVersionUnknown": {
			reason: "A volume that does not say gets what the spec says",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, func(i *Instance) { i.Volume.Version = Version{} })},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartUnrecorded": {
			reason: "A volume of a known member whose record got lost is started: empty, it would refuse to",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, unrecorded)},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartNotUnrecordedOfAnotherStart": {
			reason: "A volume that was made for another first start is not this member's",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, earlierVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the data of m-1 is gone; the other members serve. No member is started empty under its old name, and replacing a member is not supported: save a snapshot, and restore it into a new EtcdCluster",
			},
		},
		"StartNotGoing": {
			reason: "A Pod on a volume that is being deleted would only lose it later",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, going)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the data of m-1 is gone; the other members serve. No member is started empty under its old name, and replacing a member is not supported: save a snapshot, and restore it into a new EtcdCluster",
			},
		},
		"StartNotWhileStopping": {
			reason: "The earlier Pod must be gone first",
			base:   formed3,
			args:   []change{on(1, silent), on(1, stopping)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 is terminating"},
		},
		"StartNotRemoved": {
			reason: "etcd would exit at once, for ever",
			base:   formed3,
			args:   []change{on(2, noPod), func(_ *Desired, o *Observed) { o.Members = o.Members[:2] }},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "spec.replicas is 3, and the cluster has 2 members: resizing a formed cluster is not supported, set it to 2 (or 0 to hibernate)",
			},
		},
		"StartNotAnotherMember": {
			reason: "The volume is of a member that etcd's list has under another ID",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, func(i *Instance) { i.Volume.MemberID = 0xff })},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the data of m-1 is gone; the other members serve. No member is started empty under its old name, and replacing a member is not supported: save a snapshot, and restore it into a new EtcdCluster",
			},
		},
		"StartWithStaleID": {
			reason: "A remembered ID may be of an earlier cluster; the record on the volume counts",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(noPod), onAll(func(i *Instance) { i.ID = 0xff })},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1, m-2 on the volumes that hold their data",
			},
		},
		"StartBeforeLostMajority": {
			reason: "What has data is started even where it cannot be a quorum: somebody may want to look at it",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, noPod), on(1, gone), on(2, gone)},
			want: Step{
				Action: Start, Members: []string{"m-0"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0 on the volumes that hold their data",
			},
		},

		// recorded
		"Record": {
			reason: "A member that answers proves whose data its volume holds",
			base:   formed3,
			args:   []change{on(1, unrecorded)},
			want: Step{
				Action: Record, Members: []string{"m-1"}, Reason: Recording,
				Message: "writing down whose data the volumes of m-1 hold",
			},
		},
		"RecordVersion": {
			reason: "The version that runs now is the one to start next time",
			base:   formed3,
			args: []change{
				func(d *Desired, _ *Observed) { d.Version = etcd37 },
				on(2, func(i *Instance) { i.Endpoint.Version = etcd37 }),
			},
			want: Step{
				Action: Record, Members: []string{"m-2"}, Reason: Recording,
				Message: "writing down whose data the volumes of m-2 hold",
			},
		},
		"RecordNotGoing": {
			reason: "What is being deleted is not written to",
			base:   formed3,
			args:   []change{on(1, unrecorded), on(1, going)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the volume of m-1 is being deleted, and goes when its Pod does; the other members serve. No member is started empty under its old name, and replacing a member is not supported: save a snapshot, and restore it into a new EtcdCluster",
			},
		},
		"RecordNotWithoutQuorum": {
			reason: "Only a linearizable list says who is a member",
			base:   formed3,
			args:   []change{noQuorum, on(1, unrecorded)},
			want: Step{
				Action: Wait, Reason: QuorumLost,
				Message: "no quorum answers: m-0 knows no leader; m-1 knows no leader; m-2 knows no leader",
			},
		},

		// lostMajority
		"LostMajority": {
			reason: "Too few volumes are left: nothing is started empty, ever",
			base:   formed3,
			args:   []change{noQuorum, on(1, gone), on(2, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1", "m-2"},
				Message: "the data of m-1, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. Bring the volumes back, or restore a snapshot into a new EtcdCluster; to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostMajorityOfForgotten": {
			reason: "After the status is lost too, the volume that is left knows how many there were",
			base:   formed3,
			args: []change{
				noLatch, noQuorum, on(1, gone), on(2, gone),
				on(1, func(i *Instance) { i.ID = 0 }), on(2, func(i *Instance) { i.ID = 0 }),
			},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1", "m-2"},
				Message: "the data of m-1, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. Bring the volumes back, or restore a snapshot into a new EtcdCluster; to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again",
			},
		},
		"LostAll": {
			reason: "Losing every volume never gives a silently empty cluster",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0", "m-1", "m-2"},
				Message: "every volume of the cluster is gone. No member is started empty under its old name. Bring the volumes back, or restore a snapshot into a new EtcdCluster; to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again",
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
			reason: "That nobody answers may be the network between them and the operator",
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
				Message: "no quorum answers: m-0 cannot pull the image etcd:v3.6.16; m-1 knows no leader; m-2 does not answer. Waiting has not helped: remove the cause; where a member's data is gone, bring its volume back, or restore a snapshot into a new EtcdCluster",
			},
		},

		// foreignMember
		"ForeignMember": {
			reason: "Members that we did not make are reported, by all that is known of them, and left alone",
			base:   formed3,
			args: []change{func(_ *Desired, o *Observed) {
				o.Members = append(o.Members, Member{ID: 0xff, Name: "x", PeerURLs: []string{"http://a:1", "http://b:1"}}, Member{ID: 0xfe, PeerURLs: []string{"http://c:1"}})
			}},
			want: Step{
				Action: Stall, Reason: ForeignMember,
				Message: "etcd lists members that Quorate did not make: fe (http://c:1), x ff (http://a:1, http://b:1); remove them with etcdctl member remove <ID>",
			},
		},

		// lostMember
		"LostMember": {
			reason: "One member's data is gone, the rest serves",
			base:   formed3,
			args:   []change{on(1, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-1"},
				Message: "the data of m-1 is gone; the other members serve. No member is started empty under its old name, and replacing a member is not supported: save a snapshot, and restore it into a new EtcdCluster",
			},
		},
		"LostMemberAndDoomed": {
			reason: "It warns while there is time",
			base:   formed3,
			args:   []change{on(0, going), on(2, gone)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-2", "m-0"},
				Message: "the data of m-2 is gone, and the volume of m-0 is being deleted, and goes when its Pod does; the other members serve. No member is started empty under its old name, and replacing a member is not supported: save a snapshot, and restore it into a new EtcdCluster",
			},
		},

		// alarmed
		"Alarms": {
			reason: "Each alarm with its remedy, the worse one first, before members that are not healthy for it",
			base:   formed3,
			args: []change{
				on(0, func(i *Instance) { i.Endpoint.Alarms = []Alarm{AlarmNoSpace} }),
				on(2, func(i *Instance) { i.Endpoint.Alarms = []Alarm{AlarmCorrupt} }),
			},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: "etcd has raised an alarm. CORRUPT: members disagree about the data, and etcd refuses reads and writes; compare them with etcdctl endpoint hashkv before anything else. NOSPACE: the database has reached its quota, and etcd refuses writes; compact, defragment one member after the other, then etcdctl alarm disarm",
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
				Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16. Waiting has not helped: remove the cause; where a member's data is gone, bring its volume back, or restore a snapshot into a new EtcdCluster",
			},
		},
		"MemberDownBeforeUnsupported": {
			reason: "A wish that cannot be granted does not hide that a member is down",
			base:   formed3,
			args:   []change{on(2, silent), size(5)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},

		// unsupported
		"Unsupported": {
			reason: "All that differs and cannot be done, by name",
			base:   formed3,
			args: []change{
				size(1), func(d *Desired, _ *Observed) { d.Version = etcd37 }, changed("options", "storage.size"),
			},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "spec.replicas is 1, and the cluster has 3 members: resizing a formed cluster is not supported, set it to 3 (or 0 to hibernate); " +
					"spec.version is 3.7.3, and m-0 runs 3.6.16: changing the version of a formed cluster is not supported, set it to 3.6.16; " +
					"spec.options has changed, and running members keep what they were started with: it is applied when a Pod is created, so delete the Pods one at a time, or set it back; " +
					"spec.storage.size is more than the volumes have: growing them is not supported, and the cluster serves on with what they have; where the storage class allows it, raise spec.resources.requests.storage of each PersistentVolumeClaim by hand",
			},
		},

		// suspended
		"SuspendedAct": {
			reason: "What would come next becomes a remark",
			base:   formed3,
			args:   []change{suspended, on(1, noPod)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: starting m-1 on the volumes that hold their data",
			},
		},
		"SuspendedStall": {
			reason: "So does a stall",
			base:   formed3,
			args:   []change{suspended, size(5)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: spec.replicas is 5, and the cluster has 3 members: resizing a formed cluster is not supported, set it to 3 (or 0 to hibernate)",
			},
		},
		"SuspendedAtRest": {
			reason: "Where nothing would come next, it is as healthy as without",
			base:   formed3,
			args:   []change{suspended},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if diff := cmp.Diff(tc.want, Plan(d, o)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
