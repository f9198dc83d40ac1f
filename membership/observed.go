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
	// Retain the volumes of members that were removed, for a person to look at; nothing ever runs
	// on them again.
	Retain bool
	// Room is how large the database may be on a volume as the spec asks for, in bytes; 0: as large
	// as it likes.
	Room int64
	// Request is the largest request that etcd takes, in bytes; 0: as large as it takes by itself.
	Request int64
	// Patience is how long a member may be down before it is replaced, as it is told to people;
	// empty where it is not told.
	Patience string
	// Namespace of the cluster, as it is told to people in commands; empty where it is not told.
	Namespace string
	// EmptyPatience is the same for one whose volume came back empty.
	EmptyPatience string
	// GivenUp is why the update that the spec asks for failed and was rolled back
	// (status.failedChange), such as "m-1: with etcd 3.7.3 it cannot pull the image"; empty: it did
	// not fail.
	GivenUp string
	// Base is the ordinal of the first member of a first start that is begun now.
	Base int
	// Restore: the cluster is to start from a stored snapshot, and not empty. Identity: it can read
	// an encrypted one.
	Restore, Identity bool
	// DiscardFormer is the UID of the EtcdRestore whose former volumes are to be deleted; empty:
	// those of none.
	DiscardFormer string
	// FromSurvivor, FromBackup: what is left is restored by itself where a majority is lost for
	// good; at most one of both. LossPatience is how long that is waited with, as it is told to
	// people.
	FromSurvivor, FromBackup bool
	LossPatience             string
	// Volume is the size of a volume as the spec asks for, in bytes; 0: it is not known.
	Volume int64
	// BackUp: a snapshot is to be stored and verified before the members come to another version.
	BackUp bool
}

