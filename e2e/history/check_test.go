package history

import (
	"testing"
	"time"
)

// TestLeast: a run with less of a load than its clients can make shows less than it says, and one
// is not to blame for what could not be asked, nor for a slow machine.
func TestLeast(t *testing.T) {
	const usual = 5 * time.Millisecond
	cases := map[string]struct {
		reason string
		seen   Result
		want   int
	}{
		"Load":    {reason: "twenty a second, all the time", seen: Result{Usual: usual}, want: 800},
		"Outage":  {reason: "no member was ready for some of it", seen: Result{Usual: usual, Away: 25 * time.Second}, want: 300},
		"Silence": {reason: "members that are ready may have no quorum", seen: Result{Usual: usual, Silent: 25 * time.Second}, want: 300},
		"Both":    {reason: "it is the same time that is counted twice", seen: Result{Usual: usual, Away: 10 * time.Second, Silent: 25 * time.Second}, want: 300},
		"Always":  {reason: "nearly all of it was an outage, and an eighth counts", seen: Result{Usual: usual, Away: 39 * time.Second}, want: 100},
		"Slow":    {reason: "a client that waits for twice its pace asks half as often", seen: Result{Usual: 60 * time.Millisecond}, want: 400},
		"None":    {reason: "nothing was acknowledged", seen: Result{Silent: 40 * time.Second}, want: 100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.least(20, 30*time.Millisecond, 40*time.Second); got != tc.want {
				t.Errorf("%s: at least %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
