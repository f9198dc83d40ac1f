package reconcile

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestStartsProved: a Pod that is gone is made again of what its member has served with, or is
// being changed to, though the spec is such that nothing can be made of it, or not of that. What is
// wrong with the spec is told as well.
func TestStartsProved(t *testing.T) {
	t.Parallel()
	const large = `{"version":"3.6.16","options":{"quotaBackendSize":"3Gi"}}`
	quota := func(size string) *api.Options {
		return &api.Options{QuotaBackendSize: new(resource.MustParse(size))}
	}
	says := func(w *world, served string) {
		for _, claim := range w.claims {
			claim.Annotations[api.AnnotationServed] = served
		}
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		arg    string
		told   string // part of an error; empty: there is none
	}{
		"SmallerSpec": {
			reason: "the volume of the spec is smaller than the quota of before",
			given:  func(w *world) { says(w, large); w.cluster.Spec.Options = quota("256Mi") },
			arg:    "--quota-backend-bytes=3221225472",
		},
		"NextWith": {
			reason: "so it is with what it is being changed to",
			given: func(w *world) {
				says(w, firstServed)
				w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", large
				w.cluster.Spec.Options = quota("256Mi")
			},
			arg: "--quota-backend-bytes=3221225472",
		},
		"WrongSpec": {
			reason: "nothing can be made of the spec",
			given:  func(w *world) { says(w, otherServed); w.cluster.Spec.Options = quota("1Mi") },
			arg:    "--snapshot-count=5000", told: "spec.options.quotaBackendSize must be from 16Mi",
		},
		"RefusedSince": {
			reason: "a release since refuses what it has served with",
			given: func(w *world) {
				says(w, `{"version":"3.6.16","options":{"flags":{"max-learners":"3"}}}`)
			},
			arg: "--max-learners=3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			delete(w.pods, "db-0")
			delete(w.asked.endpoints, "db-0")
			w.address()
			w.managed()
			s, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Start {
				t.Fatalf("%s: the step is %s", tc.reason, step)
			}
			err := s.act(t.Context(), w.cluster.DeepCopy(), seen, step)
			if told := err != nil && strings.Contains(err.Error(), tc.told); (tc.told != "") != told || err != nil && tc.told == "" {
				t.Errorf("%s: the error is %v, want one that says %q", tc.reason, err, tc.told)
			}
			if made := s.specs["apply db-0"]; len(made.Containers) == 0 || !slices.Contains(made.Containers[0].Args, tc.arg) {
				t.Errorf("%s: want a Pod with %s, got %+v", tc.reason, tc.arg, made.Containers)
			}
		})
	}
}
