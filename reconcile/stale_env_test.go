//go:build env

package reconcile_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestApplyToWhatIsGone shows what the API server makes of an apply on the word of a cache that is
// behind. It is why metadata is applied with the UID of the object that was seen: the resource
// version alone does not keep an apply from creating the object again, and for a claim that would
// be an empty one that says whose data it holds.
func TestApplyToWhatIsGone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		bind     func(*corev1ac.PersistentVolumeClaimApplyConfiguration, *corev1.PersistentVolumeClaim)
		recreate bool
	}{
		"ResourceVersion": {
			reason: "a resource version is no condition for an object that does not exist",
			bind: func(ac *corev1ac.PersistentVolumeClaimApplyConfiguration, seen *corev1.PersistentVolumeClaim) {
				ac.WithResourceVersion(seen.ResourceVersion)
			},
			recreate: true,
		},
		"UID": {
			reason: "a UID is",
			bind: func(ac *corev1ac.PersistentVolumeClaimApplyConfiguration, seen *corev1.PersistentVolumeClaim) {
				ac.WithResourceVersion(seen.ResourceVersion).WithUID(seen.UID)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			config := func() *corev1ac.PersistentVolumeClaimApplyConfiguration {
				return corev1ac.PersistentVolumeClaim("db-0", s.ns).WithSpec(corev1ac.PersistentVolumeClaimSpec().
					WithAccessModes(corev1.ReadWriteOnce).
					WithResources(corev1ac.VolumeResourceRequirements().
						WithRequests(corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")})))
			}
			apply := func(ac *corev1ac.PersistentVolumeClaimApplyConfiguration) error {
				return s.Apply(t.Context(), ac, client.FieldOwner(api.Manager), client.ForceOwnership)
			}
			if err := apply(config()); err != nil {
				t.Fatal(err)
			}
			seen := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: s.ns}}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
				t.Fatal(err)
			}
			gone := seen.DeepCopy()
			if err := s.Delete(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			s.gone(gone)

			late := config().WithAnnotations(map[string]string{api.AnnotationMemberID: "a0"})
			tc.bind(late, seen)
			err := apply(late)
			if recreated := err == nil; recreated != tc.recreate || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("%s: created again: %t, want %t; error %v", tc.reason, recreated, tc.recreate, err)
			}
		})
	}
}
