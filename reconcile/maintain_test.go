package reconcile

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestApplyClaim: a claim that was written on since it was seen is written on all the same where
// only others have, and is looked at again where anything has changed that we write or go by.
func TestApplyClaim(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		since  func(*corev1.PersistentVolumeClaim)
		tries  int
	}{
		"Status": {
			reason: "Kubernetes notes that no Pod uses it",
			since: func(claim *corev1.PersistentVolumeClaim) {
				claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue}}
			},
			tries: 3,
		},
		"AnnotationOfOthers": {
			reason: "a tool for backups keeps a note there",
			since:  func(claim *corev1.PersistentVolumeClaim) { claim.Annotations["backup.example.com/seen"] = "now" }, tries: 3,
		},
		"Annotation": {
			reason: "another operator has written what runs on it",
			since:  func(claim *corev1.PersistentVolumeClaim) { claim.Annotations[api.AnnotationNext] = "3.7.3" }, tries: 1,
		},
		"Label": {
			reason: "it is another cluster's by now",
			since:  func(claim *corev1.PersistentVolumeClaim) { claim.Labels[api.LabelCluster] = "other" }, tries: 1,
		},
		"Owner":    {reason: "it is to go with another owner", since: func(claim *corev1.PersistentVolumeClaim) { claim.OwnerReferences = nil }, tries: 1},
		"Volume":   {reason: "other data is behind it", since: func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "other" }, tries: 1},
		"Deleting": {reason: "it is going", since: func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = new(metav1.Now()) }, tries: 1},
		"Another":  {reason: "it was deleted, and there is one of its name, which is empty", since: func(claim *corev1.PersistentVolumeClaim) { claim.UID = "another" }, tries: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), newClaim("db-0")
			seen.Annotations = map[string]string{api.AnnotationVersion: "3.6.16"}
			seen.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, api.EtcdClusterKind)}
			now := seen.DeepCopy()
			now.Finalizers = []string{"kubernetes.io/pvc-protection"}
			tc.since(now)
			tries := 0
			s := newStub(t, func(write) error {
				tries++
				return apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-0", errors.New("changed"))
			}, seen)
			s.Reader = newStub(t, nil, now).Client
			err := s.applyClaim(t.Context(), c, seen, render.Volume(c, render.Member{Name: "db-0"}))
			if !apierrors.IsConflict(err) || tries != tc.tries {
				t.Errorf("%s: %d tries, want %d; error %v", tc.reason, tries, tc.tries, err)
			}
		})
	}
}
