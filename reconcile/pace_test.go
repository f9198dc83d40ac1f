package reconcile

import (
	"fmt"
	"testing"
	"time"

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
