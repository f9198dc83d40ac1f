package history

import (
	"testing"
	"time"
)

// TestVoid: a run with next to no load shows nothing, and one is not to blame for what could not be asked.
func TestVoid(t *testing.T) {
	cases := map[string]struct {
		reason string
		seen   Result
		want   bool
	}{
		"Load":    {reason: "two a second and more", seen: Result{Acknowledged: 80}},
		"NoLoad":  {reason: "somebody was there all the time, and was hardly asked", seen: Result{Acknowledged: 79}, want: true},
		"Outage":  {reason: "nobody could be asked for most of the time", seen: Result{Acknowledged: 50, Away: 25 * time.Second}},
		"Between": {reason: "who could be asked for the rest was hardly asked", seen: Result{Acknowledged: 29, Away: 25 * time.Second}, want: true},
		"Away":    {reason: "nearly all of it was an outage", seen: Result{Acknowledged: 19, Away: 39 * time.Second}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.void(2, 40*time.Second); got != tc.want {
				t.Errorf("%s: void is %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
