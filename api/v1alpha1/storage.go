package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Medium is what the data is kept on.
type Medium string

// The media.
const (
	// MediumDisk is one PersistentVolumeClaim for each member.
	MediumDisk Medium = "Disk"
	// MediumMemory is a tmpfs in each Pod: fast, and gone with the Pod.
	MediumMemory Medium = "Memory"
)

// Storage is what every member keeps its data on.
//
// +kubebuilder:validation:XValidation:rule="(has(self.medium) ? self.medium : 'Disk') == (has(oldSelf.medium) ? oldSelf.medium : 'Disk')",message="spec.storage.medium cannot be changed: create another EtcdCluster and copy the data"
// +kubebuilder:validation:XValidation:rule="(has(self.changePolicy) && self.changePolicy == 'Replace') || has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="spec.storage.storageClassName: a volume keeps its class; set spec.storage.changePolicy to Replace, for the members to be replaced one by one on new volumes, or revert it"
// +kubebuilder:validation:XValidation:rule="(has(self.changePolicy) && self.changePolicy == 'Replace') || !string(self.size).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') || !string(oldSelf.size).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') || quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",fieldPath=".size",message="spec.storage.size: a volume cannot be made smaller; set spec.storage.changePolicy to Replace, for the members to be replaced one by one on new volumes, or revert it"
// +kubebuilder:validation:XValidation:rule="!has(self.medium) || self.medium != 'Memory' || (!has(self.storageClassName) && !has(self.retention) && !has(self.changePolicy))",message="spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes; with spec.storage.medium Memory there are none: leave them out"
type Storage struct {
	// size of each member's volume, 256Mi (etcd alone allocates several write-ahead log files of 64
	// MiB) to 1Pi. With medium Memory it is the limit of the tmpfs, and counts against the
	// memory of the Pod. A larger one makes the volumes grow under the running members where their
	// storage class can do that; elsewhere, and for a smaller one, see changePolicy.
	// +required
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') && quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write"
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') || quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="spec.storage.size must be at most 1Pi, for example 8Gi"
	Size resource.Quantity `json:"size"`

	// storageClassName is the StorageClass of the volumes. Default: what is the default class of
	// the Kubernetes cluster when a volume is made; volumes that are there stay where they are when
	// that changes, or when this is left out later. It can be changed with changePolicy Replace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// changePolicy is what is done to a volume that is not what the spec asks for. Expand
	// (default): it grows, where its storage class can do that; a smaller size and another class
	// are refused, and where it cannot grow the API server's refusal is reported as Stalled.
	// Replace: it grows where it can; else, and for another class or a smaller size, its member is
	// replaced by a new one on a new volume, one member after the other, the leader last, each
	// successor a voter before a member goes. The old volumes are deleted or kept, as
	// retention.whenScaled says. If it is set back to Expand midway, no further member is replaced.
	// +optional
	// +kubebuilder:validation:Enum=Expand;Replace
	ChangePolicy ChangePolicy `json:"changePolicy,omitempty"`

	// medium is Disk (a PersistentVolumeClaim for each member, the default) or Memory (tmpfs). With
	// Memory a member's data is gone with its Pod, and the whole cluster's when a majority of the
	// Pods is deleted. It cannot be changed.
	// +optional
	// +kubebuilder:validation:Enum=Disk;Memory
	Medium Medium `json:"medium,omitempty"`

	// retention says what becomes of the volumes.
	// +optional
	Retention *Retention `json:"retention,omitempty"`
}

// ChangePolicy is what is done to a volume that is not what the spec asks for.
type ChangePolicy string

// The change policies.
const (
	ChangeExpand  ChangePolicy = "Expand"
	ChangeReplace ChangePolicy = "Replace"
)

// RetentionPolicy is what becomes of a volume.
type RetentionPolicy string

// The retention policies.
const (
	RetentionRetain RetentionPolicy = "Retain"
	RetentionDelete RetentionPolicy = "Delete"
)

// Retention says what becomes of the volumes.
type Retention struct {
	// whenDeleted is Retain (default) or Delete: whether the volumes outlive the EtcdCluster. An
	// EtcdCluster that is created again over retained volumes, with the same name and namespace,
	// comes back with its data. A change is applied at once and restarts nothing.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	WhenDeleted RetentionPolicy `json:"whenDeleted,omitempty"`

	// whenScaled is Delete (default) or Retain: whether the volume of a member that was removed,
	// because the cluster shrank or because the member was replaced, goes once all other members
	// serve. A retained one is never used again: its annotation etcd.quorate.dev/retired tells it
	// from those of members. A change is applied at once and restarts nothing.
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	WhenScaled RetentionPolicy `json:"whenScaled,omitempty"`
}
