package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestPausedChanges: a change that the API server refuses in earnest is tried ever more seldom,
// until the spec changes or the change is made.
func TestPausedChanges(t *testing.T) {
	t.Parallel()
	denied := forbiddenBy("pods", "db-0", "policy: image is not signed")
	update := membership.Step{Action: membership.Update, Change: membership.ChangePod, Members: []string{"db-0"}}
	now := time.Now()
	refusedTimes := func(times int) func(*refusals, *api.EtcdCluster) {
		return func(r *refusals, c *api.EtcdCluster) {
			at := now
			for range times {
				r.remember(c, update, denied, at)
				at = at.Add(lastPause)
			}
		}
	}
	cases := map[string]struct {
		reason string
		given  func(*refusals, *api.EtcdCluster)
		step   membership.Step
		after  time.Duration // since the last refusal, at which it is not paused any more
	}{
		"Never":  {reason: "there is nothing to wait for", given: func(*refusals, *api.EtcdCluster) {}, step: update},
		"Once":   {reason: "it may be over soon", given: refusedTimes(1), step: update, after: 30 * time.Second},
		"Twice":  {reason: "it was not", given: refusedTimes(2), step: update, after: time.Minute},
		"Often":  {reason: "a person may be gone for the night", given: refusedTimes(9), step: update, after: 8 * time.Minute},
		"Other":  {reason: "another member may have another node", given: refusedTimes(9), step: membership.Step{Action: membership.Update, Change: membership.ChangePod, Members: []string{"db-1"}}},
		"Failed": {reason: "an API server that is away refuses nothing", given: func(r *refusals, c *api.EtcdCluster) { r.remember(c, update, errors.New("gone"), now) }, step: update},
		"Heals": {
			reason: "what heals is tried at every look", step: membership.Step{Action: membership.Start, Members: []string{"db-0"}},
			given: func(r *refusals, c *api.EtcdCluster) {
				r.remember(c, membership.Step{Action: membership.Start, Members: []string{"db-0"}}, denied, now)
			},
		},
		"Made": {
			reason: "it came after all", step: update,
			given: func(r *refusals, c *api.EtcdCluster) {
				refusedTimes(3)(r, c)
				r.remember(c, update, nil, now)
			},
		},
		"Changed": {reason: "the spec may ask for what is allowed", given: func(r *refusals, c *api.EtcdCluster) { refusedTimes(3)(r, c); c.Generation++ }, step: update},
		"Again":   {reason: "it is another cluster", given: func(r *refusals, c *api.EtcdCluster) { refusedTimes(3)(r, c); c.UID = "other" }, step: update},
		"Gone": {
			reason: "nothing is kept of it", step: update,
			given: func(r *refusals, c *api.EtcdCluster) { refusedTimes(3)(r, c); r.forget(client.ObjectKeyFromObject(c)) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c := &refusals{}, newCluster()
			tc.given(r, c)
			last, ok := r.last(c, tc.step)
			if !ok {
				last = refusedChange{}
			}
			if diff := cmp.Diff(tc.after, last.pause); diff != "" {
				t.Errorf("%s: pause: -want +got:\n%s", tc.reason, diff)
			}
			if tc.after == 0 {
				if err := r.pending(c, tc.step, now); err != nil {
					t.Errorf("%s: it is paused: %v", tc.reason, err)
				}
				return
			}
			for at, want := range map[time.Time]error{last.until.Add(-time.Second): denied, last.until: nil} {
				if err := r.pending(c, tc.step, at); !errors.Is(err, want) {
					t.Errorf("%s: %s before the end of the pause: got %v, want %v", tc.reason, last.until.Sub(at), err, want)
				}
			}
		})
	}
}

// TestGrowthRefused: larger volumes that were refused once are known to be, whatever the pause.
func TestGrowthRefused(t *testing.T) {
	t.Parallel()
	expand := membership.Step{Action: membership.Expand, Members: []string{"db-0", "db-1"}}
	update := membership.Step{Action: membership.Update, Change: membership.ChangePod, Members: []string{"db-0"}}
	refused := func(step membership.Step) func(*refusals, *api.EtcdCluster) {
		return func(r *refusals, c *api.EtcdCluster) {
			r.remember(c, step, forbiddenBy("persistentvolumeclaims", "db-0", "only dynamically provisioned pvc can be resized"), time.Now().Add(-time.Hour))
		}
	}
	cases := map[string]struct {
		reason string
		given  func(*refusals, *api.EtcdCluster)
		want   bool
	}{
		"Never":   {reason: "nothing was refused", given: func(*refusals, *api.EtcdCluster) {}},
		"Update":  {reason: "another change was", given: refused(update)},
		"Expand":  {reason: "its pause is over, and it is refused still", given: refused(expand), want: true},
		"Changed": {reason: "the spec may ask for what is allowed", given: func(r *refusals, c *api.EtcdCluster) { refused(expand)(r, c); c.Generation++ }},
		"Gone":    {reason: "it came after all", given: func(r *refusals, c *api.EtcdCluster) { refused(expand)(r, c); r.remember(c, expand, nil, time.Now()) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c := &refusals{}, newCluster()
			tc.given(r, c)
			if got := r.growth(c); got != tc.want {
				t.Errorf("%s: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
