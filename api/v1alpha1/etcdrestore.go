package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdRestore restores an existing etcd cluster in place, once: from a snapshot, or from the data
// of one member that is left (spec.source.survivor). The newest verified snapshot that fits
// spec.source is found first, while the cluster goes on. Then clients are shut out, all members are
// stopped, and their volumes are set aside; new members start from the snapshot, on new volumes and
// with a new cluster ID. Every write since the snapshot is lost. Until the new members have formed
// a cluster, deleting the EtcdRestore brings the former members back with their data. While
// spec.suspend is true, the EtcdRestore only writes to status.plan what it would do.
//
// An EtcdRestore is carried out once. Applying another one of the same name does nothing. To start
// a new cluster from a snapshot, use spec.bootstrap.restore of its EtcdCluster instead.
//
// +kubebuilder:object:root=true
// +kubebuilder:ac:generate=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=etcdr,categories=etcd
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The cluster serves the data of the snapshot"
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Snapshot,type=string,JSONPath=`.status.restored.name`
// +kubebuilder:printcolumn:name=Revision,type=integer,JSONPath=`.status.restored.revision`,priority=1,description="The revision of the snapshot"
// +kubebuilder:printcolumn:name=Taken,type=date,JSONPath=`.status.restored.takenAt`,description="When the snapshot was taken"
// +kubebuilder:printcolumn:name=Lost,type=string,JSONPath=`.status.plan.lost`,priority=1,description="Which writes are lost at most"
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type EtcdRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which cluster is restored, and from what. Only spec.suspend can be changed.
	// +required
	Spec EtcdRestoreSpec `json:"spec"`

	// status is what became of it; only Quorate writes it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EtcdRestoreStatus `json:"status,omitempty"`
}

// EtcdRestoreList is a list of EtcdRestore.
//
// +kubebuilder:object:root=true
type EtcdRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdRestore `json:"items"`
}

