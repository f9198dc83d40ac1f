package reconcile

import (
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRaise goes from what etcd has said at its end to what is written on the volume. With data in
// memory that is the Pod, which is changed by the same write.
func TestRaise(t *testing.T) {
	t.Parallel()
	type marks struct{ Version, Next, Replays, Image string }
	cases := map[string]struct {
		reason     string
		from, said string
		inMemory   bool
		want       marks
	}{
		"3.6": {reason: "the newest patch that is known reads what any of that minor wrote", from: "3.6.16", said: "3.6.16-newer-data", want: marks{Version: "3.7.3"}},
		"3.5": {reason: "its log is still of 3.5", from: "3.5.35", said: "3.5.35-newer-data", want: marks{Version: "3.6.16", Replays: membership.ReplaysAny}},
		"3.6 in memory": {
			reason: "its container is started with the later minor", from: "3.6.16", said: "3.6.16-newer-data", inMemory: true,
			want: marks{Version: "3.7.3", Image: "gcr.io/etcd-development/etcd:v3.7.3"},
		},
		"3.5 in memory": {
			reason: "its log is still of 3.5", from: "3.5.35", said: "3.5.35-newer-data", inMemory: true,
			want: marks{Version: "3.6.16", Replays: membership.ReplaysAny, Image: "gcr.io/etcd-development/etcd:v3.6.16"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := os.ReadFile("testdata/lastwords/" + tc.said + ".log")
			if err != nil {
				t.Fatal(err)
			}
			w := serving(t)
			w.alone()
			w.asked.members = nil
			w.cluster.Spec.Version = tc.from
			w.claims["db-0"].Annotations[api.AnnotationVersion] = tc.from
			delete(w.asked.endpoints, "db-0")
			w.pods["db-0"].Spec.Containers[0].Image = "gcr.io/etcd-development/etcd:v" + tc.from
			delete(w.pods["db-0"].Annotations, api.AnnotationApplied)
			w.pods["db-0"].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
				RestartCount: 3, State: waiting("CrashLoopBackOff", "back-off"), LastTerminationState: exited(1, "Error", string(log)),
			})
			object := "PersistentVolumeClaim db-0"
			if tc.inMemory {
				object = "Pod db-0"
				w.cluster.Spec.Storage.Medium = api.MediumMemory
				maps.Copy(w.pods["db-0"].Annotations, w.claims["db-0"].Annotations)
				delete(w.claims, "db-0")
			}
			w.address()
			w.managed()
			s, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Raise {
				t.Fatalf("%s: %s", tc.reason, step)
			}
			if err := s.take(t.Context(), w.cluster.DeepCopy(), seen, step); err != nil {
				t.Fatal(err)
			}
			written := s.marks[object]
			got := marks{written[api.AnnotationVersion], written[api.AnnotationNext], written[api.AnnotationReplays], ""}
			if containers := s.specs["apply db-0"].Containers; len(containers) > 0 {
				got.Image = containers[0].Image
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
