package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestUntried holds what the planner is told of a Pod beside what its member has served with, in a
// world in which the spec asks for other options than all have served with.
func TestUntried(t *testing.T) {
	t.Parallel()
	recreated := func(w *world) { w.pods["db-0"] = w.pod("db-0") }
	type result struct {
		Outdated bool
		Untried  []string
		Change   membership.Change
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		want   result
	}{
		"Before":    {reason: "it is what has served, and not what is asked for", given: func(*world) {}, want: result{Outdated: true, Change: membership.ChangePod}},
		"Recreated": {reason: "it is what is asked for, and has not served", given: recreated, want: result{Untried: []string{"options"}}},
		"Served":    {reason: "it is what is asked for, and has served", given: func(w *world) { recreated(w); w.claims["db-0"].Annotations[api.AnnotationServed] = otherServed }},
		"PutBack":   {reason: "it is what has served, and what is asked for was given up", given: given, want: result{Change: membership.ChangePod}},
		"PutBackAnnounced": {
			reason: "its volume says that it is being changed still", want: result{Outdated: true, Change: membership.ChangePod},
			given: func(w *world) { given(w); w.claims["db-0"].Annotations[api.AnnotationNext] = "3.6.16" },
		},
		"GivenUp": {
			reason: "it is what was given up, of which it is to be rid", want: result{Outdated: true, Untried: []string{"options"}},
			given: func(w *world) { recreated(w); given(w) },
		},
		"Unmarked": {
			reason: "a volume of earlier days does not say", want: result{},
			given: func(w *world) { recreated(w); delete(w.claims["db-0"].Annotations, api.AnnotationServed) },
		},
		"VersionToo": {
			reason: "it was recreated with another version as well, which its volume says", want: result{Untried: []string{"options"}},
			given: func(w *world) {
				recreated(w)
				w.cluster.Spec.Version = "3.6.17"
				w.claims["db-0"].Annotations[api.AnnotationNext] = "3.6.17"
				w.asksFor("db-0", "gcr.io/etcd-development/etcd:v3.6.17")
			},
		},
		"Grown": {
			reason: "the limit of the database comes with the volume", want: result{Outdated: true, Change: membership.ChangePod},
			given: func(w *world) {
				w.cluster.Spec.Options = nil
				w.cluster.Spec.Storage.Size.Add(w.cluster.Spec.Storage.Size)
				w.claims["db-0"].Spec.Resources.Requests["storage"] = w.cluster.Spec.Storage.Size
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			other(&w)
			tc.given(&w)
			i, _ := facts(w.cluster, w.pods, w.claims, w.asked, limits{}).Instance("db-0")
			if diff := cmp.Diff(tc.want, result{i.Pod.Outdated, i.Pod.Untried, i.Pod.Change}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
