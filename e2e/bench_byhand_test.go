//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// byHandGroup is that of the labels and annotations of a cluster by hand.
const byHandGroup = "by-hand.example/"

// byHand is what a person would write to have this cluster without an operator: the very same
// Services, disruption budget, claims and Pods, with everything in them known beforehand, under
// labels that no operator looks at.
func (s *stage) byHand(c *api.EtcdCluster) []*unstructured.Unstructured {
	s.Helper()
	size := int(*c.Spec.Replicas)
	configurations := render.Static(c, render.State{Admits: true, Voters: size})
	var names []string
	for n := range size {
		names = append(names, c.MemberName(n))
	}
	var pods []runtime.ApplyConfiguration
	for _, name := range names {
		m := render.Member{
			Name: name, Version: c.Spec.Version, Token: c.Name, BootstrapSize: size,
			InitialCluster: render.Bootstrap(c, names), InitialClusterState: render.StateNew,
		}
		pod, err := render.Pod(c, m)
		if err != nil {
			s.Fatal(err)
		}
		configurations, pods = append(configurations, render.Volume(c, m)), append(pods, pod)
	}
	var objects []*unstructured.Unstructured
	for _, configuration := range append(configurations, pods...) {
		raw, err := json.Marshal(configuration)
		if err != nil {
			s.Fatal(err)
		}
		raw = bytes.ReplaceAll(raw, []byte("etcd.quorate.dev/"), []byte(byHandGroup))
		raw = bytes.ReplaceAll(raw, []byte(`"managed-by":"quorate"`), []byte(`"managed-by":"hand"`))
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			s.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// applyAll as kubectl does it: one object after the other.
func (s *stage) applyAll(objects ...*unstructured.Unstructured) {
	s.Helper()
	for _, o := range objects {
		// An apply writes the answer over what it was given.
		if err := s.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("bench")); err != nil {
			s.Fatal(err)
		}
	}
}

// manifest is the cluster as a person writes it: without a status.
func (s *stage) manifest(c *api.EtcdCluster) *unstructured.Unstructured {
	s.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		s.Fatal(err)
	}
	delete(object, "status")
	u := &unstructured.Unstructured{Object: object}
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	u.SetGroupVersionKind(api.EtcdClusterKind)
	return u
}
