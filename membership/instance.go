package membership

import (
	"cmp"
	"fmt"
)

// Instance is what one member runs in and keeps its data on.
type Instance struct {
	Name    string
	Ordinal int
	// ID by which etcd knows the member: from its list, or from earlier looks; 0 where it was never
	// seen to be a member.
	ID       ID
	Volume   Volume
	Pod      Pod
	Endpoint Endpoint
	// Hash of its data, as it was compared with the other voters' since each of them started.
	Hash Hash
}

// Volume is where a member keeps its data. The zero Volume means that there is none.
type Volume struct {
	UID         string
	Terminating bool // marked for deletion: its data goes when the Pod does
	Foreign     bool // it belongs to another owner
	// ClusterID and MemberID were written on it after a member had answered with them from this
	// very volume.
	ClusterID, MemberID ID
	// First is the first start that it was made for.
	First First
	// Version that ran on it last. Next is the one to which its member is being changed, until the
	// member has answered from it.
	Version, Next Version
	// Replays says whether there may be entries of 3.5 in the log of its member, which 3.7 cannot
	// read; empty where there are none. Anything that is none of the values below is ReplaysAny.
	Replays string
	// Spare: it was made for a member to come, and nothing has ever run on it. Joins is the member
	// that it was then given to; from then on it belongs to that member alone, whatever is on it.
	Spare bool
	Joins ID
	// Capacity in bytes; 0 where it is not known.
	Capacity int64
	// Small: it is smaller than the spec asks for. Growing: it has been asked to grow, and has not
	// grown yet to what the spec asks for.
	Small, Growing bool
	// Stuck is how far it has come where it has not grown for long, and what to do, in words that
	// follow "its volume".
	Stuck string
	// Unfit is why it is not what the spec asks for, and cannot become that, in words that follow
	// "whose volume"; empty where it is or can, and where the spec does not ask for its member to
	// be replaced.
	Unfit string
	// Undecided: it is small, its member is to be replaced if it cannot grow, and the API server
	// has not told whether it can.
	Undecided bool
	// Replaced: it is another object than the one on which it was written whose data it holds.
	Replaced bool
	// Retired: its member was removed from the cluster, and it is kept for a person to look at.
	Retired bool
	// Aside is the UID of the EtcdRestore for which it was set aside: it has the data of before,
	// and nothing starts on it. Empty: it was not.
	Aside string
}

// The values of Volume.Replays.
const (
	ReplaysAny   = "any"   // a member that starts on the volume reads entries of 3.5
	ReplaysRisen = "risen" // so it does, and all members have been 3.6 with data of 3.6 since, and no downgrade was under way
	ReplaysPast  = "past"  // it reads none: the log was rewritten since. A new member may still be sent some, from memory
)

// Exists reports whether there is a volume that this cluster may use.
func (v Volume) Exists() bool { return v.UID != "" && !v.Foreign }

// Stays reports whether there is a volume that this cluster may use, now and later.
func (v Volume) Stays() bool { return v.Exists() && !v.Terminating }

// Recorded reports whether the volume is known to hold a member's data.
func (v Volume) Recorded() bool { return v.Exists() && v.ClusterID != 0 && v.MemberID != 0 }

