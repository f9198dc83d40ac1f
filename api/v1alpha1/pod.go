package v1alpha1

// Pod is what the Pods of the members have beside what Quorate gives them.
type Pod struct {
	// metadata is added to the Pods of the members, and to nothing else. Where spec.additionalMetadata
	// has the same key, this value is used. A change is applied at once and restarts nothing.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`

	// serviceAccountName is the ServiceAccount that the Pods of the members run as, of the same
	// namespace. It must exist. Its token is never mounted: etcd asks nothing of Kubernetes. Jobs
	// that copy or restore data for this cluster run as it too, unless the store of the snapshot
	// names another one, and so does a member while it is restored. Default: default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="spec.pod.serviceAccountName must be the name of a ServiceAccount: lower-case letters, digits, '-' and '.'"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// securityContext replaces the users and groups that the Pods run with; what it leaves out is
	// left to the Kubernetes cluster. Default: runAsUser, runAsGroup and fsGroup 65532. An empty
	// one, {}, is for OpenShift, whose restricted-v2 gives each namespace users of its own. Pods
	// never run as root, and always with the seccomp profile RuntimeDefault, whatever stands here.
	// Jobs of this cluster run with it too.
	// +optional
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`
}

// PodSecurityContext is the users and groups that a Pod runs with.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fsGroup) || self.fsGroup != 65532 || has(self.runAsUser) && self.runAsUser == 65532",fieldPath=".fsGroup",message="spec.pod.securityContext.fsGroup 65532 goes with runAsUser 65532 alone, because volumes of that group are not given to another user: write another number, for example that of runAsUser"
type PodSecurityContext struct {
	// runAsUser is the number of the user that etcd runs as. Without it the Kubernetes cluster must
	// give one: the official image of etcd would run as root, and is refused.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the number of the group that etcd runs as. Default: that of the image.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the number of the group that the volumes are given to, so that etcd can write on
	// them. Without it the Kubernetes cluster must give one, unless the storage class makes volumes
	// that any user may write on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// supplementalGroups are further groups that etcd runs as, for example of a volume on NFS.
	// Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`
}
