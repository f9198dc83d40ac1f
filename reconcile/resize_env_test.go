//go:build env

package reconcile_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// TestResize: members come as learners on fresh names, go with their volumes, and the data stays.
func TestResize(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 1)
	contract.Watch(s, c)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	for _, size := range []int32{3, 5, 3, 1} {
		s.change(c, func() { c.Spec.Replicas = new(size) })
		s.await(c, "resized", func() bool {
			return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == int(size)
		})
		s.want(s.etcd(c), "key", "value")
	}
}
