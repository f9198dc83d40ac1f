package v1alpha1

// Condition types of an EtcdCluster. Ready, Available and Degraded are always present; Reconciling and Stalled only while
// they are True, and never both. So kstatus (Flux, Helm, kubectl wait) reads them without further configuration.
const (
	// ConditionReady: this generation of the spec is applied in full, every member is healthy, and the Service for clients leads to one at
	// least: a client that connects now is served.
	ConditionReady = "Ready"
	// ConditionAvailable: the cluster serves linearizable reads and writes now.
	ConditionAvailable = "Available"
	// ConditionDegraded: the cluster was formed, but has less redundancy or safety than the spec asks for.
	ConditionDegraded = "Degraded"
	// ConditionReconciling: work is under way; the reason says which.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing goes on until a person acts; the message says how.
	ConditionStalled = "Stalled"
)

// Reasons. The reason of a step goes unchanged into conditions, events and logs.
const (
	// ReasonHealthy: all members are healthy voters and run what the spec says.
	ReasonHealthy = "Healthy"
	// ReasonHibernated: spec.replicas is 0; the volumes are kept and nothing runs.
	ReasonHibernated = "Hibernated"
	// ReasonHibernating: the members are being stopped because spec.replicas is 0.
	ReasonHibernating = "Hibernating"
	// ReasonSuspended: spec.suspend is true; nothing is changed.
	ReasonSuspended = "Suspended"
	// ReasonDeleting: the EtcdCluster is being deleted; nothing is created any more.
	ReasonDeleting = "Deleting"

	// ReasonProvisioning: volumes are being created.
	ReasonProvisioning = "Provisioning"
	// ReasonBootstrapping: the first members are being started together, or are finding each other.
	ReasonBootstrapping = "Bootstrapping"
	// ReasonRestoring: the snapshot from which the cluster is to start is being looked for, or the first members are being
	// restored from it.
	ReasonRestoring = "Restoring"
	// ReasonRestoreFailed: the cluster cannot start from the snapshot that spec.bootstrap.restore asks for; the message says why
	// and what to write. Nothing was made yet, or nothing was served.
	ReasonRestoreFailed = "RestoreFailed"
	// ReasonReverting: an EtcdRestore was deleted before it was completed, and the former members come back.
	ReasonReverting = "Reverting"
	// ReasonFormed: all first members answered as one cluster; from now on none of them may ever start empty.
	ReasonFormed = "Formed"
	// ReasonStarting: Pods of known members are being created over their volumes, or are coming up.
	ReasonStarting = "Starting"
	// ReasonReplacing: a Pod that does not run and was made from an earlier spec is being recreated.
	ReasonReplacing = "Replacing"
	// ReasonBackOff: there is no quorum, and the Pods of members that wait in their kubelets'
	// back-off are being recreated, because a new Pod starts at once.
	ReasonBackOff = "BackOff"
	// ReasonScalingUp: members are being added, because there are fewer voters than spec.replicas.
	ReasonScalingUp = "ScalingUp"
	// ReasonScalingDown: members are being removed, because there are more voters than spec.replicas.
	ReasonScalingDown = "ScalingDown"
	// ReasonJoining: a learner is being started, or catches up, or becomes a voter.
	ReasonJoining = "Joining"
	// ReasonMemberLost: a member whose data is gone is being removed, for another one to take its place.
	ReasonMemberLost = "MemberLost"
	// ReasonMemberFailed: a member that was down for longer than spec.recovery.replaceAfter, or
	// replaceEmptyAfter, is being removed, for another one to take its place.
	ReasonMemberFailed = "MemberFailed"
	// ReasonCorruptMember: a member whose data differs from that of a quorum is being removed, or the alarm CORRUPT taken back.
	ReasonCorruptMember = "CorruptMember"
	// ReasonDataDiffers: the data of the members differs, and no quorum of them is equal.
	ReasonDataDiffers = "DataDiffers"
	// ReasonRetiring: the Pod or the volume of a former member is being deleted.
	ReasonRetiring = "Retiring"
	// ReasonRecording: what a member said of itself is being written down on its volume.
	ReasonRecording = "Recording"
	// ReasonTerminating: an object that is going away must be gone first.
	ReasonTerminating = "Terminating"
	// ReasonPodPending: a Pod cannot start yet, and the message says why (image, scheduling, volume).
	ReasonPodPending = "PodPending"
	// ReasonMemberDown: a member's Pod does not answer, or is restarting.
	ReasonMemberDown = "MemberDown"
	// ReasonQuorumLost: too few members answer for reads and writes; those with a volume are started.
	ReasonQuorumLost = "QuorumLost"
	// ReasonPodsNotReady: the members serve, and the Service for clients leads to none of them,
	// because something beside etcd keeps their Pods from being ready: another container, or a
	// readiness gate.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonUnreachable: no member answers the operator.
	ReasonUnreachable = "Unreachable"
	// ReasonAlarm: etcd has raised an alarm (NOSPACE or CORRUPT).
	ReasonAlarm = "Alarm"
	// ReasonCertificates: certificates are missing or wrong, so that no Pod is made and no member is
	// changed; the message says which and what to do. What runs goes on.
	ReasonCertificates = "Certificates"
	// ReasonAuthorityLost: Quorate can renew no certificates, because the key of their authority is
	// lost or another one; the message says until when the cluster serves, and what to do.
	ReasonAuthorityLost = "AuthorityLost"
	// ReasonIssued: certificates were issued or renewed. It is the reason of events.
	ReasonIssued = "Issued"
	// ReasonNotFormed: the cluster has not served yet.
	ReasonNotFormed = "NotFormed"
	// ReasonServing: a quorum answered a linearizable read.
	ReasonServing = "Serving"

	// ReasonDataLost: the volume of a member is gone or holds another one's data; it is never started empty.
	ReasonDataLost = "DataLost"
	// ReasonVolumeReplaced: the volume of a member is another object than the one that its record names, restored or copied; the
	// message says how to accept it, and how to give the member up. No member is started on it.
	ReasonVolumeReplaced = "VolumeReplaced"
	// ReasonClusterIDMismatch: data of several etcd clusters meets under one name.
	ReasonClusterIDMismatch = "ClusterIDMismatch"
	// ReasonForeignMember: etcd lists a member that Quorate did not make.
	ReasonForeignMember = "ForeignMember"
	// ReasonForeignObject: an object with a name that Quorate needs has another owner.
	ReasonForeignObject = "ForeignObject"
	// ReasonChanging: members come to run what the spec says, one after the other; the message says which, and what comes next.
	ReasonChanging = "Changing"
	// ReasonQueued: as many clusters change what they run as may at a time (--max-changing); this one is next in time.
	ReasonQueued = "Queued"
	// ReasonBackingUp: a snapshot is being taken and verified, by the EtcdBackup that the message
	// names, before members come to another version.
	ReasonBackingUp = "BackingUp"
	// ReasonBackupFailed: that snapshot could not be taken or verified, and no member is changed;
	// the message says why and what to do.
	ReasonBackupFailed = "BackupFailed"
	// ReasonDowngrading: etcd makes its data readable for an earlier minor, before members run that.
	ReasonDowngrading = "Downgrading"
	// ReasonMoving: members are replaced, one by one, by new ones on volumes as spec.storage asks
	// for, because theirs are not that or are being deleted; the message says which, and what comes
	// next.
	ReasonMoving = "Moving"
	// ReasonVolumeTooSmall: the database is too large for volumes as spec.storage asks for, and no member is replaced.
	ReasonVolumeTooSmall = "VolumeTooSmall"
	// ReasonQuotaTooSmall: the database has reached, or nearly, the quota that spec.options.quotaBackendSize asks for, and no member is
	// changed.
	ReasonQuotaTooSmall = "QuotaTooSmall"
	// ReasonChangeFailed: a member did not come up with what it was changed to, and was put back; no other member was changed.
	ReasonChangeFailed = "ChangeFailed"
	// ReasonVersionNotAllowed: there is no way from what runs to spec.version; the message says which way there is.
	ReasonVersionNotAllowed = "VersionNotAllowed"
	// ReasonVersionMismatch: an image runs another version of etcd than its tag says.
	ReasonVersionMismatch = "VersionMismatch"
	// ReasonChangeNotSupported: the spec asks for a change that this version of Quorate cannot carry out.
	ReasonChangeNotSupported = "ChangeNotSupported"
	// ReasonInvalidSpec: the spec is wrong in a way that the schema cannot show.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonApplyFailed: an object of the cluster cannot be applied for now; it is tried again.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonRefused: the API server refused an object made from the spec (quota, Pod Security, a policy).
	ReasonRefused = "Refused"
)
