package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Scheduling says on which nodes members run.
type Scheduling struct {
	// affinity replaces the default, which prefers a node of its own for each member.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints replace the default, which spreads members over zones where that is
	// possible. One without a labelSelector counts the members of this cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// tolerations let members run on tainted nodes. Default none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// nodeSelector limits members to nodes with these labels. Default none.
	// +optional
	NodeSelector Labels `json:"nodeSelector,omitempty"`

	// priorityClassName is the PriorityClass of the Pods. Default none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}
