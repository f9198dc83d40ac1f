package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Resources are the cpu and memory of each member's container.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('cpu' in self.requests) || !('cpu' in self.limits) || !string(self.requests['cpu']).matches('^[0-9.]+[numkKMGTPEi]*$') || !string(self.limits['cpu']).matches('^[0-9.]+[numkKMGTPEi]*$') || quantity(string(self.requests['cpu'])).compareTo(quantity(string(self.limits['cpu']))) <= 0",message="spec.resources.requests must not be more than spec.resources.limits: raise the limit or lower the request"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('memory' in self.requests) || !('memory' in self.limits) || !string(self.requests['memory']).matches('^[0-9.]+[numkKMGTPEi]*$') || !string(self.limits['memory']).matches('^[0-9.]+[numkKMGTPEi]*$') || quantity(string(self.requests['memory'])).compareTo(quantity(string(self.limits['memory']))) <= 0",message="spec.resources.requests must not be more than spec.resources.limits: raise the limit or lower the request"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('ephemeral-storage' in self.requests) || !('ephemeral-storage' in self.limits) || !string(self.requests['ephemeral-storage']).matches('^[0-9.]+[numkKMGTPEi]*$') || !string(self.limits['ephemeral-storage']).matches('^[0-9.]+[numkKMGTPEi]*$') || quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity(string(self.limits['ephemeral-storage']))) <= 0",message="spec.resources.requests must not be more than spec.resources.limits: raise the limit or lower the request"
type Resources struct {
	// requests are what the scheduler reserves: cpu, memory, ephemeral-storage.
	// +optional
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] && string(self[k]).matches('^[0-9.]+[numkKMGTPEi]*$'))",message="spec.resources.requests takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k == 'cpu' || !string(self[k]).matches('[num]$'))",message="memory and ephemeral-storage of spec.resources.requests are in bytes, and m is a thousandth of one: write Mi, for example memory: 512Mi"
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits are what the kubelet enforces: cpu, memory, ephemeral-storage. A cpu limit throttles
	// heartbeats; prefer none.
	// +optional
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] && string(self[k]).matches('^[0-9.]+[numkKMGTPEi]*$'))",message="spec.resources.limits takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k == 'cpu' || !string(self[k]).matches('[num]$'))",message="memory and ephemeral-storage of spec.resources.limits are in bytes, and m is a thousandth of one: write Mi, for example memory: 512Mi"
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
