//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// TestOtherPatch: the registry no longer has the image of a member, or the etcd in it ends at once.
// The test deletes a Pod; with data in memory it kills etcd. The member comes up with another patch
// as soon as the spec asks for that, and no other member is touched meanwhile. The image that is
// called 3.6.15 here holds 3.6.16, so that the status says VersionMismatch in the end; the spec is
// reverted when the first image works again.
func TestOtherPatch(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		size    int32
		medium  api.Medium
		crashes bool // it can be pulled, and its etcd ends at once
	}{
		"One":             {reason: "nothing serves without it", size: 1},
		"Three":           {reason: "two of three serve", size: 3},
		"Crashes":         {reason: "the other patch may have the fix", size: 1, crashes: true},
		"InMemory":        {reason: "its data would go with its Pod", size: 1, medium: api.MediumMemory},
		"InMemoryCrashes": {reason: "the other patch may have the fix", size: 1, medium: api.MediumMemory, crashes: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var withdrawn atomic.Bool
			ends := t.TempDir()
			if err := os.WriteFile(filepath.Join(ends, "etcd"), []byte("#!/bin/sh\nexit 2\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			says := map[bool]string{true: "db-0 exited with code 2", false: "db-0 cannot pull the image gcr.io/etcd-development/etcd:v" + etcd36}[tc.crashes]
			s := newStage(t, images(func(ctx context.Context, version string) (string, error) {
				switch gone := withdrawn.Load() && version == etcd36; {
				case gone && tc.crashes:
					return ends, nil
				case gone:
					return "", errors.New("manifest unknown")
				}
				return node.Etcd(ctx, etcd36)
			}))
			s.operate()
			c := s.cluster("db", tc.size)
			c.Spec.Storage.Medium = tc.medium
			load := s.laden(c)
			who := identityOf(c)
			withdrawn.Store(true)
			before, _ := s.lives(c)
			if tc.medium == api.MediumMemory {
				s.must(s.hostlet.Kill(s.ns, "db-0"))
			} else {
				s.deletePod("db-0")
			}
			s.await(c, "told what is wrong", func() bool {
				stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
				return stalled != nil && strings.Contains(stalled.Message, says)
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
