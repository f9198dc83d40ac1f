package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/membership"
)

// TestPace: how often is looked at one of many clusters that all wait for etcd, and how many looks
// in a second that makes.
func TestPace(t *testing.T) {
	t.Parallel()
	forms := membership.Step{Action: membership.Wait, Reason: membership.Bootstrapping}
	cases := map[string]struct {
		reason  string
		waiting int
		rests   int // of these
		want    time.Duration
	}{
		"Alone":    {reason: "as soon as ever", waiting: 1, want: whileForming},
		"Thirty":   {reason: "each as soon as one alone", waiting: 30, want: whileForming},
		"Hundred":  {reason: "all together a hundred times a second", waiting: 100, want: time.Second},
		"Thousand": {reason: "never more rarely than at rest", waiting: 2000, want: atRest},
		"Over":     {reason: "those that have come to rest do not count", waiting: 1000, rests: 999, want: whileForming},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pace{}
			var got time.Duration
			for n := range tc.waiting {
				got = p.wait(turnOf(fmt.Sprint(n)), forms, after(forms, false))
			}
			for n := range tc.rests {
				rests := membership.Step{Action: membership.None, Reason: membership.Healthy}
				if wait := p.wait(turnOf(fmt.Sprint(n)), rests, after(rests, false)); wait != atRest {
					t.Errorf("%s: a cluster at rest is looked at after %s", tc.reason, wait)
				}
			}
			if tc.rests > 0 {
				got = p.wait(turnOf(fmt.Sprint(tc.waiting-1)), forms, after(forms, false))
			}
			if got != tc.want {
				t.Errorf("%s: want a look after %s, got %s: %.0f in a second", tc.reason, tc.want, got, float64(tc.waiting)/got.Seconds())
			}
		})
	}
}

// TestPaceEndsEarly: a cluster counts as one that waits, so that the others wait longer, only while
// its last pass has found that it does.
func TestPaceEndsEarly(t *testing.T) {
	t.Parallel()
	waits := membership.Step{Action: membership.Wait, Reason: membership.Bootstrapping}
	cases := map[string]struct {
		reason string
		refuse func(write) error
		given  func(*world)
		want   int // clusters that count afterwards
	}{
		"Waits": {reason: "the cluster waits as before", given: func(w *world) {
			delete(w.asked.endpoints, "db-0")
			w.pods["db-0"].Status.ContainerStatuses[0].Ready = false
		}, want: 1},
		"Suspended": {reason: "nothing is waited for", given: func(w *world) { w.cluster.Spec.Suspend = true }},
		"Deleted":   {reason: "there is no cluster", given: func(w *world) { w.cluster.Name = "other" }},
		"Refused": {
			reason: "an error is tried again with growing pauses",
			refuse: func(w write) error {
				if w.Kind == "status" {
					return errors.New("the API server is away")
				}
				return nil
			},
			given: func(w *world) {
				delete(w.asked.endpoints, "db-0")
				w.pods["db-0"].Status.ContainerStatuses[0].Ready = false
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.address()
			tc.given(&w)
			s := newStub(t, tc.refuse, w.objects()...)
			s.StallAfter, s.Dial, s.Scrape = time.Minute, w.dial(nil), noMetrics
			s.pace.wait(turnOf("db"), waits, whileForming)
			_, err := s.pass(t.Context())
			if refused := tc.refuse != nil; refused != (err != nil) {
				t.Fatalf("%s: the pass ends with %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, len(s.pace.waiting)); diff != "" {
				t.Errorf("%s: clusters that wait: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
