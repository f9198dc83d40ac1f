package render

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// Selector selects the Pods of all members. It is what Services, budgets and scheduling terms
// select by (the Service for clients by LabelClients as well), and it never changes: the
// app.kubernetes.io labels are for people and their tools.
func Selector(c *api.EtcdCluster) map[string]string {
	return map[string]string{api.LabelCluster: c.Name}
}

// clientsSelector selects the Pods that clients are led to.
func clientsSelector(c *api.EtcdCluster) map[string]string {
	selector := Selector(c)
	selector[api.LabelClients] = api.ClientsIn
	return selector
}

// shutSelector selects no Pod.
func shutSelector(c *api.EtcdCluster) map[string]string {
	selector := Selector(c)
	selector[api.LabelClients] = api.ClientsShut
	return selector
}

// podLabels are the labels of a member's Pod.
func podLabels(c *api.EtcdCluster, m Member) map[string]string {
	labels := labelled(c, m.Name, podMetadata(c))
	labels[api.LabelClients] = api.ClientsIn
	if m.Out {
		labels[api.LabelClients] = api.ClientsOut
	}
	return labels
}

const (
	// labelInstance tells clusters apart for people and their tools. Argo CD with the tracking
	// method "label" takes what has it, and no owner, for its own, and prunes what is not in Git.
	labelInstance = "app.kubernetes.io/instance"

	// annotationSyncOptions with keepUnpruned has Argo CD neither prune nor delete an object,
	// however it comes to track it.
	annotationSyncOptions = "argocd.argoproj.io/sync-options"
	keepUnpruned          = "Prune=false,Delete=false"
)

// untracked are the labels of what has no owner, or may have none: a claim, and a record of a
// snapshot.
func untracked(c *api.EtcdCluster, member string) map[string]string {
	labels := Labels(c, member)
	delete(labels, labelInstance)
	return labels
}

// Labels are the labels of what belongs to the whole cluster or, where a member is named, to that
// member. They come from spec.additionalMetadata and from Quorate, never from the EtcdCluster's own
// labels: tools such as Argo CD track what they own by labels, and would prune the objects that
// carry a copy.
func Labels(c *api.EtcdCluster, member string) map[string]string { return labelled(c, member) }

// labelled are these, with those of one kind of object before Quorate's own.
func labelled(c *api.EtcdCluster, member string, also ...*api.Metadata) map[string]string {
	labels := added(c, also...).Labels
	maps.Copy(labels, Selector(c))
	labels["app.kubernetes.io/name"] = "etcd"
	labels[labelInstance] = c.Name
	labels["app.kubernetes.io/managed-by"] = api.Manager
	if member != "" {
		labels[api.LabelMember] = member
	}
	return labels
}

// added are the labels and annotations that the spec adds to an object: spec.additionalMetadata,
// and those of one kind of object, which take the place of these.
func added(c *api.EtcdCluster, also ...*api.Metadata) api.Metadata {
	all := api.Metadata{Labels: api.Labels{}, Annotations: map[string]string{}}
	for _, from := range append([]*api.Metadata{c.Spec.AdditionalMetadata}, also...) {
		if from != nil {
			maps.Copy(all.Labels, from.Labels)
			maps.Copy(all.Annotations, from.Annotations)
		}
	}
	return all
}

// podMetadata is spec.pod.metadata; nil for none.
func podMetadata(c *api.EtcdCluster) *api.Metadata {
	if c.Spec.Pod == nil {
		return nil
	}
	return c.Spec.Pod.Metadata
}

// annotations are the annotations of spec.additionalMetadata, those of one kind of object, and then
// those that Quorate writes itself.
func annotations(c *api.EtcdCluster, own map[string]string, also ...*api.Metadata) map[string]string {
	all := added(c, also...).Annotations
	maps.Copy(all, own)
	return all
}

// owner makes the garbage collector delete an object with its EtcdCluster.
func owner(c *api.EtcdCluster) []*metav1ac.OwnerReferenceApplyConfiguration {
	return ownedBy("EtcdCluster", c, true)
}

// ownedBy makes the garbage collector delete an object with its owner. An owner that was never in
// an API server has no UID and owns nothing, so that what is rendered offline can be applied as it
// is. One that blocks is not gone before the object is, when it is deleted in the foreground. To
// say so takes the right to write its finalizers, where the API server checks that (OpenShift).
func ownedBy(kind string, o metav1.Object, blocks bool) []*metav1ac.OwnerReferenceApplyConfiguration {
	if o.GetUID() == "" {
		return nil
	}
	reference := metav1ac.OwnerReference().
		WithAPIVersion(api.SchemeGroupVersion.String()).
		WithKind(kind).
		WithName(o.GetName()).
		WithUID(o.GetUID()).
		WithController(true)
	if blocks {
		reference.WithBlockOwnerDeletion(true)
	}
	return []*metav1ac.OwnerReferenceApplyConfiguration{reference}
}
