package membership

import (
	"slices"
	"strconv"
)

// ID is etcd's own ID of a cluster or a member; 0 means that it is not known.
type ID uint64

// String is the ID as etcd prints it, in hexadecimal, and empty for 0.
func (id ID) String() string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(id), 16)
}

// ParseID reads what String wrote; anything else is 0.
func ParseID(s string) ID {
	id, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0 // not an ID: whatever is written there proves nothing about the data
	}
	return ID(id)
}

// Desired is what the spec asks for.
type Desired struct {
	Size      int     // voting members; 0 hibernates
	Version   Version // of every member
	Suspended bool    // no acts
	Deleting  bool    // the cluster is going away
	// Ephemeral: a volume lives and dies with its Pod, so there is nothing to provision.
	Ephemeral bool
	// Token of a first start that is begun now: unique for each incarnation of the cluster.
	Token string
}

// Observed is everything that Plan may know about one cluster.
type Observed struct {
	// ClusterID is the latch: once it was set, the cluster has formed, and no member ever starts empty again.
	ClusterID ID
	// Reach says how far the operator got when it asked etcd.
	Reach Reach
	// Members is etcd's own member list, read linearizably; meaningless unless Reach is Quorum.
	Members []Member
	// Instances are all members that are known from anywhere (volumes, Pods, status, etcd's list), and those that the spec
	// asks for, by ordinal.
	Instances []Instance
	// Bootstrapping is the intent of a first start that was written down before any of its Pods was created: the UID of
	// the volume of each first member. Nil when there is none.
	Bootstrapping map[string]string
	// Pending names the parts of the spec that running members do not have yet, sorted.
	Pending []string
}

// Reach is how far the operator got when it asked etcd.
type Reach int

// The values of Reach.
const (
	ReachNone   Reach = iota // no member answered
	ReachSome                // members answered, none could list the members linearizably
	ReachQuorum              // a linearizable member list was read
)

// Member is one entry of etcd's member list.
type Member struct {
	ID       ID
	Name     string // empty until the member has started for the first time
	PeerURLs []string
	Learner  bool
}

// Instance is what one member runs in and keeps its data on.
type Instance struct {
	Name    string
	Ordinal int
	// ID by which etcd knows the member: from its list, or from earlier looks; 0 where it was never seen to be a member.
	ID       ID
	Volume   Volume
	Pod      Pod
	Endpoint Endpoint
}

// Volume is where a member keeps its data. The zero Volume means that there is none.
type Volume struct {
	UID         string
	Terminating bool // marked for deletion: its data goes when the Pod does
	Foreign     bool // it belongs to somebody else
	// ClusterID and MemberID were written on it after a member had answered with them from this very volume.
	ClusterID, MemberID ID
	// First is the first start that it was made for.
	First First
	// Version that ran on it last.
	Version Version
}

// Exists reports whether there is a volume that this cluster may use.
func (v Volume) Exists() bool { return v.UID != "" && !v.Foreign }

// Stays reports whether there is a volume that this cluster may use, now and later.
func (v Volume) Stays() bool { return v.Exists() && !v.Terminating }

// Recorded reports whether the volume is known to hold a member's data.
func (v Volume) Recorded() bool { return v.Exists() && v.ClusterID != 0 && v.MemberID != 0 }

// VolumeSize is the part of the spec that volumes are made of, and Pods are not.
const VolumeSize = "storage.size"

// Pod is what a member runs in. The zero Pod means that there is none.
type Pod struct {
	UID         string
	Terminating bool
	Foreign     bool
	// Problem is why it does not run, in words that a person can act on; empty when it runs or nothing is known.
	Problem string
	// NeverRan: no process of it has ever started, so nothing was written through it.
	NeverRan bool
	// Ended: it has ended for good, for example by eviction from a node that lacked space; nothing starts its container again.
	Ended bool
	// Outdated: it was made from another spec than today's.
	Outdated bool
	// Overdue: the problem has lasted longer than waiting helps.
	Overdue bool
}

// Exists reports whether there is a Pod, whosever it is.
func (p Pod) Exists() bool { return p.UID != "" }

// Endpoint is what a member itself answered when it was asked for its status. The zero Endpoint means no answer.
type Endpoint struct {
	ClusterID, MemberID ID
	Leader              ID // 0: it knows none
	Version             Version
	Learner             bool
	RaftIndex           uint64
	DBSize              int64 // bytes
	Alarms              []Alarm
}