// Observed is everything that Plan may know about one cluster.
type Observed struct {
	// ClusterID is the latch: once it was set, the cluster has formed, and no member ever starts
	// empty again.
	ClusterID ID
	// Reach says how far the operator got when it asked etcd.
	Reach Reach
	// Members is etcd's own member list, read linearizably; meaningless unless Reach is Quorum.
	Members []Member
	// Instances are all members that are known from anywhere (volumes, Pods, status, etcd's list),
	// and those that the spec asks for, by ordinal.
	Instances []Instance
	// Remembered: the IDs of Instances are those of a member list that was read earlier.
	Remembered bool
	// Fresh are names for members to come, by ordinal, which no member has ever had: a peer URL
	// names one incarnation, an add is idempotent by peer URL, and no Pod can adopt the volume of a
	// member that was removed.
	Fresh []string
	// Bootstrapping is the intent of a first start that was written down before any of its Pods was
	// created: the UID of the volume of each first member. Nil when there is none.
	Bootstrapping map[string]string
	// Snapshot from which the cluster starts, as it was chosen once and for ever; the zero Snapshot
	// before.
	Snapshot Snapshot
	// Search for it.
	Search Search
	// Copy of a former member's data for the first member.
	Copy Copy
	// Backup that is taken before the version changes.
	Backup Backup
	// InPlace is the restore in place that is asked for, or goes on.
	InPlace InPlace
	// Loss of a majority, as it is known from earlier looks.
	Loss Loss
	// GrowthRefused: the API server has refused larger volumes, for this spec.
	GrowthRefused bool
	// Former are the members of before a restore in place, by ordinal. They are no Instances.
	Former []Instance
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

// Formed reports whether the cluster has ever served: the latch says so, or its volumes do (an
// EtcdCluster that was created again over the volumes of an earlier one).
func (o Observed) Formed() bool { return o.ID() != 0 }

// ID is the ID of the cluster: the latch, or else what its volumes say; 0 while it has not formed.
// Volumes that are being deleted say nothing: a user that deletes an EtcdCluster and its volumes,
// and applies it again at once, wants a new cluster. Those that were restored say that nothing is
// ever to begin empty in their place.
func (o Observed) ID() ID {
	if o.ClusterID != 0 {
		return o.ClusterID
	}
	var id ID
	for _, i := range o.Instances {
		if !i.Volume.Recorded() || !i.Volume.Stays() || !i.Volume.Replaced && (o.exchanged(i) || o.recordIncomplete(i.Volume.First)) {
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

// recordIncomplete reports whether some volume of that first start is not recorded: the operator
// was interrupted while it wrote down that the cluster had formed, and goes on with that first.
func (o Observed) recordIncomplete(f First) bool {
	return slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return i.Volume.Stays() && !i.Volume.Recorded() && i.Volume.First == f
	})
}

// exchanged reports whether a first start has begun, and not on the volume that the instance has
// now.
func (o Observed) exchanged(i Instance) bool {
	return o.Bootstrapping != nil && o.Bootstrapping[i.Name] != i.Volume.UID
}

// known are the members that etcd has, as far as is known: its list, or those that were seen
// earlier, or, where even that is forgotten, those of the first start.
func (o Observed) known() []Instance {
	var first First
	for n := range o.Instances {
		i := &o.Instances[n]
		if !o.Remembered && i.Volume.Recorded() && i.Volume.ClusterID == o.ID() && i.Volume.First.Size > first.Size {
			first = i.Volume.First
		}
	}
	return kept(o.Instances, func(i *Instance) bool {
		if o.Reach == ReachQuorum {
			return o.Member(i.ID) != nil
		}
		return !i.Volume.Retired && (i.ID != 0 || first.Has(i.Ordinal))
	})
}

// Member of that ID in etcd's list; nil where it has none, or the list is not known.
func (o Observed) Member(id ID) *Member {
	n := slices.IndexFunc(o.Members, func(m Member) bool { return m.ID == id })
	if o.Reach != ReachQuorum || n < 0 {
		return nil
	}
	return &o.Members[n]
}

// holds reports whether the instance has a volume with the data of its member, as far as can be
// known without running it: it is recorded, or it was made for the first start of this cluster and
// the record was not written or got lost. In the second case it may be empty; an etcd that is told
// to join a cluster then exits, and harms nothing. What the volume says of its member counts for
// more than what is remembered, which may be of an earlier cluster; only etcd's own list counts for
// more.
func (o Observed) holds(i Instance) bool {
	if i.Volume.Retired || i.Volume.Replaced {
		return false
	}
	if !i.Volume.Recorded() {
		other := slices.ContainsFunc(o.Instances, func(j Instance) bool {
			return j.Volume.Recorded() && j.Volume.ClusterID == o.ID() && j.Volume.First != i.Volume.First
		})
		return i.Volume.Exists() && i.Volume.First.Size > 0 && i.ID != 0 && !other
	}
	return i.Volume.ClusterID == o.ID() && (o.Reach != ReachQuorum || i.ID == 0 || i.Volume.MemberID == i.ID)
}

// Lost reports whether the data of a member is gone, as far as can be known without running it. One
// that has yet to start for the first time has none to lose.
func (o Observed) Lost(i Instance) bool {
	return i.ID != 0 && !o.holds(i) && !i.Volume.InDoubt() && !i.Volume.Spare && i.Volume.Joins != i.ID
}

// names of the instances for which keep holds, in order.
func names(instances []Instance, keep func(Instance) bool) []string {
	var names []string
	for n := range instances {
		if keep(instances[n]) {
			names = append(names, instances[n].Name)
		}
	}
	return names
}

// kept are copies of these instances, in their order; nil where there are none. An instance is
// large, and there are few: they are copied once.
func kept(instances []Instance, keep func(*Instance) bool) []Instance {
	var kept []Instance
	for n := range instances {
		if !keep(&instances[n]) {
			continue
		}
		if kept == nil {
			kept = make([]Instance, 0, len(instances)-n)
		}
		kept = append(kept, instances[n])
	}
	return kept
}

// Quorum is how many of n voters must agree.
func Quorum(n int) int { return n/2 + 1 }
