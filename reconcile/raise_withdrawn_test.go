package reconcile

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRaisedWithdrawn: the image of what has run on the volume of the only member is gone. Any
// other patch of its minor reads the data, and the spec says which, as docs/upgrades.md tells.
func TestRaisedWithdrawn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		ran        string
		spec       string
		repository string
		waits      string // why its container waits; empty: its image cannot be pulled
		given      bool   // the spec was tried in vain
		want       membership.Action
		next       string // what is written on its volume as what is to run there
	}{
		"Patch":      {reason: "another patch of the minor reads the data", ran: "3.7.3", spec: "3.7.2", want: membership.Stop, next: "3.7.2"},
		"Never":      {reason: "so it is where the node has not got the image, and may not pull it", ran: "3.7.3", spec: "3.7.2", waits: "ErrImageNeverPull", want: membership.Stop, next: "3.7.2"},
		"Same":       {reason: "the spec asks for nothing else", ran: "3.7.3", spec: "3.7.3", want: membership.Stall},
		"Minor":      {reason: "an earlier minor cannot read the data", ran: "3.7.3", spec: "3.6.16", want: membership.Stall},
		"LaterMinor": {reason: "a later minor is an upgrade, which begins with members that serve", ran: "3.6.16", spec: "3.7.3", want: membership.Stall},
		"OnTheWay":   {reason: "the patch that comes first on the way to a later minor is one of the minor that ran", ran: "3.6.4", spec: "3.7.3", want: membership.Stop, next: "3.6.16"},
		"Exits":      {reason: "the image is there: what is wrong is something else", ran: "3.7.3", spec: "3.7.2", waits: "CrashLoopBackOff", want: membership.Wait},
		"Given":      {reason: "what the spec asks for was tried in vain", ran: "3.7.3", spec: "3.7.2", given: true, want: membership.Stall},
		"Mirrored":   {reason: "its Pod is made again, with the image that is there", ran: "3.7.3", spec: "3.7.2", repository: "mirror.example/etcd", want: membership.Stop, next: "3.7.2"},
		"Annotated":  {reason: "its Pod is made again, of the patch that a person has written on the volume", ran: "3.7.2", spec: "3.7.2", want: membership.Stop, next: "3.7.2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.alone()
			w.asked.members = nil
			w.cluster.Spec.Version = tc.spec
			if tc.given {
				w.cluster.Status.FailedChange = &api.FailedChange{Generation: w.cluster.Generation, Message: "it was tried"}
			}
			if tc.repository != "" {
				w.cluster.Spec.Image = &api.Image{Repository: tc.repository}
			}
			w.claims["db-0"].Annotations[api.AnnotationVersion] = tc.ran
			delete(w.asked.endpoints, "db-0")
			ran := tc.ran
			if name == "Annotated" {
				ran = "3.7.3"
			}
			w.pods["db-0"].Spec.Containers[0].Image = "gcr.io/etcd-development/etcd:v" + ran
			delete(w.pods["db-0"].Annotations, api.AnnotationApplied)
			w.pods["db-0"].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{State: waiting(cmp.Or(tc.waits, "ImagePullBackOff"), "back-off")})
			w.address()
			w.managed()
			s, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if diff := gocmp.Diff(tc.want, step.Action); diff != "" {
				t.Fatalf("%s: %s: -want +got:\n%s", tc.reason, step, diff)
			}
			if !step.Acts() {
				return
			}
			if err := s.take(t.Context(), w.cluster.DeepCopy(), seen, step); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.next, s.marks["PersistentVolumeClaim db-0"][api.AnnotationNext]); diff != "" {
				t.Errorf("%s: what is to run on the volume: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
