package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestTryResize: the API server is asked whether a Pod's node has what the spec asks for, only
// where that would be asked for in earnest, and what it says is a fact.
func TestTryResize(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(causes ...metav1.StatusCause) error {
		err := apierrors.NewForbidden(pods, "db-0", errors.New("no"))
		err.ErrStatus.Details.Causes = causes
		return err
	}
	broken := errors.New("the API server is away")
	cases := map[string]struct {
		reason  string
		change  membership.Change
		givenUp bool
		answer  error
		tries   int
		want    membership.Change
		err     error
	}{
		"NodeTooSmall": {
			reason: "no resize will ever do", change: membership.ChangeResources,
			answer: forbidden(metav1.StatusCause{Type: nodeCapacity}), tries: 3, want: membership.ChangePod,
		},
		"Quota": {
			reason: "a Pod that is recreated gets no more", change: membership.ChangeResources, answer: forbidden(), tries: 3, want: membership.ChangeResources,
		},
		"Taken":   {reason: "it is asked for then", change: membership.ChangeResources, tries: 3, want: membership.ChangeResources},
		"Away":    {reason: "that says nothing of nodes", change: membership.ChangeResources, answer: broken, tries: 3, want: membership.ChangeResources, err: broken},
		"Image":   {reason: "no cpu is to change", change: membership.ChangeImage, answer: broken, want: membership.ChangeImage},
		"GivenUp": {reason: "it was rolled back, and waits for another spec", change: membership.ChangeResources, givenUp: true, answer: broken, want: membership.ChangeResources},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			if tc.givenUp {
				c.Status.FailedChange = &api.FailedChange{Generation: c.Generation, Message: "in vain"}
			}
			for n := range seen.Instances {
				seen.Instances[n].Pod.Change = tc.change
				seen.pods[seen.Instances[n].Name].Spec.Containers = []corev1.Container{{Name: "etcd"}}
			}
			tries := make(chan write, len(seen.Instances))
			s := newStub(t, func(w write) error { tries <- w; return tc.answer })
			if err := attempted(t, &seen, s.tryResize(c, seen)); !errors.Is(err, tc.err) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			if len(tries) != tc.tries || len(s.writes) > 0 {
				t.Errorf("%s: %d tries, want %d; %d writes", tc.reason, len(tries), tc.tries, len(s.writes))
			}
			for _, i := range seen.Instances {
				if diff := cmp.Diff(tc.want, i.Pod.Change); diff != "" {
					t.Errorf("%s: %s: -want +got:\n%s", tc.reason, i.Name, diff)
				}
			}
		})
	}
}

// TestDeferredResize: a node that is full gives a Pod its cpu and memory later, or never. What
// waits for that can be set back, or to something else, and a person is told.
func TestDeferredResize(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	cpu := func(n string) *api.Resources {
		return &api.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	const what = "waiting for db-0 to be given the cpu and memory that it was changed to"
	waits := membership.Step{Action: membership.Wait, Rule: "waitForUpdate", Reason: membership.Changing, Message: what}
	stalls := waits
	stalls.Action = membership.Stall
	stalls.Message += ". The node of db-0 cannot give it these now (Node didn't have enough resource: cpu, requested: 1500, used: 1100, capacity: 2000): make room there, or revert spec.resources"
	update := func(change membership.Change, message string) membership.Step {
		return membership.Step{
			Action: membership.Update, Members: []string{"db-0"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, Change: change,
			Rule: "updateMember", Reason: membership.Changing, Message: message,
		}
	}
	cases := map[string]struct {
		reason string
		asks   func(*api.EtcdClusterSpec)
		since  time.Duration
		fails  bool // and is not deferred
		want   membership.Step
	}{
		"Lately":    {reason: "another Pod may go", since: time.Second, want: waits},
		"Long":      {reason: "it is not known since when", since: 2 * time.Minute, want: stalls},
		"Error":     {reason: "the kubelet cannot set them", fails: true, since: 2 * time.Minute, want: stalls},
		"SetBack":   {reason: "it runs with that still", asks: func(s *api.EtcdClusterSpec) { s.Resources = cpu("1") }, since: 2 * time.Minute, want: update(membership.ChangeResources, "changing cpu and memory of db-0 while it runs (spec.resources)")},
		"Less":      {reason: "there may be room for that", asks: func(s *api.EtcdClusterSpec) { s.Resources = cpu("1500m") }, since: time.Second, want: update(membership.ChangeResources, "changing cpu and memory of db-0 while it runs (spec.resources)")},
		"Recreated": {reason: "it goes where there is room", asks: func(s *api.EtcdClusterSpec) { s.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))} }, since: time.Second, want: update(membership.ChangePod, "recreating the Pod of db-0 (spec.options)")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.cluster.Spec.Resources = cpu("1")
			w.pods["db-1"], w.pods["db-2"] = w.pod("db-1"), w.pod("db-2")
			w.cluster.Spec.Resources = cpu("2")
			pod := w.pod("db-0")
			w.pods["db-0"] = pod
			pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: cpu("1").Requests}
			condition := corev1.PodCondition{
				Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-tc.since)),
				Message: "Node didn't have enough resource: cpu, requested: 1500, used: 1100, capacity: 2000",
			}
			if tc.fails {
				condition.Type, condition.Reason = corev1.PodResizeInProgress, corev1.PodReasonError
			}
			pod.Status.Conditions = []corev1.PodCondition{condition}
			if tc.asks != nil {
				tc.asks(&w.cluster.Spec)
			}
			w.managed()
			o := facts(w.cluster, w.pods, w.claims, w.asked, (&Reconciler{StallAfter: time.Minute}).limits(w.cluster, now))
			got := membership.Plan(desired(w.cluster), o)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
