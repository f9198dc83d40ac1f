package v1alpha1

// Reasons of an EtcdBackup, beside those that it shares with an EtcdCluster. A failed attempt has the reason that its agent
// gives, such as AccessDenied, NoSuchBucket, StoreFull, CredentialsExpired, Unreachable, OtherCluster or Damaged.
const (
	// ReasonSaving: the snapshot is being taken and stored.
	ReasonSaving = "Saving"
	// ReasonSaved: it is stored.
	ReasonSaved = "Saved"
	// ReasonVerifying: what is stored is being verified.
	ReasonVerifying = "Verifying"
	// ReasonVerified: it is stored and verified.
	ReasonVerified = "Verified"
	// ReasonRetrying: an attempt has failed, and another one follows.
	ReasonRetrying = "Retrying"

	// ReasonClusterNotFound: there is no EtcdCluster of that name, or it is being deleted.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonNoStore: neither the EtcdBackup nor its EtcdCluster names a store.
	ReasonNoStore = "NoStore"
	// ReasonNoAgentImage: the operator does not know with which image to run agents.
	ReasonNoAgentImage = "NoAgentImage"
	// ReasonResultLost: an attempt has ended, and its Pod is gone, and with it what came of it.
	ReasonResultLost = "ResultLost"
	// ReasonDeadlineExceeded: an attempt took longer than it may, and was ended.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonAgentFailed: the agent ended without a word, or with one that is no reason.
	ReasonAgentFailed = "AgentFailed"
	// ReasonDamaged: what is stored is not what etcd sent.
	ReasonDamaged = "Damaged"

	// ReasonSnapshotDeleted: what was stored is deleted.
	ReasonSnapshotDeleted = "SnapshotDeleted"
	// ReasonSnapshotLeft: what was stored stays in the store, although spec.deletionPolicy is Delete.
	ReasonSnapshotLeft = "SnapshotLeft"
	// ReasonDeletionFailed: what was stored cannot be deleted for now; it is tried again.
	ReasonDeletionFailed = "DeletionFailed"

	// ReasonScheduled: EtcdBackups are made when it is time.
	ReasonScheduled = "Scheduled"
	// ReasonInvalidSchedule: spec.schedule or spec.timeZone cannot be understood.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonNeverFires: spec.schedule names no time that comes.
	ReasonNeverFires = "NeverFires"
	// ReasonStillRuns: an EtcdBackup has not ended, and another one is due since long.
	ReasonStillRuns = "StillRuns"
	// ReasonPruned: an EtcdBackup was deleted that spec.retention does not keep.
	ReasonPruned = "Pruned"
)
