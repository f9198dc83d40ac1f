package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EtcdBackup is one snapshot of one etcd cluster: taken, stored and verified once. It is a record:
// another snapshot is another EtcdBackup.
//
// +kubebuilder:object:root=true
// +kubebuilder:ac:generate=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=etcdb,categories=etcd
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The snapshot is stored and verified"
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Revision,type=integer,JSONPath=`.status.revision`,description="The revision of the data"
// +kubebuilder:printcolumn:name=Taken,type=date,JSONPath=`.status.takenAt`
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=`.status.storedSize`,priority=1,description="Bytes in the store"
// +kubebuilder:printcolumn:name=Location,type=string,JSONPath=`.status.location`,priority=1
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata",message="metadata.name must be a DNS label of at most 56 characters (lower-case letters, digits and '-'): its Jobs are named after it"
type EtcdBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says of what the snapshot is, and where it goes. Only deletionPolicy can be changed.
	// +required
	Spec EtcdBackupSpec `json:"spec"`

	// status is what became of it; only Quorate writes it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EtcdBackupStatus `json:"status,omitempty"`
}

// EtcdBackupList is a list of EtcdBackup.
//
// +kubebuilder:object:root=true
type EtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdBackup `json:"items"`
}

// EtcdBackupSpec says of what a snapshot is, and where it goes.
//
// +kubebuilder:validation:XValidation:rule="self.clusterRef == oldSelf.clusterRef",fieldPath=".clusterRef",message="spec.clusterRef cannot be changed: make another EtcdBackup"
// +kubebuilder:validation:XValidation:rule="has(self.store) == has(oldSelf.store) && (!has(self.store) || self.store == oldSelf.store)",fieldPath=".store",message="spec.store cannot be changed: make another EtcdBackup"
// +kubebuilder:validation:XValidation:rule="(has(self.verify) ? self.verify : 'Restore') == (has(oldSelf.verify) ? oldSelf.verify : 'Restore')",fieldPath=".verify",message="spec.verify cannot be changed: make another EtcdBackup"
// +kubebuilder:validation:XValidation:rule="has(self.encryption) == has(oldSelf.encryption) && (!has(self.encryption) || self.encryption == oldSelf.encryption)",fieldPath=".encryption",message="spec.encryption cannot be changed: make another EtcdBackup"
type EtcdBackupSpec struct {
	// clusterRef names the EtcdCluster, of the same namespace.
	// +required
	ClusterRef ClusterReference `json:"clusterRef"`

	// store is where the snapshot goes. Default: spec.backup.store of the EtcdCluster, as it is
	// when the snapshot is begun.
	// +optional
	Store *BackupStore `json:"store,omitempty"`

	// verify is how the snapshot is proved to be good. Restore (default): what was stored is read
	// back, restored, and served by an etcd of its version, whose keys are compared at the revision
	// of the snapshot. It needs room on a node for twice the database. Hash: what was stored is
	// read back, and every size and hash compared. It needs room for the database once.
	// +optional
	// +kubebuilder:validation:Enum=Restore;Hash
	Verify VerifyMode `json:"verify,omitempty"`

	// deletionPolicy is what the deletion of the EtcdBackup does to the stored snapshot. Retain
	// (default): nothing. Delete: it is deleted first, and the EtcdBackup stays until that is done.
	// It can be changed at any time: Retain lets an EtcdBackup go whose store cannot be reached any
	// more.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	DeletionPolicy RetentionPolicy `json:"deletionPolicy,omitempty"`

	// encryption encrypts the snapshot before it leaves the Pod. Default: spec.backup.encryption of
	// the EtcdCluster at the beginning of each attempt, also where spec.store is set.
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// ClusterReference names an EtcdCluster of the same namespace.
type ClusterReference struct {
	// name of the EtcdCluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	Name string `json:"name"`
}

// VerifyMode is how a snapshot is verified.
type VerifyMode string

// The modes.
const (
	VerifyRestore VerifyMode = "Restore"
	VerifyHash    VerifyMode = "Hash"
)

// BackupEncryption encrypts a snapshot before it leaves the Pod that takes it.
type BackupEncryption struct {
	// recipients are public keys of age, each of which can decrypt it (age-keygen makes a pair:
	// what begins with age1 goes here, what begins with AGE-SECRET-KEY-1 is kept where it is found
	// when all else is lost). Quorate never sees a private key: with verify Restore the data is
	// restored from a copy that has not left the Pod yet, and what was stored is compared by its
	// hash.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Recipients []AgeRecipient `json:"recipients"`
}

// AgeRecipient is a public key of age.
//
// +kubebuilder:validation:MaxLength=62
// +kubebuilder:validation:XValidation:rule="self.matches('^age1[02-9ac-hj-np-z]{58}$')",message="a recipient is a public key of age, age1 and 58 letters and digits, as age-keygen prints it; the private key (AGE-SECRET-KEY-1) must not be here"
type AgeRecipient string

// EtcdBackupStatus is what became of a backup.
type EtcdBackupStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always: True once the snapshot is stored and verified; and Reconciling
	// and Stalled, only while True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// attempt is which attempt is under way, or was the last one: 1 to 5. It is written down before
	// the attempt's Job is created.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// store is the store that the first attempt went to; the others and the deletion use it too.
	// +optional
	Store *BackupStore `json:"store,omitempty"`

	// encryption is how the snapshot of the last attempt is encrypted; empty where it is not.
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// name is what the snapshot is called in the store: "quorate snapshot list" shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// location is where the data is.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Location string `json:"location,omitempty"`

	// clusterID is etcd's own ID of the cluster, in hexadecimal.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// member is the member that the snapshot was taken from.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member,omitempty"`

	// etcdVersion is the version that the member ran.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// revision is the revision of the data.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// size is that of the snapshot as etcd sent it, in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`

	// storedSize is that of the object in the store, compressed and possibly encrypted, in bytes.
	// +optional
	StoredSize int64 `json:"storedSize,omitempty"`

	// sha256 is that of the snapshot as etcd sent it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`

	// startedAt is when the snapshot was asked for: every write that was acknowledged before is in
	// it.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// takenAt is when etcd had sent all of it.
	// +optional
	TakenAt *metav1.Time `json:"takenAt,omitempty"`

	// verifiedAt is when it was found to be good.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`

	// failure is why it was given up, where it was: nothing is tried any more.
	// +optional
	Failure *BackupFailure `json:"failure,omitempty"`
}

// BackupFailure is why a backup was given up.
type BackupFailure struct {
	// reason in one word, as the conditions have it.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message says what happened, and what to do.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message"`
}
