package reconcile

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSkew: it is told only where it is more than an hour.
func TestSkew(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		args   time.Duration // by which the clock of this process is ahead
		want   time.Duration
	}{
		"None":   {reason: "They agree"},
		"Hour":   {reason: "That much is borne", args: time.Hour},
		"Ahead":  {reason: "A year ahead", args: 365 * 24 * time.Hour, want: 365 * 24 * time.Hour},
		"Behind": {reason: "Two hours behind", args: -2 * time.Hour, want: -2 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &ServerTime{}
			s.note(now.Add(-tc.args).Format(http.TimeFormat), now)
			if diff := cmp.Diff(tc.want, s.Skew(now)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := (&ServerTime{}).Skew(now); got != 0 {
		t.Errorf("no time is known yet: want 0, got %s", got)
	}
}
