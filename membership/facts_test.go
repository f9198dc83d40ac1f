package membership

import (
	"fmt"
	"slices"
)

var (
	etcd37   = Version{3, 7, 3}
	firstOf3 = First{Token: "new", Size: 3}
	earlier  = First{Token: "old", Size: 3}
	equal    = Hash{Revision: 7, Compacted: 2, Sum: 0xe0}
)

// fresh is what an operator sees first of an EtcdCluster of three.
func fresh() (Desired, Observed) {
	d := Desired{Size: 3, Version: etcd36, Token: "new"}
	o := Observed{Fresh: []string{"m-3", "m-4", "m-5", "m-6"}}
	for n := range 3 {
		o.Instances = append(o.Instances, Instance{Name: name(n), Ordinal: n})
	}
	return d, o
}

// formed3 is a cluster of three that has formed and is healthy.
func formed3() (Desired, Observed) {
	d, o := fresh()
	o.ClusterID, o.Reach, o.Remembered = 0xc1, ReachQuorum, true
	for n := range o.Instances {
		i := &o.Instances[n]
		i.ID = ID(0xa0 + n)
		i.Volume = Volume{UID: fmt.Sprintf("volume-%d", n), ClusterID: 0xc1, MemberID: i.ID, First: firstOf3, Version: etcd36}
		i.Pod = Pod{UID: fmt.Sprintf("pod-%d", n)}
		i.Endpoint = Endpoint{ClusterID: 0xc1, MemberID: i.ID, Leader: 0xa0, Version: etcd36, RaftIndex: 9}
		i.Hash = equal
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

func noPod(i *Instance)         { silent(i); i.Pod = Pod{} }
func noVolume(i *Instance)      { i.Volume = Volume{} }
func gone(i *Instance)          { noPod(i); noVolume(i) }
func silent(i *Instance)        { i.Endpoint, i.Hash = Endpoint{}, Hash{} }
func leaderless(i *Instance)    { i.Endpoint.Leader = 0 }
func unrecorded(i *Instance)    { i.Volume.ClusterID, i.Volume.MemberID, i.Volume.Replaced = 0, 0, false }
func going(i *Instance)         { i.Volume.Terminating = true }
func stopping(i *Instance)      { i.Pod.Terminating = true }
func foreignPod(i *Instance)    { i.Pod.Foreign = true }
func foreignVolume(i *Instance) { i.Volume.Foreign = true }
func outdated(i *Instance)      { i.Pod.Outdated = true }
func restored(i *Instance)      { i.Volume.Replaced = i.Volume.Recorded() }
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

// removed is the n-th instance after etcd has taken it out of its list.
func removed(n int) change {
	return func(_ *Desired, o *Observed) {
		o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(m Member) bool { return m.ID == o.Instances[n].ID })
	}
}

// alarm that the n-th member knows of.
func alarm(n int, kind AlarmKind, member ID) change {
	return on(n, func(i *Instance) { i.Endpoint.Alarms = append(i.Endpoint.Alarms, Alarm{Kind: kind, Member: member}) })
}

func noLatch(_ *Desired, o *Observed)   { o.ClusterID = 0 }
func forgotten(_ *Desired, o *Observed) { o.Remembered = false }

func intended(_ *Desired, o *Observed) {
	o.Bootstrapping = map[string]string{}
	for _, i := range o.Instances {
		o.Bootstrapping[i.Name] = fmt.Sprintf("volume-%d", i.Ordinal)
	}
}

// small is a volume that the spec wants to be larger.
func small(i *Instance) { i.Volume.Small = true }

// mislabel gives a member an image whose name says something else than what runs.
func mislabel(n int) change {
	return on(n, func(i *Instance) { i.Pod.Version = Version{3, 6, 1} })
}

// firstStart is a first start in which all members answer.
func firstStart() []change {
	return []change{noLatch, intended, onAll(unrecorded)}
}

// hash is what the data of a voter amounts to, at the revision of all the others.
func hash(n int, sum uint32) change {
	return on(n, func(i *Instance) { i.Hash = equal; i.Hash.Sum = sum })
}

// uncompared voters answer.
func uncompared(n ...int) change {
	return func(_ *Desired, o *Observed) {
		for _, n := range n {
			o.Instances[n].Hash = Hash{}
		}
	}
}

// corruptAlarm is an alarm that all know of that answer.
func corruptAlarm(id ID) change {
	return onAll(func(i *Instance) {
		if i.Endpoint.Answered() {
			i.Endpoint.Alarms = append(i.Endpoint.Alarms, Alarm{Kind: AlarmCorrupt, Member: id})
		}
	})
}
