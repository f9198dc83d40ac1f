//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/node"
)

// TestWithdrawn: the registry has an image no more, and a Pod of it is deleted. The member comes up
// with another patch as soon as the spec asks for that, and no other member is touched meanwhile.
// What is called 3.6.15 here holds 3.6.16, which is told; the spec is set back when the image is
// there again.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		size   int32
	}{
		"One":   {reason: "nothing serves without it", size: 1},
		"Three": {reason: "two of three serve", size: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var withdrawn atomic.Bool
			s := newStage(t, images(func(ctx context.Context, version string) (string, error) {
				if withdrawn.Load() && version == etcd36 {
					return "", errors.New("manifest unknown")
				}
				return node.Etcd(ctx, etcd36)
			}))
			s.operate()
			c := s.cluster("db", tc.size)
			load := s.laden(c)
			who := identityOf(c)
			withdrawn.Store(true)
			before, _ := s.lives(c)
			s.deletePod("db-0")
			s.await(c, "told that the image is gone", func() bool {
				stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
				return stalled != nil && strings.Contains(stalled.Message, "db-0 cannot pull the image gcr.io/etcd-development/etcd:v"+etcd36)
			})
			s.change(c, func() { c.Spec.Version = lies })
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: s.ns}}
			s.awaitPod(pod, "ready with the other patch", func() bool {
				return pod.Spec.Containers[0].Image == "gcr.io/etcd-development/etcd:v"+lies && history.Ready(pod)
			})
			load.await(20)
			s.stalledWith(c, api.ReasonVersionMismatch, "the image tag of db-0 is for etcd "+lies+", and etcd in it says that it is "+etcd36)
			after, restarts := s.lives(c)
			for member, uid := range before {
				if member != "db-0" && (after[member] != uid || restarts[member] > 0) {
					t.Errorf("%s: %s was touched", tc.reason, member)
				}
			}
			withdrawn.Store(false)
			s.change(c, func() { c.Spec.Version = etcd36 })
			s.runs(c, etcd36)
			s.same(c, who)
			load.await(20)
			load.check()
		})
	}
}
