package reconcile

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

func TestLearnerDegrades(t *testing.T) {
	c, seen := newCluster(), healthy()
	c.Spec.Replicas = new(int32(5))
	spare(&seen, 3)
	learner(&seen, "db-3")
	got := status(c, seen, membership.Step{Action: membership.Wait, Reason: membership.Joining, Message: "waiting"})
	if meta.IsStatusConditionTrue(got.Conditions, api.ConditionDegraded) || got.Members[3].Role != api.RoleLearner {
		t.Errorf("%+v %+v", got.Members[3], got.Conditions)
	}
}

func TestOldIntentReused(t *testing.T) {
	c, seen := newCluster(), healthy()
	remove := membership.Step{Action: membership.Remove, Members: []string{"db-2"}, ID: 0xa2}
	c.Status.Operation = operation(membership.Remove, "a2", 14*time.Second, target("db-2", "claim-of-db-2"))
	s := newStub(t, nil)
	if err := s.intend(t.Context(), c, seen, remove, volumeUID); err != nil {
		t.Fatal(err)
	}
	s.settle(c, errors.New("context deadline exceeded")) // the request of just now
	c.Status.Operation.Since = new(metav1.NewTime(c.Status.Operation.Since.Add(-2 * time.Second)))
	spare(&seen, 3)
	add := membership.Step{Action: membership.AddLearner, Members: []string{"db-3"}}
	if err := s.intend(t.Context(), c, seen, add, volumeUID); !errors.Is(err, errInFlight) {
		t.Errorf("two seconds after a request that was not answered another operation begins: %v", err)
	}
}

func TestTimeoutIsNoAnswer(t *testing.T) {
	c, seen := newCluster(), healthy()
	s := newStub(t, nil)
	c.Status.Operation = operation(membership.Remove, "a2", 0, target("db-2", "claim-of-db-2"))
	s.settle(c, fmt.Errorf("remove: %w: %w: %w", membership.ErrLater, membership.ErrUnanswered, rpctypes.ErrTimeout))
	spare(&seen, 3)
	add := membership.Step{Action: membership.AddLearner, Members: []string{"db-3"}}
	if err := s.intend(t.Context(), c, seen, add, volumeUID); !errors.Is(err, errInFlight) {
		t.Errorf("after etcdserver: request timed out another operation begins at once: %v", err)
	}
}

func TestWrongLogLevelIsNoDamage(t *testing.T) {
	for _, v := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		log, err := os.ReadFile("testdata/lastwords/" + v + "-go-panic.log")
		if err != nil {
			t.Fatal(err)
		}
		if damaged(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: exited(2, "Error", string(log))})}}) {
			t.Errorf("%s: a log level that etcd does not know counts as damaged data", v)
		}
	}
}

func TestPrepareOverwrites(t *testing.T) {
	w := serving(t)
	w.learner() // the API server has db-3, whose claim says so; the cache has not
	c, seen := newCluster(), healthy()
	live := newStub(t, nil, w.objects()...).Client
	s := newStub(t, unlessChanged(t, live))
	s.Reader = live
	err := s.prepare(t.Context(), c, seen, membership.Step{Action: membership.Provision, Members: []string{"db-3"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}})
	if len(s.writes) > 0 || !apierrors.IsConflict(err) {
		t.Errorf("%v %v %v", err, s.writes, s.marks)
	}
}

// TestNotReadyWithoutService: a cluster whose members are all healthy and whose Service cannot be
// applied is not ready.
func TestNotReadyWithoutService(t *testing.T) {
	full := apierrors.NewInternalError(errors.New(`failed to allocate a serviceIP for Service "db-client": range is full`))
	cases := map[string]struct {
		reason string
		err    error
		want   membership.Step
	}{
		"Failed": {
			reason: "it is tried again, and may succeed", err: fmt.Errorf("apply Service db-client: %w", full),
			want: membership.Step{
				Action: membership.Wait, Reason: "ApplyFailed",
				Message: `an object of the cluster cannot be applied, and Quorate tries it again: apply Service db-client: Internal error occurred: failed to allocate a serviceIP for Service "db-client": range is full`,
			},
		},
		"Conflict": {reason: "the cache was behind", err: apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "db", errors.New("modified"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _ := obstacle(tc.err, membership.Step{Action: membership.None, Reason: membership.Healthy})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
