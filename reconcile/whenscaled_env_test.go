//go:build env

package reconcile_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestWhenScaledFlipped: what becomes of a former member's volume is decided by the spec when it is
// discarded. A change of mind between two of them counts for the second, and gives back nothing of
// the first.
func TestWhenScaledFlipped(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason      string
		first, then api.RetentionPolicy
	}{
		"DeleteRetain": {reason: "what is gone is gone, and the other one is kept", first: api.RetentionDelete, then: api.RetentionRetain},
		"RetainDelete": {reason: "what was retired stays, whatever comes after", first: api.RetentionRetain, then: api.RetentionDelete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			f, flipped := newFault("Remove.Member.db-3#1", "Unhealthy"), make(chan struct{})
			f.then = func() { <-flipped }
			goOn := sync.OnceFunc(func() { close(flipped) })
			s.operate(f.between)
			s.Cleanup(goOn) // before the operator is ended
			c := s.cluster("db", 5)
			c.Spec.Storage.Retention = &api.Retention{WhenScaled: tc.first}
			load := s.laden(c)
			f.arm()
			s.resize(c, 3)
			s.meets(f)
			kept := map[string]bool{"db-3": tc.then == api.RetentionRetain, "db-4": s.keeps("db-4", tc.first, tc.then)}
			s.change(c, func() { c.Spec.Storage.Retention = &api.Retention{WhenScaled: tc.then} })
			goOn()
			s.awaitMembers(c, "db-0", "db-1", "db-2")
			want := []string{"db-0", "db-1", "db-2"}
			for name, keeps := range kept {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
				s.gone(&corev1.Pod{ObjectMeta: claim.ObjectMeta})
				if !keeps {
					s.gone(claim)
					continue
				}
				want = append(want, name)
				s.awaitObject(claim, "retired", func() bool { return claim.UID == "" || claim.Annotations[api.AnnotationRetired] != "" })
			}
			var left []string
			for _, claim := range s.claims(c) {
				left = append(left, claim.Name)
				if retired := claim.Annotations[api.AnnotationRetired] != ""; retired != kept[claim.Name] || !claim.DeletionTimestamp.IsZero() {
					t.Errorf("%s: volume %s is retired: %t, deleted: %v", tc.reason, claim.Name, retired, claim.DeletionTimestamp)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("%s: volumes at the end: -want +got:\n%s", tc.reason, diff)
			}
			load.check()
		})
	}
}

// keeps reports whether a former member's volume will be kept, when the policy changes now.
func (s *stage) keeps(name string, first, then api.RetentionPolicy) bool {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	err := s.Get(s.Context(), client.ObjectKeyFromObject(claim), claim)
	if apierrors.IsNotFound(err) {
		return false
	}
	s.must(err)
	discarded := !claim.DeletionTimestamp.IsZero() || claim.Annotations[api.AnnotationRetired] != ""
	s.Logf("when the policy changes, the volume of %s is discarded: %t", name, discarded)
	if discarded {
		return first == api.RetentionRetain
	}
	return then == api.RetentionRetain // all members that are left have to serve first
}
