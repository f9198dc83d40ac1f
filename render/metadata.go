package render

import (
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// Labels and annotations of the spec come to Pods that run, so they make no Pod outdated. A policy
// of the API server may refuse them all the same, and then no Pod can be made with them. So a
// volume also remembers those with which the API server took the Pod of its member
// (AnnotationServed), for Pods that have to be made until the spec is reverted. What it took for a
// Pod that was there already proves nothing: many policies look at new Pods alone.

// partMetadata is the name that the labels and annotations of the spec have in the revision of a
// Pod (AnnotationRevision). They are those with which it was created, and never outdated.
const partMetadata = "metadata"

// askedMetadata are the labels and annotations of the spec that a Pod gets.
func askedMetadata(c *api.EtcdCluster) *api.Metadata { return new(added(c, podMetadata(c))) }

// servedMetadata are the labels and annotations that a record names (AnnotationServed); nil where
// it does not tell, as one of an earlier build, which is not a record of none. A person may have
// written there what only Quorate writes on a Pod.
func servedMetadata(record string) *api.Metadata {
	s, _ := readServed(record)
	if s.Metadata == nil {
		return nil
	}
	return withoutOurs(s.Metadata)
}

// NameMetadata is a record (AnnotationServed) that also names the labels and annotations of the
// spec, where the Pod was created with them. One that has no room for them stays as it is.
func NameMetadata(record string, c *api.EtcdCluster, pod *corev1.Pod) string {
	asked := askedMetadata(c)
	s, ok := readServed(record)
	if !ok || revisionOf(pod).hashOf(partMetadata) != hash(asked) || equality.Semantic.DeepEqual(s.Metadata, asked) {
		return record
	}
	s.Metadata = asked
	raw, err := json.Marshal(s)
	if err != nil || len(raw) > mostServed {
		return record
	}
	return string(raw)
}

// WithLiveMetadata is the EtcdCluster as it would be with the labels and annotations that a Pod or
// a claim has now of those that Quorate has applied.
func WithLiveMetadata(c *api.EtcdCluster, live metav1.Object) (*api.EtcdCluster, error) {
	own, err := ownedOf(live)
	if err != nil {
		return nil, err
	}
	return withMetadata(c, withoutOurs(&api.Metadata{Labels: maps.Clone(own.labels), Annotations: maps.Clone(own.annotations)})), nil
}

// withoutOurs leaves out what only Quorate writes on a Pod.
func withoutOurs(m *api.Metadata) *api.Metadata {
	ours := func(key, _ string) bool { return strings.HasPrefix(key, api.GroupName+"/") }
	maps.DeleteFunc(m.Labels, ours)
	maps.DeleteFunc(m.Annotations, ours)
	return m
}

// withMetadata is the EtcdCluster with these labels and annotations in place of those of the spec.
func withMetadata(c *api.EtcdCluster, m *api.Metadata) *api.EtcdCluster {
	c = c.DeepCopy()
	c.Spec.AdditionalMetadata = m
	if c.Spec.Pod != nil {
		c.Spec.Pod.Metadata = nil
	}
	return c
}

// WithServedMetadata is the EtcdCluster as it would be with the labels and annotations with which
// the API server took the Pod of a member, as the record on its volume has it (AnnotationServed);
// false where they are what the spec asks for, or not known: a Pod must not be created without an
// annotation that counts when it is created because the API server refused it for something else.
func WithServedMetadata(c *api.EtcdCluster, record string) (*api.EtcdCluster, bool) {
	before := servedMetadata(record)
	if before == nil || equality.Semantic.DeepEqual(before, askedMetadata(c)) {
		return c, false
	}
	return withMetadata(c, before), true
}
