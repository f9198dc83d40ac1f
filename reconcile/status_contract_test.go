package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestStatusContract goes through all actions and reasons over facts of all kinds, whether they can
// come together or not: what the status promises to other tools holds without exception.
func TestStatusContract(t *testing.T) {
	facts := map[string]func(*observed){
		"Healthy": func(*observed) {}, "Empty": empty, "Down": func(seen *observed) { down(seen, 1) },
		"Unreachable": func(seen *observed) { unreachable(seen, "db-0", "db-1", "db-2") },
	}
	actions := []membership.Action{
		membership.None, membership.Wait, membership.Stall, membership.Provision, membership.Bootstrap, membership.Record, membership.Start, membership.Stop,
		membership.AddLearner, membership.Join, membership.Promote, membership.Remove, membership.MoveLeader, membership.Disarm, membership.Discard,
	}
	for name, mutate := range facts {
		for _, action := range actions {
			for _, reason := range reasons(t) {
				c, seen := newCluster(), healthy()
				mutate(&seen)
				got := status(c, seen, membership.Step{Action: action, Reason: reason, Message: "message", Members: []string{"db-0"}})
				where := name + " " + string(action) + " " + string(reason)
				if got.ObservedGeneration != c.Generation {
					t.Errorf("%s: the status speaks of generation %d", where, got.ObservedGeneration)
				}
				for _, condition := range got.Conditions {
					if condition.ObservedGeneration != c.Generation || condition.Message == "" || condition.Reason == "" {
						t.Errorf("%s: incomplete condition %+v", where, condition)
					}
				}
				for _, always := range []string{api.ConditionReady, api.ConditionAvailable, api.ConditionDegraded} {
					if meta.FindStatusCondition(got.Conditions, always) == nil {
						t.Errorf("%s: no condition %s", where, always)
					}
				}
				reconciling := meta.FindStatusCondition(got.Conditions, api.ConditionReconciling)
				stalled := meta.FindStatusCondition(got.Conditions, api.ConditionStalled)
				if reconciling != nil && stalled != nil || len(got.Conditions) > 4 {
					t.Errorf("%s: %+v", where, got.Conditions)
				}
				if meta.IsStatusConditionTrue(got.Conditions, api.ConditionReady) && (reconciling != nil || stalled != nil) {
					t.Errorf("%s: ready, and something is to be done: %+v", where, got.Conditions)
				}
			}
		}
	}
}

// TestStatusStable: the same world gives the same status, in whatever order its parts are seen.
func TestStatusStable(t *testing.T) {
	look := func(members ...int) api.EtcdClusterStatus {
		w := serving(t)
		listed := w.asked.members
		w.asked.members = nil
		for _, n := range members {
			w.asked.members = append(w.asked.members, listed[n])
		}
		for name, pod := range w.pods {
			pod.Status.ContainerStatuses[0].Ready = false
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
			delete(w.asked.endpoints, name)
		}
		for n := range w.cluster.Status.Members {
			w.cluster.Status.Members[n].DownSince = new(metav1.NewTime(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)))
		}
		seen := observed{Observed: facts(w.cluster, w.pods, w.claims, w.asked, limits{stallBefore: time.Now()}), pods: w.pods, claims: w.claims}
		return status(w.cluster, seen, membership.Plan(desired(w.cluster), seen.Observed))
	}
	want := look(0, 1, 2)
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}} { // maps have a new order each time
		if diff := cmp.Diff(want, look(order...), ignoreTimes); diff != "" {
			t.Errorf("the order %v in etcd's list changes the status: -want +got:\n%s", order, diff)
		}
	}
}

func TestRoundedUp(t *testing.T) {
	cases := map[string]struct {
		reason string
		size   int64
		want   string
	}{
		"Empty":   {reason: "nothing", size: 0, want: "0"},
		"Least":   {reason: "a fresh database is below a MiB", size: 20 << 10, want: "1Mi"},
		"Exact":   {reason: "a round one stays", size: 16 << 20, want: "16Mi"},
		"Small":   {reason: "single MiB up to 16", size: 15<<20 + 1, want: "16Mi"},
		"Coarser": {reason: "then in steps of a sixteenth to an eighth", size: 17<<20 + 1, want: "18Mi"},
		"Large":   {reason: "and so on", size: 8<<30 + 1, want: "8704Mi"},
		"Largest": {reason: "the largest quota that there can be", size: 100 << 30, want: "104Gi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, roundedUp(tc.size).String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReport: a status that says the same is not written.
func TestReport(t *testing.T) {
	cases := map[string]struct {
		reason string
		next   func(*api.EtcdClusterStatus)
		want   []write
	}{
		"Same":      {reason: "at rest nothing is written", next: func(*api.EtcdClusterStatus) {}},
		"SameSize":  {reason: "1Mi is 1024Ki", next: func(s *api.EtcdClusterStatus) { s.DBSize = new(resource.MustParse("1024Ki")) }},
		"Different": {reason: "one field is enough", next: func(s *api.EtcdClusterStatus) { s.Leader = "db-0" }, want: []write{{Verb: "apply", Kind: "status"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status = healthyStatus()
			next := *c.Status.DeepCopy()
			tc.next(&next)
			s := newStub(t, nil)
			if err := s.report(t.Context(), c, next); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.writes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if !equality.Semantic.DeepEqual(c.Status, next) {
				t.Errorf("the pass does not go on with the status it has written")
			}
		})
	}
}
