package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRaisedWithdrawn: the image of what has run on the volume of the only member is gone. Any
// other patch of its minor reads the data, and a person says which by the annotation of the volume,
// as docs/upgrades.md tells.
func TestRaisedWithdrawn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		ran        string
		repository string
		want       membership.Action
	}{
		"Stalls":    {reason: "the spec alone says what comes after it serves", ran: "3.7.3", want: membership.Stall},
		"Mirrored":  {reason: "its Pod is made again, with the image that is there", ran: "3.7.3", repository: "mirror.example/etcd", want: membership.Stop},
		"Annotated": {reason: "its Pod is made again, of that patch", ran: "3.7.2", want: membership.Stop},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.alone()
			w.asked.members = nil
			w.cluster.Spec.Version = "3.7.2"
			if tc.repository != "" {
				w.cluster.Spec.Image = &api.Image{Repository: tc.repository}
			}
			w.claims["db-0"].Annotations[api.AnnotationVersion] = tc.ran
			delete(w.asked.endpoints, "db-0")
			w.pods["db-0"].Spec.Containers[0].Image = image37
			delete(w.pods["db-0"].Annotations, api.AnnotationApplied)
			w.pods["db-0"].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{State: waiting("ImagePullBackOff", "back-off")})
			w.address()
			w.managed()
			_, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if diff := cmp.Diff(tc.want, step.Action); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, step, diff)
			}
		})
	}
}
