package membership

import (
	"fmt"
	"slices"
)

// Clusters of other sizes than that of the first start, and the members that come and go on the way
// there.

// formed1 is a cluster of one that has formed and is healthy.
func formed1() (Desired, Observed) {
	d, o := formed3()
	d.Size, o.Instances, o.Members = 1, o.Instances[:1], o.Members[:1]
	o.Instances[0].Volume.First.Size = 1
	o.Fresh = []string{"m-1", "m-2", "m-3", "m-4"}
	return d, o
}

// formed5 is a cluster that has grown from three to five.
func formed5() (Desired, Observed) {
	d, o := formed3()
	for _, change := range []change{size(5), voter(3), voter(4)} {
		change(&d, &o)
	}
	return d, o
}

// add an instance of the next ordinal, which then belongs to no other member.
func (o *Observed) add(n int) *Instance {
	o.Instances = append(o.Instances, Instance{Name: name(n), Ordinal: n})
	o.Fresh = slices.DeleteFunc(slices.Clone(o.Fresh), func(fresh string) bool { return fresh == name(n) })
	return &o.Instances[len(o.Instances)-1]
}

// spare is a volume for a member to come, with the Pod for which it was made.
func spare(n int) change { return func(_ *Desired, o *Observed) { prepare(o.add(n)) } }

func prepare(i *Instance) {
	i.Volume = Volume{UID: fmt.Sprintf("volume-%d", i.Ordinal), Spare: true, Version: etcd36}
	i.Pod = Pod{UID: fmt.Sprintf("pod-%d", i.Ordinal), Provisions: true, Provisioned: true}
}

func preparingStill(i *Instance) { i.Pod.Provisioned = false }

// listed is a spare that etcd has just been told of.
func listed(n int) change {
	return func(_ *Desired, o *Observed) {
		i := o.add(n)
		prepare(i)
		i.ID = ID(0xa0 + n)
		o.Members = append(o.Members, Member{ID: i.ID, PeerURLs: []string{"http://" + i.Name + ".m.ns.svc:2380"}, Learner: true})
	}
}

// learner has joined, and has all that makes it fit to vote.
func learner(n int) change {
	return func(d *Desired, o *Observed) {
		listed(n)(d, o)
		i := &o.Instances[len(o.Instances)-1]
		i.Volume = Volume{UID: i.Volume.UID, ClusterID: 0xc1, MemberID: i.ID, Joins: i.ID, Version: etcd36}
		i.Pod = Pod{UID: i.Pod.UID}
		i.Endpoint = Endpoint{ClusterID: 0xc1, MemberID: i.ID, Leader: 0xa0, Version: etcd36, Learner: true, RaftIndex: 9}
		o.Members[len(o.Members)-1].Name = i.Name
	}
}

// voter has been a learner.
func voter(n int) change {
	return func(d *Desired, o *Observed) {
		learner(n)(d, o)
		o.Instances[len(o.Instances)-1].Endpoint.Learner = false
		o.Instances[len(o.Instances)-1].Hash = equal
		o.Members[len(o.Members)-1].Learner = false
	}
}

// leader is the leader in the eyes of all that answer.
func leader(n int) change {
	return onAll(func(i *Instance) {
		if i.Endpoint.Answered() {
			i.Endpoint.Leader = ID(0xa0 + n)
		}
	})
}

// forsaken is a member that waiting has not brought back, and will not.
func forsaken(i *Instance) {
	silent(i)
	i.Pod.Problem = "is on a node that does not answer"
	i.Pod.Overdue, i.Pod.Damaged, i.Pod.Forsaken = true, true, true
}

// unfit is a member whose volume is not what the spec asks for.
func unfit(i *Instance) { i.Volume.Unfit = "is of another class" }
func fit(i *Instance)   { i.Volume.Unfit, i.Volume.Undecided = "", false }

// unsure is one whose volume is too small, and of which the API server has not told whether it can
// grow.
func unsure(i *Instance) { i.Volume.Small, i.Volume.Unfit, i.Volume.Undecided = true, "", true }

func room(bytes int64) change { return func(d *Desired, _ *Observed) { d.Room = bytes } }

func retain(d *Desired, _ *Observed) { d.Retain = true }
func unfenced(i *Instance)           { i.Pod.Unfenced = true }

// forgottenID is an instance that was no member when etcd's list was read last.
func forgottenID(i *Instance) { i.ID = 0 }
