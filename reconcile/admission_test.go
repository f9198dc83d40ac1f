package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
)

// TestPrevious holds what is written on a Pod that is about to be changed in place, and what is
// read from it later.
func TestPrevious(t *testing.T) {
	t.Parallel()
	const mirror = "mirror.example.com/etcd:"
	type result struct {
		Written, Container, Image string
		Changed                   bool
	}
	cases := map[string]struct {
		reason    string
		ran, runs string // what a policy makes of the image before and after; empty is what was asked for
		want      result
	}{
		"Asked":     {reason: "no policy", want: result{"containerd://db-0 " + image36, "containerd://db-0", image36, true}},
		"Rewritten": {reason: "what was asked for is what is rolled back", ran: mirror + "v3.6.16", runs: mirror + "v3.7.3", want: result{"containerd://db-0 " + image36 + " " + mirror + "v3.6.16", "containerd://db-0", image36, true}},
		"Same":      {reason: "the policy makes the same of both", ran: mirror + "any", runs: mirror + "any", want: result{"containerd://db-0 " + image36 + " " + mirror + "any", "containerd://db-0", image36, false}},
		"NoMore":    {reason: "the policy is gone", ran: mirror + "v3.6.16", want: result{"containerd://db-0 " + image36 + " " + mirror + "v3.6.16", "containerd://db-0", image36, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.managed()
			pod := w.pods["db-0"]
			if tc.ran != "" {
				pod.Spec.Containers[0].Image = tc.ran
			}
			var got result
			got.Written = previous(w.cluster, pod)
			pod.Annotations[api.AnnotationPrevious] = got.Written
			if w.asksFor("db-0", image37); tc.runs != "" {
				pod.Spec.Containers[0].Image = tc.runs
			}
			got.Container, got.Image, got.Changed = ranBefore(pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
