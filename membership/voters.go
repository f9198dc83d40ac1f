package membership

import (
	"cmp"
	"slices"
)

// What the rules of membership count. All of it is meaningful only where etcd's list was read
// linearizably.

// voters and learners of etcd's list, with what is known of them. Foreign members are reported by
// an earlier rule.
func (o Observed) voters() []Instance   { return o.listed(false) }
func (o Observed) learners() []Instance { return o.listed(true) }

func (o Observed) listed(learner bool) []Instance {
	return kept(o.Instances, func(i *Instance) bool {
		m := o.Member(i.ID)
		return m != nil && m.Learner == learner
	})
}

// serving counts the voters that serve, but for those of that name.
func (o Observed) serving(but string) int {
	n := 0
	for _, i := range o.voters() {
		if i.Serves() && i.Name != but {
			n++
		}
	}
	return n
}

// mayRemove: the rest forms a quorum of what is left. etcd's own check would let a member go that
// is down, whatever the others do (mayRemoveMember in server/etcdserver/server.go), and counts
// names instead of processes.
func (o Observed) mayRemove(i Instance) bool {
	n := len(o.voters())
	return n > 1 && o.serving(i.Name) >= Quorum(n-1)
}

// mayGrow: with one voter more, which counts as failing until it has proved otherwise, those that
// serve now still are a quorum. Promoting does not ask etcd for that (IsReadyToPromoteMember counts
// the learner as started). One member can only become two by taking the risk.
func (o Observed) mayGrow() bool {
	n := len(o.voters())
	return n == 1 || o.serving("") >= Quorum(n+1)
}

// allServe reports whether every voter serves.
func (o Observed) allServe() bool { return o.serving("") == len(o.voters()) }

// spares are made for members to come, those that can be used first.
func (o Observed) spares() []Instance {
	var spares []Instance
	for _, i := range o.Instances {
		if i.Volume.Spare && i.Volume.Exists() && o.Member(i.ID) == nil {
			spares = append(spares, i)
		}
	}
	slices.SortStableFunc(spares, func(a, b Instance) int { return cmp.Compare(usable(b), usable(a)) })
	return spares
}

// usable orders spares: one that is going cannot be used any more, nor one that was made of an
// earlier spec; one that is ready can be used now.
func usable(i Instance) int {
	switch {
	case i.Volume.Terminating || i.Pod.Terminating || i.Volume.Unfit != "":
		return 0
	case i.ready():
		return 2
	default:
		return 1
	}
}

// ready reports whether all is prepared for a member to come.
func (i Instance) ready() bool {
	return i.Volume.Spare && i.Volume.Stays() && i.Volume.Unfit == "" && i.Pod.Provisioned && !i.Pod.Terminating
}

// wanting is how many members are to come: those that the size lacks, and one for the member that
// has failed or is to move to another volume, which stays until its successor can be made.
func wanting(d Desired, o Observed) int {
	n := d.Size - len(o.voters()) - len(o.learners())
	_, failed := failed(d, o)
	if _, moves := moving(d, o); moves || failed {
		n++
	}
	return max(n, 0)
}

// failed is the voter that is to be replaced though its data may not be lost: the last of those
// that waiting has not brought back. With more voters than wanted it is the first to go anyway;
// with fewer, another one comes first, if it can: what has brought one down may bring down its
// successor as well.
func failed(d Desired, o Observed) (Instance, bool) {
	if len(o.voters()) < d.Size && o.mayGrow() {
		return Instance{}, false
	}
	for _, i := range slices.Backward(o.voters()) {
		if (i.Pod.Forsaken || i.emptied()) && !i.Volume.InDoubt() && i.Endpoint.Member() == 0 && len(o.voters()) <= d.Size && o.mayRemove(i) {
			return i, true
		}
	}
	return Instance{}, false
}

// emptied reports whether the volume of a voter came back empty, and not for a moment only: its
// data was there, it was told to find it, and it runs what it has served with.
func (i Instance) emptied() bool {
	return i.Pod.EmptyLong && i.Volume.Recorded() && !i.Pod.Unfenced && !i.changing()
}

// lost reports whether the data of a member is gone, or is going while its Pod ends.
func (o Observed) lost(i Instance) bool {
	return (!o.holds(i) && !i.Volume.InDoubt() || i.Volume.Terminating) && !o.Doomed(i)
}

// runningVersion is what a new member is to run: the lowest version that a member runs, since an
// older binary than the cluster's version does not start, and a newer one belongs to an upgrade.
func runningVersion(d Desired, o Observed) Version {
	lowest := Version{}
	for _, i := range o.Instances {
		if v := i.Endpoint.Version; i.Endpoint.Answered() && (lowest == (Version{}) || v.Compare(lowest) < 0) {
			lowest = v
		}
	}
	return cmp.Or(lowest, d.Version)
}
