package render

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// State is what the objects of the whole cluster depend on beside the spec.
type State struct {
	// Admits is true once clients may come: the first members have answered as one cluster, and
	// none of them would start empty again.
	Admits bool
	// Shut is true where the Service for clients has had a selector, and clients may not come.
	// Without a selector its EndpointSlices would stay as they are: no controller changes those of
	// a Service that has none.
	Shut bool
	// Labelled is true once every ready Pod has api.LabelClients. Before that a Service that
	// selects by it would lead to no Pod.
	Labelled bool
	// Voters is the number of voting members that etcd has now, and Listed whether etcd itself has
	// listed them: else there may be more.
	Voters int
	Listed bool
	// KeepAll: a member is away, or about to be, because Quorate changes it. No drain is to take
	// another one.
	KeepAll bool
}

// Static is the objects of the whole cluster, to be applied at every pass: the headless Service
// that gives each member its name, the disruption budget, and the Service for clients. They follow
// the spec also while no member can be made of it.
func Static(c *api.EtcdCluster, s State) []runtime.ApplyConfiguration {
	return []runtime.ApplyConfiguration{peerService(c), Budget(c, s), clientService(c, s)}
}

// peerService is headless and gives each Pod <member>.<cluster>.<namespace>.svc. It publishes
// addresses that are not ready, because members must find each other before any of them can be. A
// name leads to every port of its Pod: the ports here are for tools that look for metrics. That of
// clients is none of them, so that no tool takes this Service for the one of clients.
func peerService(c *api.EtcdCluster) *corev1ac.ServiceApplyConfiguration {
	var metadata *api.Metadata
	if s := c.Spec.Services; s != nil && s.Headless != nil {
		metadata = s.Headless.Metadata
	}
	return service(c, c.Name, metadata).WithSpec(corev1ac.ServiceSpec().
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(true).
		WithSelector(Selector(c)).
		WithPorts(
			servicePort("peer", api.PortPeer),
			servicePort("metrics", api.PortMetrics),
		))
}

// clientService reaches members that are ready: etcd's /readyz fails on a learner, on a CORRUPT
// alarm, and without a quorum. A member leaves it before a planned change (api.LabelClients): a
// container that is stopping is ready until it has ended, and a client that is led to it meanwhile
// waits out its own back-off.
//
// It is there from the start, so that a client that is early finds its name and an address where it
// is refused, and comes again. A request to an address that no Service has yet may be answered by
// another host on the way there. Until clients are admitted it selects no Pod, so that none can
// write to a half-made cluster.
func clientService(c *api.EtcdCluster, s State) *corev1ac.ServiceApplyConfiguration {
	asked := api.ClientService{}
	if s := c.Spec.Services; s != nil && s.Client != nil {
		asked = *s.Client
	}
	spec := corev1ac.ServiceSpec().
		WithType(cmp.Or(asked.Type, corev1.ServiceTypeClusterIP)).
		WithIPFamilies(asked.IPFamilies...).
		WithIPFamilyPolicy(cmp.Or(asked.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)). // an API server keeps what is left out
		WithPorts(servicePort("client", api.PortClient))
	if asked.LoadBalancerClass != "" {
		spec.WithLoadBalancerClass(asked.LoadBalancerClass)
	}
	switch {
	case s.Admits && s.Labelled:
		spec.WithSelector(clientsSelector(c))
	case s.Admits:
		spec.WithSelector(Selector(c))
	case s.Shut:
		spec.WithSelector(shutSelector(c))
	}
	return service(c, c.ClientServiceName(), asked.Metadata).WithSpec(spec)
}

func service(c *api.EtcdCluster, name string, metadata *api.Metadata) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, c.Namespace).
		WithLabels(labelled(c, "", metadata)).
		WithAnnotations(annotations(c, nil, metadata)).
		WithOwnerReferences(owner(c)...)
}

// servicePort leads to the container's port of the same name.
func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().
		WithName(name).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(port).
		WithTargetPort(intstr.FromString(name))
}

// Budget is the disruption budget: it lets a drain take as many members as leave a quorum.
//
// The quorum is of the members that etcd lists. More that the spec asks for may never come (no
// volume, no node), and hold up no drain: before one votes, the budget keeps all. While the cluster
// forms, or etcd cannot list its members, the quorum is of those that are known or of those that
// the spec asks for, whichever are more. It is an integer, because for a percentage or for
// maxUnavailable the disruption controller asks the Pods' owner for its scale. IfHealthyBudget: an
// unready member may be evicted only while a quorum is ready, since one that is merely slow to come
// up may be the one the quorum needs. A cluster of one member, or of two, has none to spare: a
// drain waits until it is scaled or stopped. While Quorate changes one, a larger one has none
// either. With spec.disruptionBudget.mode Disabled it selects no Pod: where another budget selects
// the members as well, the API server takes no eviction of them.
func Budget(c *api.EtcdCluster, s State) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	all := max(int32(s.Voters), replicas(c))
	least := quorum(all)
	if s.Listed {
		least = quorum(int32(s.Voters))
	}
	if s.KeepAll {
		least = max(least, all)
	}
	selector := Selector(c)
	if c.BudgetDisabled() {
		least, selector = 0, shutSelector(c)
	}
	return policyv1ac.PodDisruptionBudget(c.Name, c.Namespace).
		WithLabels(Labels(c, "")).
		WithAnnotations(annotations(c, nil)).
		WithOwnerReferences(owner(c)...).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(least)).
			WithUnhealthyPodEvictionPolicy(policyv1.IfHealthyBudget).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)))
}

func quorum(voters int32) int32 { return voters/2 + 1 }

// replicas is spec.replicas with its default, which an EtcdCluster rendered offline has not been
// given by the schema.
func replicas(c *api.EtcdCluster) int32 { return ptr.Deref(c.Spec.Replicas, 3) }
