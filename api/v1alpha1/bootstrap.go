package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bootstrap says how a new cluster begins. By default it begins empty.
type Bootstrap struct {
	// restore starts the cluster from a stored snapshot.
	// +required
	Restore BootstrapRestore `json:"restore"`
}

// BootstrapRestore starts a new cluster from a stored snapshot. Without snapshot, the newest
// verified one that fits the rest is taken. It is chosen once, before anything is made, and stands
// in status.restored from then on. A cluster that has formed, and one that finds volumes with its
// data, is not restored: applying the same manifest again changes nothing.
//
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || !has(self.before)",fieldPath=".before",message="before chooses among snapshots, and snapshot is one: leave one of them out"
type BootstrapRestore struct {
	// store is where the snapshot is. Default: spec.backup.store.
	// +optional
	Store *BackupStore `json:"store,omitempty"`

	// snapshot is the name of the snapshot, as "quorate snapshot list" and the status of an
	// EtcdBackup have it. Default: the newest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Snapshot string `json:"snapshot,omitempty"`

	// before takes the newest snapshot that was taken before this time, or at it, for example
	// 2026-11-25T07:50:00Z.
	// +optional
	Before *metav1.Time `json:"before,omitempty"`

	// cluster takes a snapshot of this cluster, as namespace/name. It must be given, or clusterID
	// or snapshot, where the store has snapshots of several clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?$')",message="cluster is the namespace and the name of the EtcdCluster that the snapshot was taken of, for example prod/db"
	Cluster string `json:"cluster,omitempty"`

	// clusterID takes a snapshot of the cluster with this ID of etcd, in hexadecimal:
	// status.clusterID of its EtcdCluster.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{1,16}$')",message="clusterID is etcd's own ID in lower-case hexadecimal digits, as status.clusterID has it"
	ClusterID string `json:"clusterID,omitempty"`

	// identity decrypts an encrypted snapshot. Default: spec.backup.identity of the EtcdCluster.
	// +optional
	Identity *AgeIdentity `json:"identity,omitempty"`

	// unverified is Refuse (default) or Allow: whether a snapshot may be taken that was never
	// verified.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;Allow
	Unverified UnverifiedPolicy `json:"unverified,omitempty"`

	// revisionBump is how far revisions go on beyond those of the snapshot, so that no client sees
	// one again that it has seen before with other data. The history is marked as compacted:
	// watches from a revision of before end with an error, and informers list again. 0 leaves
	// revisions and history as they were. Default 1000000000, which is a week at 1,600 writes in a
	// second.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000000
	RevisionBump *int64 `json:"revisionBump,omitempty"`
}

// AgeIdentity is a private key of age.
type AgeIdentity struct {
	// secretRef names a Secret of the same namespace, whose key identity.txt has identities as
	// age-keygen prints them. Only the containers that read the snapshot mount it, and the operator
	// has no right to read it. The Pods that were restored refer to it for as long as they are;
	// they start without it too.
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// UnverifiedPolicy is what is done with a snapshot that was not verified.
type UnverifiedPolicy string

// The policies.
const (
	UnverifiedRefuse UnverifiedPolicy = "Refuse"
	UnverifiedAllow  UnverifiedPolicy = "Allow"
)

// RestoredSnapshot is the snapshot that a cluster was started from.
type RestoredSnapshot struct {
	// name of the snapshot in its store. It is member/NAME where no snapshot was restored, but the
	// data of that member.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// sha256 of its data. All members are restored from data with this hash, and from no other. Of
	// the data of a member it is the UID of its PersistentVolumeClaim instead.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// location is where it is stored.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Location string `json:"location,omitempty"`

	// clusterID is etcd's own ID of the cluster that it was taken of, in hexadecimal. That of this
	// cluster is another one.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// etcdVersion is the version of the etcd that it was taken from.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// revision of the data.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// size of the data, in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`

	// encrypted is whether it is stored encrypted.
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`

	// takenAt is when it was taken.
	// +optional
	TakenAt *metav1.Time `json:"takenAt,omitempty"`

	// verifiedAt is when it was verified; empty where it was not.
	// +optional
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
}

// memberPrefix begins the name of a RestoredSnapshot that is the data of a member. No stored
// snapshot has a slash in its name.
const memberPrefix = "member/"

// MemberOf is the member whose data a snapshot of that name is (RestoredSnapshot); empty where it
// is a stored one.
func MemberOf(snapshot string) string {
	member, is := strings.CutPrefix(snapshot, memberPrefix)
	if !is {
		return ""
	}
	return member
}
