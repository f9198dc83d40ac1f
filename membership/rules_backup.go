package membership

import "slices"

// The snapshot before a change of version (spec.backup.beforeChange). Only the rules that would
// begin such a change wait for it. Members that are down are started, replaced and rolled back
// meanwhile, and a change that has begun goes on or is rolled back.

// Backup is the EtcdBackup of the change of version that this generation of the spec asks for. One
// that is under way for an earlier generation serves for this one: the data is the same.
type Backup struct {
	Name  string
	State BackupState
	// Says is the message of the EtcdBackup; empty: there is none. If the EtcdBackup is being
	// deleted, Says is why it is not gone yet.
	Says string
}

// BackupState is the state of that EtcdBackup.
type BackupState int

// The states.
const (
	BackupNone     BackupState = iota // there is none
	BackupEarlier                     // the one that was made for an earlier spec has not ended: it serves for this one once it is told so
	BackupRuns                        // it has not ended
	BackupVerified                    // its snapshot is stored and verified
	BackupStalled                     // it waits for a person, and goes on when its obstacle is gone
	BackupGivenUp                     // it is not tried again
	BackupGoing                       // it is being deleted
	BackupForeign                     // the object of its name is of another cluster, or has another owner
)

// backedUp returns the first step of a change of version, or the step that takes the snapshot
// first.
func (o Observed) backedUp(d Desired, first Step) Step {
	b := o.Backup
	if !d.BackUp || b.State == BackupVerified || o.underWayTo(d.Version) {
		return first
	}
	const without = "set spec.backup.beforeChange to Disabled, for the change to begin without a snapshot"
	name, before := "EtcdBackup "+b.Name, ", before "+first.Message
	failed := Step{Action: Stall, Reason: BackupFailed}
	switch b.State {
	case BackupNone:
		return Step{Action: BackUp, Reason: BackingUp, Message: "taking a snapshot with " + name + before}
	case BackupEarlier:
		return Step{Action: BackUp, Reason: BackingUp, Message: "waiting for " + b.said() + before}
	case BackupGoing:
		if b.Says != "" {
			failed.Message = name + " is being deleted, and stays: " + b.Says + ". No member is changed. Mend that, and it goes on by itself; or " + without
			return failed
		}
		return Step{Action: Wait, Reason: BackingUp, Message: "waiting for " + name + ", which is being deleted, to be gone" + before}
	case BackupStalled:
		failed.Message = name + " cannot go on: " + b.Says + ". No member is changed. Mend that, and it goes on by itself; or " + without
		return failed
	case BackupGivenUp:
		failed.Message = name + " has failed: " + b.Says + ". No member is changed. Mend that and delete this EtcdBackup, for another one to be made; or " + without
		return failed
	case BackupForeign:
		return Step{
			Action: Stall, Reason: ForeignObject,
			Message: name + " exists and was not made for this EtcdCluster. No member is changed. Delete it; or " + without,
		}
	default:
		return Step{Action: Wait, Reason: BackingUp, Message: "waiting for " + b.said() + before}
	}
}

// said is the name of the EtcdBackup, with its message.
func (b Backup) said() string {
	if b.Says == "" {
		return "EtcdBackup " + b.Name
	}
	return "EtcdBackup " + b.Name + " (" + b.Says + ")"
}

// underWayTo reports whether the members are on their way to a version, or back to it: then some
// run it, or another minor than the others, or are being changed; or etcd prepares an earlier minor
// than they run.
func (o Observed) underWayTo(version Version) bool {
	lowest, highest := span(running(o))
	prepared := o.downgrade()
	return lowest.Minor != highest.Minor || prepared != (Version{}) && prepared.Minor < lowest.Minor || slices.ContainsFunc(o.voters(), func(i Instance) bool {
		return i.Endpoint.Version == version || i.Volume.Changes() && i.Volume.Next != i.Endpoint.Version
	})
}