// Pod is what a member runs in. The zero Pod means that there is none.
type Pod struct {
	UID         string
	Terminating bool
	Foreign     bool
	// Problem is why it does not run, in words that a person can act on; empty when it runs or
	// nothing is known.
	Problem string
	// Unstarted: its kubelet has started no etcd, and not said why, for longer than it takes to
	// attach a volume or to pull an image. That is not Overdue: it may come any time.
	Unstarted bool
	// NeverRan: no process of it has ever started, so nothing was written through it.
	NeverRan bool
	// Ended: it has ended for good, for example by eviction from a node that lacked space; nothing
	// starts its container again.
	Ended bool
	// Version that it is to run, as the name of its image has it.
	Version Version
	// Outdated: it was made from another spec than today's. Change is what it takes to make it
	// today's, at the version that comes next, and Parts the parts of the spec that lead to it.
	Outdated bool
	Change   Change
	Parts    []string
	// Quota is the size of the database at which etcd refuses writes there, and QuotaToBe what that
	// is when the Pod is what the spec asks for. Both in bytes; 0 where they are not known.
	Quota, QuotaToBe int64
	// InPlace are the changes toward the spec that need no new Pod, also where other parts of the
	// spec need one: ChangeImage and ChangeResources. It is set only where data is in memory.
	// RepairRefused is what the API server has said to the last Repair of this Pod. It is empty
	// where that may be tried: it was not refused, its pause is over, or the spec has changed.
	InPlace       []Change
	RepairRefused string
	// Undecided: it is not known whether its image can be changed where it is, or a policy for new
	// Pods would be passed by.
	Undecided bool
	// Changing: its image was changed under it, or its resources, and it has not answered from the
	// new ones yet.
	Changing bool
	// Resizing: so it is for its cpu and memory alone, which its kubelet has yet to give it, and
	// etcd runs on meanwhile.
	Resizing bool
	// Deferred is what the kubelet says where its node has had no room for them for longer than
	// waiting helps; else empty.
	Deferred string
	// Untried are the parts of the spec of which it was made and with which its member has never
	// served, where it is known with which it has. There is something to go back to then.
	Untried []string
	// Failing: it was tried more than once, and the next try is put off. Or its kubelet takes no
	// Pod that asks for what it asks for, or evicts each.
	Failing bool
	// ImageUnavailable: its kubelet can neither find nor pull the image of its etcd.
	ImageUnavailable bool
	// Unproved: its kubelet has not found etcd ready for long enough, since it was made or changed,
	// or etcd has crashed, for an answer to prove that it runs well. Crashed: etcd has ended by
	// itself before it was started last. Starved: it was killed for want of memory since the Pod
	// was changed.
	Unproved, Crashed, Starved bool
	// Outgrown is the minor of etcd 3 of which the data or the cluster is, where etcd has ended
	// because that is later than its own; 0: it has not.
	Outgrown int
	// Crashes: etcd has ended again and again by itself, and nothing that it or its kubelet said
	// has another cause than etcd, its data or its node.
	Crashes bool
	// PutOff: what it was changed to has not been tried even once, and is put off all the same,
	// since it ran there lately. A new Pod starts at once.
	PutOff bool
	// Overdue: the problem has lasted longer than waiting helps.
	Overdue bool
	// Damaged: the problem lies with the member's data or its node, and not with what time or a
	// person brings back, such as an image, an address or a place to run. Forsaken: it has lasted
	// for as long as the spec wants to wait.
	Damaged, Forsaken bool
	// Ready: its kubelet finds that etcd serves, whatever else keeps the Pod from being ready.
	// ReadyLong: for longer than waiting helps. UnreadyLong: etcd has started, and its kubelet has
	// found for longer than waiting helps that it does not serve.
	Ready, ReadyLong, UnreadyLong bool
	// Idle: etcd runs and does not serve, as its kubelet finds, for longer than etcd itself takes
	// to try once more to. IdleLong: for longer than waiting helps.
	Idle, IdleLong bool
	// Away: nothing is heard of its node, whether its etcd answers or not. AwayLong: for longer
	// than Kubernetes takes to delete its Pods.
	Away, AwayLong bool
	// Empty: etcd has ended because it found no data where it was told to find its own. EmptyLong:
	// for as long as the spec wants to wait for that.
	Empty, EmptyLong bool
	// BackOff: its kubelet waits before it starts etcd again, which something from outside has
	// ended. A new Pod starts at once. Young: the Pod was created too lately to be recreated for
	// that, or because it has ended.
	BackOff, Young bool
	// Unfenced: on an empty directory its process would start as a new member, as the first start
	// and a join need it.
	Unfenced bool
	// Cleared: a data directory with which its etcd would never vote was removed before that was
	// started, or cannot be.
	Cleared bool
	// Restoring: it has yet to make the data of its member of a snapshot, before etcd is started.
	Restoring bool
	// Expired is why all that its member trusts at a port has expired, in words that follow a
	// colon; empty where it has not. It takes no new connection there.
	Expired string
	// Provisions: no etcd runs in it. It is there for the volume to be made, and the image to be
	// pulled, on the node on which the member is to run. Provisioned: that is done.
	Provisions, Provisioned bool
}

// Change is what it takes to make a Pod what the spec asks for.
type Change string

