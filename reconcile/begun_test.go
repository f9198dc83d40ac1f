package reconcile

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestBegun: what another step has to wait for an intent, whatever the clocks of the nodes say.
// Times are seconds, and are relative to when this process sees the intent first.
func TestBegun(t *testing.T) {
	const hour = 3600
	type server struct {
		now     int // what the API server says the time is
		written int // when it says that the status was written
	}
	cases := map[string]struct {
		reason string
		holder string
		since  int // by the clock of the holder
		server *server
		other  bool   // the write was another manager's
		after  []int  // when another step is tried
		want   []bool // whether it waits
	}{
		"Now":         {reason: "its request may be under way", after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"Ahead":       {reason: "its holder's clock is ahead: it holds up nothing for longer than any other", since: hour, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"Behind":      {reason: "its holder's clock is behind: its request may be under way all the same", since: -hour, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"LittleAhead": {reason: "no clock is exact", since: 2, after: []int{0, 14, 16}, want: []bool{true, true, false}},

		"Restarted":     {reason: "it is an hour old by all clocks: an operator that starts does not wait", since: -hour, server: &server{0, -hour}, after: []int{0}, want: []bool{false}},
		"RestartedSoon": {reason: "it has lived for some of its life by all clocks", since: -10, server: &server{0, -10}, after: []int{0, 3, 7}, want: []bool{true, true, false}},
		"ServerAhead":   {reason: "the clock of the API server is compared with itself, and may be wrong", since: -hour, server: &server{2 * hour, hour}, after: []int{0}, want: []bool{false}},
		"BehindShown":   {reason: "the API server knows that it was written a moment ago", since: -hour, server: &server{0, -1}, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"AheadShown":    {reason: "one clock says that it is young", since: hour, server: &server{0, -hour}, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"ServersDiffer": {reason: "two API servers have two clocks: the holder's says that it is young", since: 0, server: &server{0, -hour}, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"ServerBehind":  {reason: "it was written in what is still to come for the API server", since: -hour, server: &server{-hour, 0}, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"NotShown":      {reason: "another manager's write says nothing", since: -hour, server: &server{0, -hour}, other: true, after: []int{0, 14, 16}, want: []bool{true, true, false}},

		"OwnAhead":  {reason: "our own clock was set back since: it counts from now", holder: "us", since: hour, after: []int{0, 14, 16}, want: []bool{true, true, false}},
		"OwnUnseen": {reason: "our answer was lost, and our own clock tells when that was", holder: "us", since: -10, after: []int{0, 4, 6}, want: []bool{true, true, false}},
	}
	remove := membership.Step{Action: membership.Remove, Reason: membership.ScalingDown, Members: []string{"db-2"}, ID: 0xa2}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
				s := newStub(t, nil)
				c, seen := newCluster(), healthy()
				op := theirs(operation(membership.Remove, "a1", 0, target("db-1", "claim-of-db-1")))
				op.Since = new(metav1.NewTime(at(tc.since)))
				if tc.holder != "" {
					op.Holder = tc.holder
					s.settle(c, errors.New("context deadline exceeded"))
				}
				c.Status.Operation = op
				if tc.server != nil {
					s.ServerTime = &ServerTime{}
					s.ServerTime.note(at(tc.server.now).UTC().Format(http.TimeFormat), start)
					manager := metav1.ManagedFieldsEntry{Manager: api.Manager, Subresource: "status", Time: new(metav1.NewTime(at(tc.server.written)))}
					if tc.other {
						manager.Manager = "kubectl"
					}
					c.ManagedFields = []metav1.ManagedFieldsEntry{manager}
				}
				var got []bool
				for _, n := range tc.after {
					time.Sleep(time.Until(at(n))) //nolint:forbidigo // on a clock of the test
					looked := c.DeepCopy()        // as it comes of the cache
					err := s.intend(t.Context(), looked, seen, remove, volumeUID)
					if err != nil && !errors.Is(err, errInFlight) {
						t.Fatal(err)
					}
					got = append(got, err != nil)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: waits, after %v s: -want +got:\n%s", tc.reason, tc.after, diff)
				}
			})
		})
	}
}

// TestBegunOfOwn: a request to etcd is bounded by the monotonic clock: the one on the wall may be
// set between the intent and its request.
func TestBegunOfOwn(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    time.Duration // by how much the clock is set
		wait   time.Duration
		left   time.Duration // for the request; 0: none is made
	}{
		"Right":   {reason: "etcd gives up by itself 7 s after it was asked, and the intent lives for 15 s", wait: 3 * time.Second, left: 5 * time.Second},
		"Back":    {reason: "another operator goes by its own clock", set: -time.Hour, wait: 3 * time.Second, left: 5 * time.Second},
		"Forward": {reason: "nothing has been lost", set: time.Hour, wait: 3 * time.Second, left: 5 * time.Second},
		"TooLate": {reason: "etcd would still be at it when another one begins", set: -time.Hour, wait: 9 * time.Second},
	}
	remove := membership.Step{Action: membership.Remove, Reason: membership.ScalingDown, Members: []string{"db-2"}, ID: 0xa2}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub(t, nil)
				c := newCluster()
				if tc.set != 0 { // seen against a clock that was set, what was written is so much off
					c.Status.Operation = &api.Operation{Step: string(membership.Remove), Holder: "us", Since: new(metav1.NewTime(time.Now().Add(-tc.set)))}
					s.intents.begun(c, c.Status.Operation, time.Now(), time.Now())
				} else if err := s.intend(t.Context(), c, healthy(), remove, volumeUID); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tc.wait) //nolint:forbidigo // on a clock of the test
				var left time.Duration
				ctx, cancel, err := s.inTime(t.Context(), c)
				if err == nil {
					defer cancel()
					deadline, _ := ctx.Deadline()
					left = time.Until(deadline)
				}
				if left != tc.left {
					t.Errorf("%s: %s left, want %s (%v)", tc.reason, left, tc.left, err)
				}
			})
		})
	}
}

