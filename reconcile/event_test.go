package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestEventBound: the API server refuses an event whose note has more than 1024 bytes, and then it
// is lost.
func TestEventBound(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.event(newCluster(), membership.Step{Action: membership.Wait, Reason: membership.Starting}, strings.Repeat("x", 2000))
	if diff := cmp.Diff("Normal Starting "+strings.Repeat("x", 1021)+"...", <-s.events.Events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestEventsName: an event says what was done and to which object, and why where that is known.
func TestEventsName(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		step   membership.Step
		want   string
	}{
		"Created": {
			reason: "two were not there",
			step:   membership.Step{Action: membership.Provision, Reason: membership.Provisioning, Members: []string{"db-0", "db-1"}},
			want:   "Normal Provisioning Created PersistentVolumeClaim db-0, PersistentVolumeClaim db-1",
		},
		"Stopped": {
			reason: "the Pod goes, not the member",
			step:   membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Members: []string{"db-2"}},
			want:   "Normal Hibernating Deleted Pod db-2",
		},
		"Why": {
			reason: "the message of the step is the cause",
			step:   membership.Step{Action: membership.Stop, Reason: membership.Replacing, Message: "db-2 is on a node that is away", Members: []string{"db-2"}},
			want:   "Normal Replacing Deleted Pod db-2: db-2 is on a node that is away",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			s := newStub(t, nil, c, seen.pods["db-2"])
			var err error
			if tc.step.Action == membership.Provision {
				err = s.create(t.Context(), c, tc.step, func(name string) ([]runtime.ApplyConfiguration, error) {
					return []runtime.ApplyConfiguration{render.Volume(c, member(c, seen, name))}, nil
				})
			} else {
				err = s.deletePod(t.Context(), c, seen.pods["db-2"], tc.step)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, <-s.events.Events); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
