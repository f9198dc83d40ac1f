package membership

import "strings"

// Action is the kind of a Step.
type Action string

// The actions. All but None, Wait and Stall have effects.
const (
	// None: everything is as wanted.
	None Action = "None"
	// Wait: something is under way that only time brings to an end.
	Wait Action = "Wait"
	// Stall: nothing goes on until a person acts, and what runs goes on running.
	Stall Action = "Stall"
	// Find looks for the snapshot from which the cluster is to start. Choose writes down the one
	// that was found, for ever.
	Find   Action = "Find"
	Choose Action = "Choose"
	// Provision creates the volumes of the named members: of first members, or of members to come,
	// these with a Pod each for the volume to be made.
	Provision Action = "Provision"
	// Bootstrap creates the Pods of the named members as first members of a cluster that has never
	// formed.
	Bootstrap Action = "Bootstrap"
	// Record writes on the volumes of the named members whose data they hold, as the members
	// themselves have said.
	Record Action = "Record"
	// Raise writes on the volume of the named member that a later version has run on it, as its
	// etcd or another one has told. With spec.storage.medium Memory it writes that on the Pod, and
	// changes the Pod to that version in place.
	Raise Action = "Raise"
	// Start creates the Pods of the named members over the volumes that hold their data.
	Start Action = "Start"
	// Stop deletes the Pods of the named members and keeps their volumes.
	Stop Action = "Stop"
	// AddLearner makes the named instance known to etcd as a member without a vote.
	AddLearner Action = "AddLearner"
	// Join creates the Pod of the named learner as a new member of the cluster that etcd lists.
	Join Action = "Join"
	// Promote gives the named learner a vote.
	Promote Action = "Promote"
	// Remove takes the named member out of etcd's list, for ever.
	Remove Action = "Remove"
	// MoveLeader gives the leadership to the named member.
	MoveLeader Action = "MoveLeader"
	// Update makes the named member's Pod what the spec asks for, its leadership handed over first.
	Update Action = "Update"
	// BackUp creates the EtcdBackup that is to be verified before the version changes, or takes the
	// one that is under way for an earlier spec.
	BackUp Action = "BackUp"
	// PutBack rolls the named member back: its Pod gets the image and options from before an update
	// that failed.
	PutBack Action = "PutBack"
	// Repair changes the image, or cpu and memory, of a Pod that does not serve in place:
	// recreating it would lose the data of the named member, which is in memory.
	Repair Action = "Repair"
	// Expand makes the volumes of the named members as large as the spec asks for.
	Expand Action = "Expand"
	// Downgrade tells etcd that the cluster is about to run an earlier minor. CancelDowngrade takes
	// that back.
	Downgrade       Action = "Downgrade"
	CancelDowngrade Action = "CancelDowngrade"
	// Disarm takes back the alarm of a kind that names a member, or none.
	Disarm Action = "Disarm"
	// Discard deletes the volumes of the named instances, which are no members, or marks those that
	// are to be kept.
	Discard Action = "Discard"
	// Replace writes down that all members are to be replaced by ones that start from the named
	// snapshot (EtcdRestore).
	Replace Action = "Replace"
	// StopFormer deletes the Pods of the named former members, and SetAside marks their volumes.
	// Readmit takes such a mark away, and DiscardFormer deletes the volumes.
	StopFormer    Action = "StopFormer"
	SetAside      Action = "SetAside"
	Readmit       Action = "Readmit"
	DiscardFormer Action = "DiscardFormer"
	// Recover creates the EtcdRestore of what is left where a majority is lost.
	Recover Action = "Recover"
	// CopyData begins to copy a former member's data to the volume of the named first member.
	CopyData Action = "CopyData"
	// Revert writes down that the former members are those of the cluster again.
	Revert Action = "Revert"
)

// Step is one decision. Only acts that are safe together name several members; what changes quorum
// is done one at a time.
type Step struct {
	Action  Action
	Members []string  // sorted by ordinal
	ID      ID        // Join, Promote, Remove, MoveLeader, Disarm: the member, as etcd knows it
	Alarm   AlarmKind // Disarm
	Version Version   // Provision, CopyData, Bootstrap, Start, Join, Update, PutBack, Repair, Downgrade: what the Pods run; Raise: what has run
	Change  Change    // Update, Repair: what it takes
	Alone   bool      // Update, PutBack: no other member has a vote, so that etcd does not serve until it is back
	First   First     // Bootstrap, CopyData, and Provision of first members: the first start that they belong to
	// Snapshot that was found (Choose).
	Snapshot Snapshot
	Reason   Reason // the same in condition, event and log
	Message  string // for people; the same as long as the facts are
	// Rule is the name of the rule that decided. Plan sets it; empty where Plan has not decided.
	Rule string
}

// First is a first start: what its members must agree about so that they form one cluster with one
// ID.
type First struct {
	Token string
	Size  int
	// Base is the ordinal of the first of them; the others follow. It is 0 but for a restore in
	// place.
	Base int
	// Snapshot from which they all start (Snapshot.ID); empty: they start empty.
	Snapshot string
}

// Has reports whether a member with that ordinal is one of the first start.
func (f First) Has(ordinal int) bool { return ordinal >= f.Base && ordinal < f.Base+f.Size }

// ChangesMembership reports whether the step changes the voters, or the leader: only one such act
// is under way at a time.
func (s Step) ChangesMembership() bool {
	switch s.Action {
	case AddLearner, Promote, Remove, MoveLeader:
		return true
	default:
		return false
	}
}

// Acts reports whether the step has an effect.
func (s Step) Acts() bool { return s.Action != None && s.Action != Wait && s.Action != Stall }

// String is the step in one line, for logs and failing tests.
func (s Step) String() string {
	return strings.Join(append([]string{string(s.Action)}, s.Members...), " ") + " (" + string(s.Reason) + "): " + s.Message
}
