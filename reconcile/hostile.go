package reconcile

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

// A person who may create Pods and claims in a namespace may give them our labels, and numbers that
// no computer has. What the operator reads of them is bounded here.

// onlyMembers leaves the objects whose names are those of members: nothing else is looked at, nor
// asked.
func onlyMembers(c *api.EtcdCluster, seen *observed) {
	maps.DeleteFunc(seen.pods, func(name string, _ *corev1.Pod) bool { return !named(c, name) })
	maps.DeleteFunc(seen.claims, func(name string, _ *corev1.PersistentVolumeClaim) bool { return !named(c, name) })
}

func named(c *api.EtcdCluster, name string) bool {
	_, ours := c.Ordinal(name)
	return ours
}

// mostQuantity takes the place of a quantity that no computer has.
var mostQuantity = resource.MustParse("8E")

// countable bounds the quantities of the objects. To compare 1e999999999 with another one takes
// minutes or all memory. The objects are our own copies.
func countable(seen *observed) {
	for _, claim := range seen.claims {
		bound(claim.Spec.Resources.Requests, claim.Spec.Resources.Limits, claim.Status.Capacity, claim.Status.AllocatedResources)
	}
	for _, pod := range seen.pods {
		for n := range pod.Spec.Containers {
			bound(pod.Spec.Containers[n].Resources.Requests, pod.Spec.Containers[n].Resources.Limits)
		}
		for n := range pod.Status.ContainerStatuses {
			s := &pod.Status.ContainerStatuses[n]
			bound(s.AllocatedResources)
			if s.Resources != nil {
				bound(s.Resources.Requests, s.Resources.Limits)
			}
		}
	}
}

func bound(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, q := range list {
			if !comparesInTime(q) {
				list[name] = mostQuantity.DeepCopy()
			}
		}
	}
}

// comparesInTime is false for a quantity such as 1e999999999: it parses, but to compare it with
// another would write all of its digits out first.
func comparesInTime(q resource.Quantity) bool {
	q = q.DeepCopy() // AsDec changes what it is called on
	scale := q.AsDec().Scale()
	return -30 <= scale && scale <= 30
}
