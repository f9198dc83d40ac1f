package v1alpha1

// Condition types of an EtcdCluster. Ready, Available and Degraded are always present; Reconciling
// and Stalled only while they are True, and never both. So kstatus (Flux, Helm, kubectl wait) reads
// them without further configuration.
const (
	// ConditionReady: this generation of the spec is applied in full, every member is healthy, and
	// the Service for clients leads to one at least: a client that connects now is served.
	ConditionReady = "Ready"
	// ConditionAvailable: the cluster serves linearizable reads and writes now.
	ConditionAvailable = "Available"
	// ConditionDegraded: the cluster was formed, but has less redundancy or safety than the spec
	// asks for.
	ConditionDegraded = "Degraded"
	// ConditionReconciling: work is under way; the reason says which.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing goes on until a person acts; the message says how.
	ConditionStalled = "Stalled"
)

// Reasons. The reason of a step goes unchanged into conditions, events and logs.
const (
	// ReasonHealthy: all members are healthy voters and run what the spec says.
	//
	// What to do: nothing.
	ReasonHealthy = "Healthy"
	// ReasonHibernated: spec.replicas is 0; the volumes are kept and nothing runs.
	//
	// What to do: nothing. To start the members again, set spec.replicas to what it was.
	ReasonHibernated = "Hibernated"
	// ReasonHibernating: the members are being stopped because spec.replicas is 0.
	//
	// What to do: nothing; it ends when the last Pod has stopped.
	ReasonHibernating = "Hibernating"
	// ReasonSuspended: spec.suspend is true; nothing is changed.
	//
	// What to do: set spec.suspend to false when you have finished working by hand. The message
	// says what comes next.
	ReasonSuspended = "Suspended"
	// ReasonDeleting: the EtcdCluster is being deleted; nothing is created any more.
	//
	// What to do: nothing. What stays, and what keeps it from ending, is in
	// docs/install.md#what-deletes-what.
	ReasonDeleting = "Deleting"

	// ReasonProvisioning: volumes are being created.
	//
	// What to do: nothing. If it lasts, the message names the volume or Pod that is waited for; see
	// docs/troubleshooting.md#a-pod-does-not-start.
	ReasonProvisioning = "Provisioning"
	// ReasonBootstrapping: the first members are being started together, or are finding each other.
	//
	// What to do: nothing. If it lasts, the message says which member does not answer; see
	// docs/troubleshooting.md#a-new-cluster-does-not-become-ready.
	ReasonBootstrapping = "Bootstrapping"
	// ReasonRestoring: the snapshot from which the cluster is to start is being looked for, or the
	// first members are being restored from it.
	//
	// What to do: nothing. If it lasts, look at the Job and the Pods that the message names.
	ReasonRestoring = "Restoring"
	// ReasonRestoreFailed: the cluster cannot start from the snapshot that spec.bootstrap.restore
	// asks for; the message says why and what to write. Nothing was made yet, or nothing was
	// served.
	//
	// What to do: write what the message says. docs/backups.md#when-it-fails-1 has
	// spec.bootstrap.restore, docs/restore.md#what-it-says-and-what-to-do has EtcdRestores.
	ReasonRestoreFailed = "RestoreFailed"
	// ReasonReverting: an EtcdRestore was deleted before it was completed, and the former members
	// come back.
	//
	// What to do: nothing; it ends when the former members serve.
	ReasonReverting = "Reverting"
	// ReasonFormed: all first members answered as one cluster; from now on none of them may ever
	// start empty.
	//
	// What to do: nothing.
	ReasonFormed = "Formed"
	// ReasonStarting: Pods of known members are being created over their volumes, or are coming up.
	//
	// What to do: nothing. If it lasts, see docs/troubleshooting.md#a-pod-does-not-start.
	ReasonStarting = "Starting"
	// ReasonReplacing: a Pod that would never serve is being recreated: it has ended for good, or
	// was made from an earlier spec, or its kubelet would start its containers later than those of
	// a new one, or etcd of all first members runs and elects no leader.
	//
	// What to do: nothing.
	ReasonReplacing = "Replacing"
	// ReasonBackOff: there is no quorum, and the Pods of members that wait in their kubelets'
	// back-off are being recreated, because a new Pod starts at once.
	//
	// What to do: nothing at once. If it comes again and again, find out what ends etcd with
	// `kubectl logs --previous`; see docs/troubleshooting.md#etcd-ends-again-and-again.
	ReasonBackOff = "BackOff"
	// ReasonScalingUp: members are being added, because there are fewer voters than spec.replicas.
	//
	// What to do: nothing. If it lasts, the message says what is missing; to give up, set
	// spec.replicas back.
	ReasonScalingUp = "ScalingUp"
	// ReasonScalingDown: members are being removed, because there are more voters than
	// spec.replicas.
	//
	// What to do: nothing while Reconciling is True. To stop, revert spec.replicas. If Stalled is
	// True, do what the message says.
	ReasonScalingDown = "ScalingDown"
	// ReasonJoining: a learner is being started, or catches up, or becomes a voter.
	//
	// What to do: nothing while Reconciling is True. A learner of a large database takes minutes to
	// catch up. If Stalled is True, do what the message says.
	ReasonJoining = "Joining"
	// ReasonMemberLost: a member whose data is gone is being removed, for another one to take its
	// place.
	//
	// What to do: nothing. Find out who deleted the volume.
	ReasonMemberLost = "MemberLost"
	// ReasonMemberFailed: a member that was down for longer than spec.recovery.replaceAfter, or
	// replaceEmptyAfter, is being removed, for another one to take its place.
	//
	// What to do: nothing. Find out what happened to its node or volume.
	ReasonMemberFailed = "MemberFailed"
	// ReasonCorruptMember: a member whose data differs from that of a quorum is being removed, or
	// the alarm CORRUPT taken back.
	//
	// What to do: nothing at once. Find out what damaged the data (disk, node, storage); see
	// docs/membership.md#data-that-differs.
	ReasonCorruptMember = "CorruptMember"
	// ReasonDataDiffers: the data of the members differs, and no quorum of them is equal; or etcd
	// says that it differs (alarm CORRUPT), and that is not judged yet.
	//
	// What to do: decide which data is right, as the message says; see
	// docs/membership.md#data-that-differs.
	ReasonDataDiffers = "DataDiffers"
	// ReasonRetiring: the Pod or the volume of a former member is being deleted.
	//
	// What to do: nothing. If it lasts, a finalizer or a node that is gone keeps the Pod or the
	// volume.
	ReasonRetiring = "Retiring"
	// ReasonRecording: Quorate writes what a member said of itself on its volume or, with
	// spec.storage.medium Memory, on its Pod. A member on whose data a later minor of etcd has run
	// is then started with that minor.
	//
	// What to do: nothing.
	ReasonRecording = "Recording"
	// ReasonTerminating: an object that is going away must be gone first.
	//
	// What to do: nothing. If it lasts, a finalizer keeps that object: kubectl get it with -o yaml,
	// and look at metadata.finalizers. If it is a Pod, and its node is off for good, run kubectl
	// delete node with the name of the node.
	ReasonTerminating = "Terminating"
	// ReasonPodPending: a member does not run, and the message says why: image, scheduling, volume,
	// how etcd ended, or a node that does not answer.
	//
	// What to do: nothing if the message says when the member is replaced. Otherwise remove the
	// cause that the message names; see docs/troubleshooting.md#a-pod-does-not-start.
	ReasonPodPending = "PodPending"
	// ReasonMemberDown: a member does not answer, and its Pod does not say why.
	//
	// What to do: nothing for a minute. Then look at its Pod and its log; see
	// docs/troubleshooting.md#a-member-is-down.
	ReasonMemberDown = "MemberDown"
	// ReasonQuorumLost: too few members answer for reads and writes; those with a volume are
	// started.
	//
	// What to do: bring the nodes of the members back. See docs/troubleshooting.md#no-quorum.
	ReasonQuorumLost = "QuorumLost"
	// ReasonPodsNotReady: the members serve, and the Service for clients leads to none of them,
	// because something beside etcd keeps their Pods from being ready: another container, or a
	// readiness gate.
	//
	// What to do: make the containers or readiness gates ready that the message names; see
	// docs/membership.md#a-pods-readiness.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonUnreachable: no member answers the operator. Either no member runs, or the network is
	// closed.
	//
	// What to do: look at the Pods. If they do not run, see docs/troubleshooting.md#no-quorum. If
	// they are Ready, open the ports between the operator and the members; see
	// docs/troubleshooting.md#the-operator-reaches-no-member.
	ReasonUnreachable = "Unreachable"
	// ReasonAlarm: etcd has raised an alarm (NOSPACE or CORRUPT).
	//
	// What to do: for NOSPACE see docs/membership.md#a-full-database; for CORRUPT see
	// docs/membership.md#data-that-differs.
	ReasonAlarm = "Alarm"
	// ReasonCertificates: a Secret with certificates is missing, cannot be read or written, holds
	// what cannot be used, or expires soon; the message says which one, why and what to do. Running
	// members go on. Unless it only expires soon, no Pod is created or changed.
	//
	// What to do: correct the Secret or the right that the message names; see
	// docs/tls.md#what-it-says-and-what-to-do.
	ReasonCertificates = "Certificates"
	// ReasonAuthorityLost: Quorate cannot renew certificates, because the Secret of their authority
	// is missing, cannot be used or holds an authority that the members do not trust; or the
	// authority expires within half a year, or has expired, and another one is about to take its
	// place. The message says until when the cluster serves, and what to do.
	//
	// What to do: restore the Secret from a backup, or rotate the authority with the command in
	// the message; see docs/tls.md#when-an-authority-is-lost.
	ReasonAuthorityLost = "AuthorityLost"
	// ReasonIssued: an authority was created, or a certificate issued or renewed. It is the reason
	// of events.
	//
	// What to do: nothing.
	ReasonIssued = "Issued"
	// ReasonRotation: a rotation of a certificate authority began, or its next step did. It is the
	// reason of events.
	//
	// What to do: nothing where the event is about spec.tls.peer. For spec.tls.client let your
	// applications reload ca.crt (step 1) and their certificate (step 2); see docs/tls.md#rotation.
	ReasonRotation = "Rotation"
	// ReasonNotFormed: the cluster has not served yet.
	//
	// What to do: nothing. If it lasts, the condition Ready says why.
	ReasonNotFormed = "NotFormed"
	// ReasonServing: a quorum answered a linearizable read.
	//
	// What to do: nothing.
	ReasonServing = "Serving"

	// ReasonDataLost: the volume of a member is gone or holds another one's data; it is never
	// started empty.
	//
	// What to do: delete nothing but what the message names (a cluster that has never served can be
	// deleted and applied again). docs/restore.md#which-way-back says how to get the data back.
	ReasonDataLost = "DataLost"
	// ReasonVolumeReplaced: the volume of a member is another object than the one that its record
	// names, restored or copied; the message says how to accept it, and how to give the member up.
	// No member is started on it.
	//
	// What to do: accept the volume, or give up the member; see
	// docs/membership.md#volumes-from-a-backup-tool.
	ReasonVolumeReplaced = "VolumeReplaced"
	// ReasonClusterIDMismatch: data of several etcd clusters meets under one name.
	//
	// What to do: find out which volumes are of another cluster, and take them away. Where all are
	// wrong, restore a snapshot; see docs/restore.md#which-way-back.
	ReasonClusterIDMismatch = "ClusterIDMismatch"
	// ReasonForeignMember: etcd lists a member that Quorate did not make.
	//
	// What to do: run the command in the message, which removes that member.
	ReasonForeignMember = "ForeignMember"
	// ReasonForeignObject: an object with a name that Quorate needs has another owner, or is a
	// Secret without an owner of which nothing shows that it is the EtcdCluster's.
	//
	// What to do: delete the object that the message names if nothing needs it, or create the
	// EtcdCluster or EtcdBackup under another name. For a Secret, run the command in the message;
	// see docs/tls.md#the-secrets.
	ReasonForeignObject = "ForeignObject"
	// ReasonChanging: members are changed one after the other to what the spec says, or volumes
	// grow; the message says which, and what comes next.
	//
	// What to do: nothing while Reconciling is True. If Stalled is True, do what the message says:
	// a node has no room for spec.resources, a node is silent, or a volume does not grow. See
	// docs/upgrades.md#what-happens-and-in-which-order.
	ReasonChanging = "Changing"
	// ReasonQueued: as many clusters change what they run as may at a time (--max-changing); this
	// one waits for its turn. The message names the clusters of its namespace that have a turn and
	// took no step for more than a minute, and counts those of other namespaces.
	//
	// What to do: nothing, or find out why the clusters that the message names do not go on. To let
	// more clusters change at a time, raise `--max-changing` of the operator.
	ReasonQueued = "Queued"
	// ReasonBackingUp: a snapshot is being taken and verified, by the EtcdBackup that the message
	// names, before members come to another version.
	//
	// What to do: nothing. `kubectl describe` the EtcdBackup that the message names.
	ReasonBackingUp = "BackingUp"
	// ReasonBackupFailed: that snapshot could not be taken or verified, and no member is changed;
	// the message says why and what to do.
	//
	// What to do: remove the cause that the message names. Where it says that the EtcdBackup has
	// failed, delete that EtcdBackup too; else it goes on by itself. Or set
	// spec.backup.beforeChange to Disabled. See docs/backups.md#before-the-version-changes.
	ReasonBackupFailed = "BackupFailed"
	// ReasonDowngrading: etcd makes its data readable for an earlier minor, before members run
	// that.
	//
	// What to do: nothing.
	ReasonDowngrading = "Downgrading"
	// ReasonMoving: members are replaced, one by one, by new ones on volumes as spec.storage asks
	// for, because theirs are not that or are being deleted; the message says which, and what comes
	// next.
	//
	// What to do: nothing. To stop members that move because of spec.storage, set
	// spec.storage.changePolicy to Expand; those whose volumes are being deleted are replaced in
	// any case. See docs/upgrades.md#other-volumes.
	ReasonMoving = "Moving"
	// ReasonVolumeTooSmall: the database is too large for volumes as spec.storage asks for, and no
	// member is replaced.
	//
	// What to do: raise spec.storage.size, or compact and defragment; see
	// docs/upgrades.md#other-volumes.
	ReasonVolumeTooSmall = "VolumeTooSmall"
	// ReasonQuotaTooSmall: the database has reached, or nearly, the quota that
	// spec.options.quotaBackendSize asks for, and no member is changed.
	//
	// What to do: write the quota that the message names, or compact and defragment; see
	// docs/membership.md#a-full-database.
	ReasonQuotaTooSmall = "QuotaTooSmall"
	// ReasonChangeFailed: a member did not come up after an update, and was rolled back. Members
	// that were updated before it stay updated, and no further one is updated.
	//
	// What to do: correct or revert the spec: each change of it is tried. See
	// docs/upgrades.md#when-it-does-not-work.
	ReasonChangeFailed = "ChangeFailed"
	// ReasonVersionNotAllowed: there is no way from what runs to spec.version; the message says
	// which way there is.
	//
	// What to do: set spec.version as the message says; see
	// docs/upgrades.md#which-versions-can-be-reached.
	ReasonVersionNotAllowed = "VersionNotAllowed"
	// ReasonVersionMismatch: an image runs another version of etcd than its tag says.
	//
	// What to do: set spec.version to what the image holds, or have the image replaced, or pin it
	// with spec.image.digests.
	ReasonVersionMismatch = "VersionMismatch"
	// ReasonChangeNotSupported: the spec asks for a change that this version of Quorate cannot
	// carry out.
	//
	// What to do: revert that part of the spec, or do what the message says.
	ReasonChangeNotSupported = "ChangeNotSupported"
	// ReasonInvalidSpec: this version of Quorate refuses the spec: by its schema, which may be
	// newer than the spec, or because of a flag of etcd. Or the operator does not know its own
	// image.
	//
	// What to do: correct the field that the message names, or start the operator with
	// `--agent-image`.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonApplyFailed: an object of the cluster cannot be applied for now, or the API server does
	// not answer a dry run; it is tried again.
	//
	// What to do: nothing. If it lasts, the message has the words of the API server: a webhook or a
	// policy that fails.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonEnablingAuth: etcd is about to authenticate clients; the message says what is waited
	// for.
	//
	// What to do: nothing. If it lasts, look at the EtcdRole or EtcdUser that the message names.
	ReasonEnablingAuth = "EnablingAuth"
	// ReasonAuthChanged: etcd authenticates clients from now on, or not any more; or Quorate's own
	// user, or root, was changed.
	//
	// What to do: nothing, if the spec asks for it. That Quorate's own user had to be restored
	// means that a user with the role root changed it.
	ReasonAuthChanged = "AuthChanged"
	// ReasonAuthBlocked: etcd cannot be made to authenticate clients, or not to; the message says
	// why. What runs goes on as it is.
	//
	// What to do: what the message says; see docs/auth.md#what-it-says-and-what-to-do.
	ReasonAuthBlocked = "AuthBlocked"
	// ReasonAccessDenied: etcd authenticates clients, and refuses Quorate: its user is missing, or
	// has not the role root. Members serve, and none is changed.
	//
	// What to do: what the message says; see docs/auth.md#what-it-says-and-what-to-do.
	ReasonAccessDenied = "AccessDenied"
	// ReasonRefused: the API server refused an object made from the spec (quota, Pod Security, a
	// policy).
	//
	// What to do: remove the cause that the message names (a quota, Pod Security, a policy), or
	// revert the spec.
	ReasonRefused = "Refused"
)
