package reconcile

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
)

// TestDryRunFails: an API server that answers a try with an error has told nothing, and a member
// that is down is started all the same, and the status written.
func TestDryRunFails(t *testing.T) {
	t.Parallel()
	growing := func(w *world) {
		for _, claim := range w.claims {
			claim.Status.Phase = corev1.ClaimBound
		}
		w.cluster.Spec.Storage.Size, w.cluster.Spec.Storage.ChangePolicy = resource.MustParse("2Gi"), api.ChangeReplace
	}
	cpu := func(n string) *api.Resources {
		return &api.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	resized := func(w *world) {
		w.cluster.Spec.Resources = cpu("1")
		for name := range w.pods {
			w.pods[name] = w.pod(name)
		}
		w.managed()
		w.cluster.Spec.Resources = cpu("2")
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		answer error
	}{
		"GrowthInternal":  {reason: "a webhook is away", given: growing, answer: apierrors.NewInternalError(errors.New("webhook"))},
		"GrowthThrottled": {reason: "too much is asked for", given: growing, answer: apierrors.NewTooManyRequests("later", 1)},
		"ResizeInternal":  {reason: "a webhook is away", given: resized, answer: apierrors.NewInternalError(errors.New("webhook"))},
		"ResizeThrottled": {reason: "too much is asked for", given: resized, answer: apierrors.NewTooManyRequests("later", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			delete(w.pods, "db-2")
			delete(w.asked.endpoints, "db-2")
			w.address()
			tried := false
			s := newStub(t, func(w write) error {
				if w.Verb == "try" {
					tried = true
					return tc.answer
				}
				return nil
			}, w.objects()...)
			s.Dial = w.dial(nil)
			if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)}); err != nil {
				t.Errorf("%s: the pass ends with %v", tc.reason, err)
			}
			for _, want := range []write{{"apply", "Pod", "db-2", "", apply.OnlyIfAbsent}, {Verb: "apply", Kind: "status"}} {
				if !slices.Contains(s.writes, want) {
					t.Errorf("%s: %v is not written, but %v", tc.reason, want, s.writes)
				}
			}
			if !tried {
				t.Errorf("%s: void: nothing was tried", tc.reason)
			}
		})
	}
}