// Alarm is an alarm that etcd has raised; it stays raised until it is disarmed.
type Alarm string

// The alarms of etcd.
const (
	AlarmNoSpace Alarm = "NOSPACE"
	AlarmCorrupt Alarm = "CORRUPT"
)

// Answered reports whether the member answered.
func (e Endpoint) Answered() bool { return e.MemberID != 0 }

// Healthy reports whether the member answered, follows or is a leader, and knows of no alarm.
func (e Endpoint) Healthy() bool { return e.Answered() && e.Leader != 0 && len(e.Alarms) == 0 }

// Formed reports whether the cluster has ever served: the latch says so, or its volumes do (an EtcdCluster that was
// created again over the volumes of an earlier one).
func (o Observed) Formed() bool { return o.ID() != 0 }

// ID is the ID of the cluster: the latch, or else what its volumes say; 0 while it has not formed. Volumes that are being
// deleted say nothing: who deletes an EtcdCluster and its volumes, and applies it again at once, wants a new cluster.
func (o Observed) ID() ID {
	if o.ClusterID != 0 {
		return o.ClusterID
	}
	var id ID
	for _, i := range o.Instances {
		if !i.Volume.Recorded() || !i.Volume.Stays() || o.exchanged(i) || o.recordIncomplete(i.Volume.First) {
			continue
		}
		if id != 0 && id != i.Volume.ClusterID {
			return 0 // no choice between them is ours
		}
		id = i.Volume.ClusterID
	}
	return id
}

// Instance is the instance of that name; false where there is none.
func (o Observed) Instance(name string) (Instance, bool) {
	n := slices.IndexFunc(o.Instances, func(i Instance) bool { return i.Name == name })
	if n < 0 {
		return Instance{}, false
	}
	return o.Instances[n], true
}

// recordIncomplete reports whether some volume of that first start is not recorded: the operator was interrupted while
// it wrote down that the cluster had formed, and goes on with that first.
func (o Observed) recordIncomplete(f First) bool {
	return slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return i.Volume.Stays() && !i.Volume.Recorded() && i.Volume.First == f
	})
}

// exchanged reports whether a first start has begun, and not on the volume that the instance has now.
func (o Observed) exchanged(i Instance) bool {
	return o.Bootstrapping != nil && o.Bootstrapping[i.Name] != i.Volume.UID
}

// known are the members that etcd has, as far as anybody knows: its list, or those that were seen earlier, or were members
// of the first start.
func (o Observed) known() []Instance {
	first := 0
	for _, i := range o.Instances {
		if i.Volume.Recorded() && i.Volume.ClusterID == o.ID() {
			first = max(first, i.Volume.First.Size)
		}
	}
	var known []Instance
	for _, i := range o.Instances {
		switch {
		case o.Reach == ReachQuorum && o.member(i.ID) != nil, o.Reach != ReachQuorum && (i.ID != 0 || i.Ordinal < first):
			known = append(known, i)
		}
	}
	return known
}

// member of that ID in etcd's list.
func (o Observed) member(id ID) *Member {
	n := slices.IndexFunc(o.Members, func(m Member) bool { return m.ID == id })
	if o.Reach != ReachQuorum || n < 0 {
		return nil
	}
	return &o.Members[n]
}

// holds reports whether the instance has a volume with the data of its member, as far as can be known without running it:
// it is recorded, or it was made for the first start of this cluster and the record was not written or got lost. In the second case it may be
// empty; an etcd that is told to join a cluster then exits, and harms nothing. What the volume says of its member counts for
// more than what is remembered, which may be of an earlier cluster; only etcd's own list counts for more.
func (o Observed) holds(i Instance) bool {
	if !i.Volume.Recorded() {
		other := slices.ContainsFunc(o.Instances, func(j Instance) bool {
			return j.Volume.Recorded() && j.Volume.ClusterID == o.ID() && j.Volume.First != i.Volume.First
		})
		return i.Volume.Exists() && i.Volume.First.Size > 0 && i.ID != 0 && !other
	}
	return i.Volume.ClusterID == o.ID() && (o.Reach != ReachQuorum || i.ID == 0 || i.Volume.MemberID == i.ID)
}

// names of the instances for which keep holds, in order.
func names(instances []Instance, keep func(Instance) bool) []string {
	var names []string
	for _, i := range instances {
		if keep(i) {
			names = append(names, i.Name)
		}
	}
	return names
}

// Quorum is how many of n voters must agree.
func Quorum(n int) int { return n/2 + 1 }
