package membership

import "slices"

// The snapshot before a change of version. It is waited for by the rules that would begin such a change, and by no other: who is
// down is started, replaced and put back all the same, and so is a change carried on, or taken back, that has begun.

// Backup is the EtcdBackup of the change of version that this generation of the spec asks for.
type Backup struct {
	Name  string
	State BackupState
	// Says is what it says of itself; empty where it says nothing.
	Says string
}

// BackupState is how far it has come.
type BackupState int

// The states.
const (
	BackupNone     BackupState = iota // there is none
	BackupRuns                        // it has not ended
	BackupVerified                    // its snapshot is stored and verified
	BackupStalled                     // it waits for a person, and goes on when its obstacle is gone
	BackupGivenUp                     // it is not tried again
	BackupGoing                       // it is being deleted
	BackupForeign                     // what has its name is of another cluster, or of somebody else
)

// backedUp is the first step of a change of version, or what comes before it.
func (o Observed) backedUp(d Desired, first Step) Step {
	b := o.Backup
	if !d.BackUp || b.State == BackupVerified || o.underWayTo(d.Version) {
		return first
	}
	const untouched = ". No member is changed. "
	const without = "set spec.backup.beforeChange to Disabled, for the change to begin without a snapshot"
	step := Step{Action: Wait, Reason: BackingUp}
	switch b.State {
	case BackupNone:
		step.Action, step.Message = BackUp, "taking a snapshot with EtcdBackup "+b.Name+", before "+first.Message
	case BackupGoing:
		step.Message = "waiting for EtcdBackup " + b.Name + ", which is being deleted, to be gone, before " + first.Message
	case BackupStalled:
		step.Action, step.Reason = Stall, BackupFailed
		step.Message = "EtcdBackup " + b.Name + " cannot go on: " + b.Says + untouched + "Mend that, and it goes on by itself; or " + without
	case BackupGivenUp:
		step.Action, step.Reason = Stall, BackupFailed
		step.Message = "EtcdBackup " + b.Name + " has failed: " + b.Says + untouched + "Mend that and delete this EtcdBackup, for another one to be made; or " + without
	case BackupForeign:
		step.Action, step.Reason = Stall, ForeignObject
		step.Message = "EtcdBackup " + b.Name + " exists and was not made for this EtcdCluster" + untouched + "Delete it; or " + without
	default:
		step.Message = "waiting for EtcdBackup " + b.Name
		if b.Says != "" {
			step.Message += " (" + b.Says + ")"
		}
		step.Message += ", before " + first.Message
	}
	return step
}

// underWayTo reports whether the members are on their way to a version, or back to it: then some run it, or another minor than
// the others, or are being changed; or etcd prepares an earlier minor.
func (o Observed) underWayTo(version Version) bool {
	lowest, highest := span(running(o))
	return lowest.Minor != highest.Minor || o.downgrade() != (Version{}) || slices.ContainsFunc(o.voters(), func(i Instance) bool {
		return i.Endpoint.Version == version || i.Volume.changes() && i.Volume.Next != i.Endpoint.Version
	})
}
