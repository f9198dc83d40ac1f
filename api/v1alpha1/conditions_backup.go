package v1alpha1

// Reasons of an EtcdBackup, beside those that it shares with an EtcdCluster. A failed attempt has
// the reason that its agent gives, such as AccessDenied, NoSuchBucket, StoreFull,
// CredentialsExpired, Unreachable, OtherCluster or Damaged.
const (
	// ReasonSaving: the snapshot is being taken and stored.
	//
	// What to do: nothing. If it lasts, `kubectl describe` the Job and its Pod.
	ReasonSaving = "Saving"
	// ReasonSaved: it is stored.
	//
	// What to do: nothing; the verification follows.
	ReasonSaved = "Saved"
	// ReasonVerifying: what is stored is being verified.
	//
	// What to do: nothing. If it lasts, `kubectl describe` the Job and its Pod.
	ReasonVerifying = "Verifying"
	// ReasonVerified: it is stored and verified.
	//
	// What to do: nothing.
	ReasonVerified = "Verified"
	// ReasonRetrying: an attempt has failed, and another one follows.
	//
	// What to do: nothing. The message has the failure, and docs/stores.md#when-it-fails what to do
	// where it is one of the store.
	ReasonRetrying = "Retrying"

	// ReasonClusterNotFound: there is no EtcdCluster of that name, or it is being deleted.
	//
	// What to do: create the EtcdCluster; or delete this object, and apply it again with the right
	// spec.clusterRef.name.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonNoStore: neither the EtcdBackup nor its EtcdCluster names a store.
	//
	// What to do: set spec.backup.store of the EtcdCluster; or delete the EtcdBackup, and apply it
	// again with spec.store.
	ReasonNoStore = "NoStore"
	// ReasonNoAgentImage: the operator does not know with which image to run agents.
	//
	// What to do: set QUORATE_IMAGE in the Deployment of the operator, or `--agent-image`; see
	// docs/backups.md#installing.
	ReasonNoAgentImage = "NoAgentImage"
	// ReasonResultLost: an attempt has ended, and its Pod is gone, and with it what came of it.
	//
	// What to do: nothing while it is tried again. When it was given up, create another EtcdBackup.
	ReasonResultLost = "ResultLost"
	// ReasonDeadlineExceeded: an attempt took longer than it may, and was ended.
	//
	// What to do: find out what the Pod waited for, or why the store is slow. When it was given up,
	// create another EtcdBackup.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonAgentFailed: the agent ended without a word, or with one that is no reason.
	//
	// What to do: read the log of the Job: `kubectl logs job/NAME --all-containers`.
	ReasonAgentFailed = "AgentFailed"
	// ReasonDamaged: what is stored is not what etcd sent.
	//
	// What to do: create another EtcdBackup, and find out what changed the object in the store.
	ReasonDamaged = "Damaged"

	// ReasonSnapshotDeleted: what was stored is deleted.
	//
	// What to do: nothing.
	ReasonSnapshotDeleted = "SnapshotDeleted"
	// ReasonSnapshotLeft: what was stored stays in the store, although spec.deletionPolicy is
	// Delete.
	//
	// What to do: if the snapshot is not wanted, delete it in the store: `quorate snapshot delete`.
	ReasonSnapshotLeft = "SnapshotLeft"
	// ReasonDeletionFailed: what was stored cannot be deleted for now; it is tried again.
	//
	// What to do: make the store reachable; or set spec.deletionPolicy to Retain, which leaves the
	// snapshot in the store. See docs/backups.md#deletion.
	ReasonDeletionFailed = "DeletionFailed"

	// ReasonScheduled: EtcdBackups are made when it is time.
	//
	// What to do: nothing.
	ReasonScheduled = "Scheduled"
	// ReasonInvalidSchedule: spec.schedule or spec.timeZone cannot be understood.
	//
	// What to do: correct spec.schedule or spec.timeZone.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonNeverFires: spec.schedule names no time that comes.
	//
	// What to do: correct the day of the month or the month in spec.schedule.
	ReasonNeverFires = "NeverFires"
	// ReasonStillRuns: an EtcdBackup has not ended, and another one is due since long.
	//
	// What to do: look at the conditions of the EtcdBackup that the message names, and at its Job;
	// or delete it.
	ReasonStillRuns = "StillRuns"
	// ReasonClockSkew: the clock of the operator, or of a Pod, is wrong.
	//
	// What to do: set the clock of the node that the message names.
	ReasonClockSkew = "ClockSkew"
	// ReasonPruned: an EtcdBackup was deleted that spec.retention does not keep.
	//
	// What to do: nothing.
	ReasonPruned = "Pruned"
)
