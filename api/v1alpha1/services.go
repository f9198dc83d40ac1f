package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Services are the Services of a cluster.
type Services struct {
	// client is the Service <name>-client, which leads to the members that serve clients.
	// +optional
	Client *ClientService `json:"client,omitempty"`

	// headless is the Service <name>, which gives each member its name in DNS.
	// +optional
	Headless *HeadlessService `json:"headless,omitempty"`
}

// ClientService is the Service that leads to the members that serve clients.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || has(self.type) && self.type == 'LoadBalancer'",fieldPath=".loadBalancerClass",message="spec.services.client.loadBalancerClass is for spec.services.client.type LoadBalancer: set that, or leave the class out"
// +kubebuilder:validation:XValidation:rule="!(has(self.type) && self.type == 'LoadBalancer' && has(oldSelf.type) && oldSelf.type == 'LoadBalancer') || has(self.loadBalancerClass) == has(oldSelf.loadBalancerClass) && (!has(self.loadBalancerClass) || self.loadBalancerClass == oldSelf.loadBalancerClass)",fieldPath=".loadBalancerClass",message="spec.services.client.loadBalancerClass: Kubernetes keeps the class of a Service of type LoadBalancer: revert it, or set spec.services.client.type to ClusterIP first"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || self.ipFamilies.size() < 2 || has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack'",fieldPath=".ipFamilyPolicy",message="spec.services.client.ipFamilies with two families needs spec.services.client.ipFamilyPolicy PreferDualStack or RequireDualStack: set it, or name one family"
type ClientService struct {
	// metadata is added to this Service. Where spec.additionalMetadata has the same key, this value
	// is used. Annotations for an external DNS or a cloud's load balancer go here.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`

	// type is ClusterIP (default), NodePort or LoadBalancer. The last two open etcd to clients
	// outside of the Kubernetes cluster: use them only in a cluster with TLS for clients, which is
	// the default, and put the names that these clients connect to into spec.tls.client.altNames.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// loadBalancerClass is the class of the load balancer, for example
	// service.k8s.aws/nlb. Default: that of the Kubernetes cluster. It cannot be changed while type
	// is LoadBalancer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="spec.services.client.loadBalancerClass must be a name such as internal-vip or example.com/internal-vip"
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`

	// ipFamilies are IPv4, IPv6 or both. Kubernetes does not let the first one change: to change
	// it, delete the Service. Quorate recreates it, with another address. Default: that of the
	// Kubernetes cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self[0] != self[1]",message="spec.services.client.ipFamilies: name each family once"
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`

	// ipFamilyPolicy is SingleStack, PreferDualStack or RequireDualStack. Default: SingleStack, as
	// in Kubernetes.
	// +optional
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`
}

// HeadlessService is the Service that gives each member its name in DNS.
type HeadlessService struct {
	// metadata is added to this Service. Where spec.additionalMetadata has the same key, this value
	// is used.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`
}
