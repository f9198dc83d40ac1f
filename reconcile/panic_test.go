package reconcile

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
)

// TestPanic: a panic in whatever is done at once is one of the goroutine of the pass, which
// controller-runtime recovers. In a goroutine of its own it would end this process.
func TestPanic(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(w *world, s *stub)
	}{
		"Asking": {
			reason: "a member is asked",
			spoil: func(_ *world, s *stub) {
				s.Dial = func(string, int) (membership.Client, error) { panic("broken") }
			},
		},
		"Scraping": {
			reason: "metrics are read, of a member that answers as well",
			spoil: func(_ *world, s *stub) {
				s.Scrape = func(context.Context, string, int) (membership.Endpoint, error) { panic("broken") }
			},
		},
		"Writing": {
			reason: "objects are applied",
			spoil:  func(_ *world, s *stub) { s.applied.cache = nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.pods["db-2"].Status.ContainerStatuses[0].Ready = false
			w.pods["db-2"].Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			w.address()
			s := newStub(t, nil, w.objects()...)
			s.Dial = w.dial(nil)
			s.Scrape = func(context.Context, string, int) (membership.Endpoint, error) { return membership.Endpoint{}, nil }
			tc.spoil(&w, s)
			defer func() {
				fell, _ := recover().(string)
				if !strings.Contains(fell, "broken") && !strings.Contains(fell, "nil pointer") || !strings.Contains(fell, "panic_test.go") && !strings.Contains(fell, "apply.go") {
					t.Errorf("%s: the pass fell with %q, which does not say where", tc.reason, fell)
				}
			}()
			_, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)})
			t.Errorf("%s: the pass ended with %v", tc.reason, err)
		})
	}
}
