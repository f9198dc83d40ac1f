package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EtcdRole is a role in one etcd cluster: what each user that has it may do with which keys.
//
// +kubebuilder:object:root=true
// +kubebuilder:ac:generate=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=etcdro,categories=etcd
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="etcd has the role as the spec says"
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters"
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || self.metadata.name != 'root'",fieldPath=".metadata",message="root is etcd's own role, which may do everything: name this one otherwise"
type EtcdRole struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted state. clusterRef and name cannot be changed.
	// +required
	Spec EtcdRoleSpec `json:"spec"`

	// status is what became of it; only Quorate writes it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EtcdRoleStatus `json:"status,omitempty"`
}

// EtcdRoleList is a list of EtcdRole.
//
// +kubebuilder:object:root=true
type EtcdRoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdRole `json:"items"`
}

// EtcdRoleSpec is the wanted state of a role.
//
// +kubebuilder:validation:XValidation:rule="self.clusterRef == oldSelf.clusterRef",fieldPath=".clusterRef",message="spec.clusterRef cannot be changed: make another EtcdRole"
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",fieldPath=".name",message="spec.name cannot be changed: make another EtcdRole"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || self.name != 'root'",fieldPath=".name",message="root is etcd's own role, which may do everything: name this one otherwise"
type EtcdRoleSpec struct {
	// clusterRef names the EtcdCluster, of the same namespace.
	// +required
	ClusterRef ClusterReference `json:"clusterRef"`

	// name of the role in etcd. A role of that name that is there already is taken over. Default:
	// metadata.name.
	// +optional
	Name EtcdName `json:"name,omitempty"`

	// permissions are what users with the role may do. Where two are for the same keys, both hold.
	// A change applies at once. Default none: such a role allows nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Permissions []Permission `json:"permissions,omitempty"`

	// drift is what is done where the role was changed in etcd itself. Revert (default): within
	// five minutes it is again as the spec says. Report: it is left so, and the condition Stalled
	// says how it differs. A change of the spec is always applied.
	// +optional
	// +kubebuilder:validation:Enum=Revert;Report
	Drift DriftPolicy `json:"drift,omitempty"`
}

// EtcdName is the name of a user or a role in etcd.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]([ -~]*[!-~])?$')",message="spec.name must be printable ASCII, without a space at its ends"
type EtcdName string

// DriftPolicy is what is done with changes that were made in etcd itself.
type DriftPolicy string

// The policies.
const (
	DriftRevert DriftPolicy = "Revert"
	DriftReport DriftPolicy = "Report"
)

// Permission is access to some keys: one, those with a prefix, or a range.
//
// +kubebuilder:validation:XValidation:rule="(has(self.key) ? 1 : 0) + (has(self.prefix) ? 1 : 0) + (has(self.from) ? 1 : 0) == 1",message="a permission is for one key (key), for the keys with a prefix (prefix; the empty one is all keys), or for a range (from, to): write exactly one of key, prefix and from"
// +kubebuilder:validation:XValidation:rule="!has(self.to) || has(self.from) && self.from < self.to",fieldPath=".to",message="to is the end of a range, which is not in it: it goes with from, and must be greater"
type Permission struct {
	// access is Read, Write (also to delete) or ReadWrite.
	// +required
	// +kubebuilder:validation:Enum=Read;Write;ReadWrite
	Access Access `json:"access"`

	// key is one key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Key *string `json:"key,omitempty"`

	// prefix is for all keys that begin with it. The empty one is for all keys.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Prefix *string `json:"prefix,omitempty"`

	// from is the first key of a range, which ends before to, or else with the last key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	From *string `json:"from,omitempty"`

	// to is the end of a range, which is not in it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	To *string `json:"to,omitempty"`
}

// Access is what may be done with keys.
type Access string

// The kinds of access.
const (
	AccessRead      Access = "Read"
	AccessWrite     Access = "Write"
	AccessReadWrite Access = "ReadWrite"
)

// EtcdRoleStatus is what became of a role.
type EtcdRoleStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always: True while etcd has the role as the spec says; and Reconciling
	// and Stalled, only while True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// applied is which spec etcd was given last, and where. What differs from it since is drift.
	// +optional
	Applied *Applied `json:"applied,omitempty"`
}

// Applied is which spec etcd was given.
type Applied struct {
	// generation of the spec; 0 while some of it is not applied.
	// +required
	Generation int64 `json:"generation"`

	// clusterID is etcd's own ID of the cluster, in hexadecimal. After a restore it is another one,
	// and all is applied again. It is empty while the first spec is being applied.
	// +required
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID"`
}