// EtcdRestoreSpec says which cluster is restored, and from what.
//
// +kubebuilder:validation:XValidation:rule="self.clusterRef == oldSelf.clusterRef && has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source) && has(self.whenServing) == has(oldSelf.whenServing) && (!has(self.whenServing) || self.whenServing == oldSelf.whenServing) && has(self.formerVolumes) == has(oldSelf.formerVolumes) && (!has(self.formerVolumes) || self.formerVolumes == oldSelf.formerVolumes)",message="only spec.suspend can be changed: create another EtcdRestore"
type EtcdRestoreSpec struct {
	// clusterRef names the EtcdCluster, of the same namespace. It must have formed.
	// +required
	ClusterRef ClusterReference `json:"clusterRef"`

	// source says which snapshot, or which member. Default: the newest verified snapshot of this
	// cluster in spec.backup.store of its EtcdCluster.
	// +optional
	Source RestoreSource `json:"source,omitempty"`

	// whenServing is what is done with a cluster that has a quorum. Refuse (default): this
	// EtcdRestore is refused for good, and the cluster goes on, since all that was written after
	// the snapshot would be lost. Replace: it is restored all the same.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;Replace
	WhenServing ServingPolicy `json:"whenServing,omitempty"`

	// formerVolumes is what becomes of the PersistentVolumeClaims of the former members once all
	// members of the restored cluster are healthy. Retain (default): they stay, with the annotation
	// etcd.quorate.dev/set-aside, and no member starts on them; delete them by hand. Delete: they
	// are deleted. Until the restored cluster has formed they stay in any case. Those that
	// storage.retention.whenScaled has kept of members that were removed before are set aside as
	// well, and are never deleted.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	FormerVolumes RetentionPolicy `json:"formerVolumes,omitempty"`

	// suspend stops the EtcdRestore before it changes anything. While it is true, Quorate finds the
	// snapshot or the member, checks what can be checked, writes status.plan, and does not touch
	// the cluster; other EtcdRestores of the cluster wait. When it is set to false, the plan is
	// carried out, from exactly the snapshot or the member that it names. Once the restore has
	// begun to stop members, suspend changes nothing. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// RestoreSource says from what a cluster is restored: a stored snapshot, or the data of a member
// that is left. Without cluster, clusterID, snapshot, backupRef and survivor it is a snapshot of
// the cluster that is restored, by its namespace and name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.survivor) || !has(self.backupRef) && !has(self.store) && !has(self.snapshot) && !has(self.before) && !has(self.cluster) && !has(self.clusterID) && !has(self.identity) && !has(self.unverified)",fieldPath=".survivor",message="spec.source.survivor takes the data of a member, and no snapshot: beside it, write spec.source.revisionBump alone"
// +kubebuilder:validation:XValidation:rule="!has(self.backupRef) || !has(self.store) && !has(self.snapshot) && !has(self.before) && !has(self.cluster) && !has(self.clusterID)",fieldPath=".backupRef",message="spec.source.backupRef says where the snapshot is and what it is called: leave out spec.source.store, snapshot, before, cluster and clusterID"
type RestoreSource struct {
	BootstrapRestore `json:",inline"`

	// backupRef names a verified EtcdBackup of the same namespace, whose snapshot is taken.
	// +optional
	BackupRef *BackupReference `json:"backupRef,omitempty"`

	// survivor takes the data of a member of the cluster itself, which has lost the majority of its
	// members for good. It has every write of which that member knows; what the lost members
	// acknowledged without it is lost.
	// +optional
	Survivor *Survivor `json:"survivor,omitempty"`
}

// Survivor is a member that still has its data where the majority of its cluster has not.
type Survivor struct {
	// member is its name, such as db-1. Default: the only member whose volume is there, if it
	// answers, is no learner and is under no alarm CORRUPT. Otherwise name the one to take: no
	// other is looked at.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member,omitempty"`
}

// BackupReference names an EtcdBackup of the same namespace.
type BackupReference struct {
	// name of the EtcdBackup.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	Name string `json:"name"`
}

// ServingPolicy is what a restore does to a cluster that has a quorum.
type ServingPolicy string

// The policies.
const (
	ServingRefuse  ServingPolicy = "Refuse"
	ServingReplace ServingPolicy = "Replace"
)

// EtcdRestoreStatus is what became of a restore.
type EtcdRestoreStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always: True once the cluster has formed from the snapshot, and its
	// clients can come; and Reconciling and Stalled, only while True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// plan is what the restore does, or has done, as known before the first member is stopped.
	// While spec.suspend is true, it is written once nothing else stands against the restore;
	// otherwise it is written when the restore begins.
	// +optional
	Plan *RestorePlan `json:"plan,omitempty"`

	// restored is the snapshot; empty until one was chosen.
	// +optional
	Restored *RestoredSnapshot `json:"restored,omitempty"`

	// formerClusterID is etcd's own ID of the cluster before the restore, in hexadecimal.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	FormerClusterID string `json:"formerClusterID,omitempty"`

	// clusterID is etcd's own ID of the restored cluster, in hexadecimal. Once it is there, the
	// restore cannot be reverted.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// startedAt is when the former members began to be stopped.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// completedAt is when the Service for clients led to a member of the restored cluster.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}

// ClusterRestore is an EtcdRestore as its EtcdCluster carries it out. It is copied from the
// EtcdRestore once. Later only the deletion of the EtcdRestore counts, and its spec.suspend until
// the restore begins.
type ClusterRestore struct {
	// name of the EtcdRestore.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the EtcdRestore.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// phase is how far it is. Pending, Blocked: it has not begun, and the cluster goes on.
	// Restoring: the former members are stopped, and new ones start from the snapshot. Reverting:
	// the EtcdRestore was deleted, and the former members come back. Completed and Refused are the
	// ends.
	// +required
	// +kubebuilder:validation:Enum=Pending;Blocked;Refused;Restoring;Reverting;Completed
	Phase RestorePhase `json:"phase"`

	// message is why it has not begun (Pending, Blocked, Refused); empty where nothing keeps it
	// from that.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// source is which snapshot is looked for, with what spec.source of the EtcdRestore leaves out.
	// +optional
	Source BootstrapRestore `json:"source,omitempty"`

	// survivor is that of spec.source of the EtcdRestore; source says nothing then but its
	// revisionBump.
	// +optional
	Survivor *Survivor `json:"survivor,omitempty"`

	// onQuorumLoss is whether Quorate has created it (spec.recovery.quorumLoss). It begins only
	// while the majority is lost.
	// +optional
	OnQuorumLoss bool `json:"onQuorumLoss,omitempty"`

	// whenServing is that of the EtcdRestore.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;Replace
	WhenServing ServingPolicy `json:"whenServing,omitempty"`

	// formerVolumes is that of the EtcdRestore.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	FormerVolumes RetentionPolicy `json:"formerVolumes,omitempty"`

	// plan is what the restore does, or has done. Before the restore begins, only an EtcdRestore
	// that is, or was, suspended has one: exactly the snapshot, or the member's data, that the plan
	// names is taken, and no other.
	// +optional
	Plan *RestorePlan `json:"plan,omitempty"`

	// formerClusterID is status.clusterID as it was before the restore, for the former members to
	// come back.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	FormerClusterID string `json:"formerClusterID,omitempty"`

	// formerRestored is status.restored as it was before the restore.
	// +optional
	FormerRestored *RestoredSnapshot `json:"formerRestored,omitempty"`

	// formerFirstOrdinal is status.firstOrdinal as it was before the restore.
	// +optional
	FormerFirstOrdinal int32 `json:"formerFirstOrdinal,omitempty"`

	// startedAt is when the former members began to be stopped.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// completedAt is when the Service for clients led to a member of the restored cluster. Empty in
	// phase Completed: the new members have formed a cluster, and no client can come yet.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}

// RestorePlan is what a restore in place does. Before the restore begins, it is written again only
// when the snapshot, setAside or newMembers change: raftTerm, raftIndex, lost, and the sizes and
// revisions in from are those of plannedAt.
type RestorePlan struct {
	// plannedAt is when the plan was made.
	// +required
	PlannedAt metav1.Time `json:"plannedAt"`

	// from is the snapshot that is restored, or the data of a member (its name is member/NAME
	// then).
	// +required
	From RestoredSnapshot `json:"from"`

	// raftTerm is the term of raft that the member of from is in. Empty for a snapshot, where the
	// member does not answer, and where spec.options.flags of the EtcdCluster turns
	// pre-vote off.
	// +optional
	RaftTerm int64 `json:"raftTerm,omitempty"`

	// raftIndex is the last log entry that the member of from knows to be committed; its log may be
	// longer. Empty for a snapshot, and where the member does not answer.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// lost says which writes are lost at most, in words.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Lost string `json:"lost"`

	// setAside are the PersistentVolumeClaims of the former members, and those that
	// storage.retention.whenScaled has kept of removed ones. No member starts on them any more. Of
	// more than 64 the last one says how many more there are.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	SetAside []string `json:"setAside,omitempty"`

	// formerVolumes is what happens to the claims in setAside once all members of the restored
	// cluster are healthy: Retain or Delete.
	// +required
	// +kubebuilder:validation:Enum=Retain;Delete
	FormerVolumes RetentionPolicy `json:"formerVolumes"`

	// newMembers are the names of the new members. All of them start from the snapshot at once.
	// From the data of a member only the first one starts, and the others join it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	NewMembers []string `json:"newMembers,omitempty"`

	// closedService is the name of the Service that lets no client in from the beginning of the
	// restore until the new members have formed a cluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	ClosedService string `json:"closedService"`
}

// RestorePhase is how far an EtcdCluster is with an EtcdRestore.
type RestorePhase string

// The phases.
const (
	// RestorePending: the snapshot is looked for, or something that passes by itself is waited for;
	// the cluster goes on.
	RestorePending RestorePhase = "Pending"
	// RestoreBlocked: it cannot begin before a person has changed something, and the cluster goes
	// on.
	RestoreBlocked RestorePhase = "Blocked"
	// RestoreRefused: it is never begun, and the cluster goes on; the message says why.
	RestoreRefused RestorePhase = "Refused"
	// RestoreRestoring: the former members are stopped, and new ones start from the snapshot.
	RestoreRestoring RestorePhase = "Restoring"
	// RestoreReverting: the EtcdRestore was deleted: the new members go, and the former ones come
	// back.
	RestoreReverting RestorePhase = "Reverting"
	// RestoreCompleted: the new members have formed a cluster.
	RestoreCompleted RestorePhase = "Completed"
)

// Refused reports whether the EtcdRestore says of itself that it is refused for good.
func (r *EtcdRestore) Refused() bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, ConditionReady)
	return ready != nil && ready.Reason == ReasonRestoreRefused
}