// The changes, from the least to the greatest.
const (
	ChangeNone      Change = ""
	ChangeResources Change = "Resources" // cpu and memory, while it runs
	ChangeImage     Change = "Image"     // its container is started again, where it is
	ChangePod       Change = "Pod"       // it is recreated
)

// Exists reports whether there is a Pod, whosever it is.
func (p Pod) Exists() bool { return p.UID != "" }

// Endpoint is what a member itself answered when it was asked for its status. The zero Endpoint
// means no answer.
type Endpoint struct {
	ClusterID, MemberID ID
	Leader              ID // 0: it knows none
	Version             Version
	Learner             bool
	Revision            int64 // of the data
	RaftTerm            uint64
	RaftIndex           uint64 // the last log entry that it knows to be committed
	Applied             uint64 // of the raft log
	// DBSize is what the database takes on the disk, which etcd compares with its limit. InUse is
	// what it takes when it has been defragmented; old revisions are part of that until they are
	// compacted. Both in bytes.
	DBSize, InUse int64
	// Storage is the version of etcd that can read the data, as MAJOR.MINOR; zero where it is not
	// told, as before 3.6.
	Storage Version
	// Downgrade is the version to which the cluster is being downgraded; zero where it is not.
	Downgrade Version
	Alarms    []Alarm
	// Fetching is the member that runs there and has not answered, as its metrics tell, where it
	// follows no leader yet or has applied nothing of what that sends it. Its directory has been
	// begun, and has its ID: etcd writes that before it serves metrics (startNode in
	// server/etcdserver/raft.go of 3.5, bootstrapNewWAL in bootstrap.go since). It is told of a
	// learner alone; beside it only ClusterID and Version are known.
	Fetching ID
	// Publishing is the member that runs there and has not answered, where it follows a leader, has
	// applied what that has sent it, and serves no clients yet: it does so once it has proposed its
	// name and client URLs, and seen that applied. A member that was just added may miss it, since
	// it is part of the snapshot that it is sent, and proposes it again after the time-out of a
	// request, 5 s and two elections (publishV3 and ReqTimeout in server/etcdserver). Its metrics
	// tell this much; with it, and beside it, only ClusterID, Version and Applied are known.
	Publishing ID
}

// Alarm is an alarm that etcd has raised; it stays raised until it is disarmed. Every member knows
// of all.
type Alarm struct {
	Kind   AlarmKind
	Member ID // whose alarm it is; 0 where etcd could not tell
}

// AlarmKind is what an alarm warns of.
type AlarmKind string

// The alarms of etcd.
const (
	AlarmNoSpace AlarmKind = "NOSPACE"
	AlarmCorrupt AlarmKind = "CORRUPT"
)

// Answered reports whether the member answered.
func (e Endpoint) Answered() bool { return e.MemberID != 0 }

// Log is how much of the log the member has, for messages, behind its name; empty where that is
// unknown.
func (e Endpoint) Log() string {
	switch {
	case e.RaftIndex == 0:
		return ""
	case e.RaftTerm == 0:
		return fmt.Sprintf(" (log up to entry %d at least)", e.RaftIndex)
	default:
		return fmt.Sprintf(" (term %d, log up to entry %d at least)", e.RaftTerm, e.RaftIndex)
	}
}

// Member is the member that is known to run there: the one that answered, or that its metrics name;
// 0 where there is none.
func (e Endpoint) Member() ID { return cmp.Or(e.MemberID, e.Publishing, e.Fetching) }

// Healthy reports whether the member answered, follows or is a leader, and knows of no alarm.
func (e Endpoint) Healthy() bool { return e.Answered() && e.Leader != 0 && len(e.Alarms) == 0 }

// Serves reports whether the member takes part in the cluster: it answered, and follows or leads.
// The alarm CORRUPT says nothing against it: etcd names a member that differs from the leader, and
// the leader may be the one that is wrong.
func (i Instance) Serves() bool { return i.Endpoint.Answered() && i.Endpoint.Leader != 0 }

// Publishes reports whether the member follows a leader and serves no clients yet. As a voter it
// votes; it is not counted among those that serve before it answers.
func (i Instance) Publishes() bool { return !i.Endpoint.Answered() && i.Endpoint.Publishing != 0 }

// Leads reports whether the member leads.
func (i Instance) Leads() bool {
	return i.Endpoint.Answered() && i.Endpoint.Leader == i.Endpoint.MemberID
}
