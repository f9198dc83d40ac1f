package reconcile

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestFirstOrdinalOfLost: the status of a cluster was lost. What the next look calls former is
// below every member of today, whatever a person has marked.
func TestFirstOrdinalOfLost(t *testing.T) {
	t.Parallel()
	byHand := func(w world, name string, change func(annotations map[string]string)) {
		w.claims[name] = newClaim(name)
		w.claims[name].Spec = w.claims["db-2"].Spec
		w.claims[name].Annotations[api.AnnotationSetAside] = "by hand"
		change(w.claims[name].Annotations)
	}
	empty := func(map[string]string) {}
	elsewhere := func(a map[string]string) { a[api.AnnotationClusterID], a[api.AnnotationMemberID] = "e0", "e5" }
	restored := func(w *world) {
		w.restoredWithout(api.RetentionRetain)
		w.claims["db-0"].Annotations[api.AnnotationClusterID] = "b0"
	}
	type result struct {
		First  int32
		Former []string // claims, at the next look
		Next   membership.Action
		On     []string
	}
	healthy := result{Next: membership.None}
	cases := map[string]struct {
		reason string
		given  func(*world)
		want   result
	}{
		"NoMark":   {reason: "nothing was ever restored in place", given: func(*world) {}, want: healthy},
		"Restored": {reason: "what the operator has set aside stays so", given: restored, want: result{First: 1, Former: []string{"db-0"}, Next: membership.None}},
		"ByHand":   {reason: "the volume of no member was marked", given: func(w *world) { byHand(*w, "db-5", empty) }, want: healthy},
		"ByHandOther": {
			reason: "so was one with the data of another cluster", given: func(w *world) { byHand(*w, "db-5", elsewhere) }, want: result{Next: membership.Stall},
		},
		"RestoredAndByHand": {
			reason: "what the operator has set aside stays so, and no member of today is of before",
			given:  func(w *world) { restored(w); byHand(*w, "db-5", elsewhere) },
			want:   result{First: 1, Former: []string{"db-0"}, Next: membership.Stall}, // data of two clusters
		},
		"VolumeGone": {
			reason: "the lowest member has lost its claim, and etcd lists it",
			given:  func(w *world) { delete(w.claims, "db-0"); byHand(*w, "db-5", empty) },
			want:   result{Next: membership.Provision, On: []string{"db-6"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			w.cluster.Status = api.EtcdClusterStatus{}
			look := func() (observed, membership.Step) {
				s := newStub(t, nil, w.objects()...)
				s.Dial = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil })
				seen, err := s.observe(t.Context(), w.cluster, s.Client)
				if err != nil {
					t.Fatal(err)
				}
				return seen, membership.Plan(desired(w.cluster), seen.Observed)
			}
			seen, step := look()
			w.cluster.Status = status(w.cluster, seen, step)
			seen, step = look()
			got := result{w.cluster.Status.FirstOrdinal, slices.Sorted(maps.Keys(seen.former.claims)), step.Action, step.Members}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