// Over reports whether the EtcdRestore says of itself that it is not begun any more, whatever its
// EtcdCluster knows: it was refused, one of its name was carried out before, or it has begun.
func (r *EtcdRestore) Over() bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, ConditionReady)
	return r.Status.StartedAt != nil || r.Status.CompletedAt != nil || ready != nil && (ready.Reason == ReasonRestoreRefused || ready.Reason == ReasonCarriedOut)
}

// MadeOnLossOfAnother reports whether Quorate has created the EtcdRestore for a loss of an earlier
// EtcdCluster of this name: what was lost then says nothing about this one.
func (r *EtcdRestore) MadeOnLossOfAnother(c *EtcdCluster) bool {
	of := r.Labels[LabelQuorumLoss]
	return of != "" && of != string(c.UID)
}

// SourceFor is the source with what the spec leaves out: the snapshot of the EtcdBackup that it
// refers to, which is nil or zero where there is none, or one of the cluster itself. missing is why
// there is no source yet, in words that a person can act on.
func (r *EtcdRestore) SourceFor(c *EtcdCluster, b *EtcdBackup) (source BootstrapRestore, missing string) {
	source = *r.Spec.Source.BootstrapRestore.DeepCopy()
	ref := r.Spec.Source.BackupRef
	switch {
	case r.Spec.Source.Survivor != nil:
		return source, ""
	case ref == nil && source.Snapshot == "" && source.Cluster == "" && source.ClusterID == "":
		source.Cluster = c.Namespace + "/" + c.Name
		return source, ""
	case ref == nil:
		return source, ""
	case b == nil || b.Name == "":
		return source, "there is no EtcdBackup " + ref.Name + " in this namespace: create another EtcdRestore with the right spec.source.backupRef.name, or with spec.source.snapshot"
	case b.Status.VerifiedAt == nil && (source.Unverified != UnverifiedAllow || b.Status.SHA256 == ""):
		return source, "EtcdBackup " + ref.Name + " is not verified: its conditions say what it waits for"
	}
	source.Store, source.Snapshot = b.Status.Store.DeepCopy(), b.Status.Name
	return source, ""
}

// Asked reports whether the restore is asked for and not begun.
func (r *ClusterRestore) Asked() bool {
	return r != nil && (r.Phase == RestorePending || r.Phase == RestoreBlocked)
}