// TestIntentsForgotten: of what was lost to other writers nothing is kept for longer than it could
// matter, nor anything of a cluster that is gone.
func TestIntentsForgotten(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	c, now := newCluster(), time.Now()
	for n := range 60 {
		c.Status.Operation = operation(membership.Remove, "a1", -time.Duration(n)*time.Second, target("db-1", "claim-of-db-1"))
		s.begun(c, now.Add(time.Duration(n)*time.Second))
	}
	key := client.ObjectKeyFromObject(c)
	if kept := len(s.intents.seen[key]); kept > 17 {
		t.Errorf("%d intents are remembered, one was written a second", kept)
	}
	s.intents.forget(key)
	if kept := len(s.intents.seen); kept != 0 {
		t.Errorf("%d clusters are remembered, all are gone", kept)
	}
}

// TestServerTime: the Date of an answer goes on as our own monotonic clock does.
func TestServerTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	date := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	cases := map[string]struct {
		reason string
		given  func() *ServerTime
		want   time.Time
		known  bool
	}{
		"None":    {reason: "no transport is listened to", given: func() *ServerTime { return nil }},
		"Unheard": {reason: "nothing has been answered yet", given: func() *ServerTime { return &ServerTime{} }},
		"Heard": {reason: "five seconds have passed", known: true, want: date.Add(5 * time.Second), given: func() *ServerTime {
			s := &ServerTime{}
			s.note("Sat, 03 Feb 2001 04:05:06 GMT", now.Add(-5*time.Second))
			return s
		}},
		"Taken": {reason: "a proxy answers without a Date: what was heard before still holds", known: true, want: date.Add(5 * time.Second), given: func() *ServerTime {
			s := &ServerTime{}
			s.note("Sat, 03 Feb 2001 04:05:06 GMT", now.Add(-5*time.Second))
			s.note("", now)
			return s
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known := tc.given().now(now)
			if known != tc.known || known && !got.Equal(tc.want) {
				t.Errorf("%s: %s %t, want %s %t", tc.reason, got, known, tc.want, tc.known)
			}
		})
	}
}
