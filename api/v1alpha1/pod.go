package v1alpha1

// Pod configures the Pods of the members.
type Pod struct {
	// metadata is added to the Pods of the members, and to nothing else. Where
	// spec.additionalMetadata has the same key, this value is used. A change is applied at once and
	// restarts nothing.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`

	// serviceAccountName is the ServiceAccount that the Pods of the members run as, of the same
	// namespace. It must exist. Its token is never mounted: etcd does not use the API of
	// Kubernetes. Jobs that copy or restore data for this cluster run as it too, unless the store
	// of the snapshot names another one, and so does a member while it is restored. Default:
	// default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="spec.pod.serviceAccountName must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// securityContext replaces all users and groups that the Pods run with: a field that is left
	// out is not set in the Pods. Default: runAsUser, runAsGroup and fsGroup 65532. An empty one,
	// {}, is for OpenShift, where restricted-v2 assigns users to each namespace. Pods have
	// runAsNonRoot true and the seccomp profile RuntimeDefault in any case. Jobs of this cluster
	// have the same securityContext.
	// +optional
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`
}

// PodSecurityContext has the users and groups that a Pod runs with.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fsGroup) || self.fsGroup != 65532 || has(self.runAsUser) && self.runAsUser == 65532",fieldPath=".fsGroup",message="spec.pod.securityContext.fsGroup 65532 goes with runAsUser 65532 alone, because volumes of that group are not given to another user: write another number, for example that of runAsUser"
type PodSecurityContext struct {
	// runAsUser is the UID that etcd runs as. Without it the Kubernetes cluster must assign one:
	// the official image of etcd runs as root, and the kubelet refuses that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the GID that etcd runs as. Default: that of the image.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the GID that owns the volumes, so that etcd can write to them. Without it the
	// Kubernetes cluster must assign one, unless the storage class makes volumes that any user may
	// write to.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// supplementalGroups are the GIDs of further groups of etcd, for example of a volume on NFS.
	// Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`
}
