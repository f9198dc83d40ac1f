package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRefusalLapses: since when a Pod has been refused, as far as it was tried again meanwhile.
func TestRefusalLapses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cases := map[string]struct {
		reason string
		ago    []time.Duration // the refusals
		want   time.Duration   // since when
	}{
		"Again":  {reason: "it lasts", ago: []time.Duration{3 * time.Minute, 2 * time.Minute, time.Minute, 0}, want: 3 * time.Minute},
		"Lapsed": {reason: "the cluster hibernated, or other steps came first", ago: []time.Duration{time.Hour, 0}, want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r refusedPods
			for _, ago := range tc.ago {
				r.remember(newCluster(), "db-0", "made", forbiddenBy("pods", "db-0", "not allowed"), now.Add(-ago))
			}
			if diff := cmp.Diff(tc.want, now.Sub(r.all(newCluster())["db-0"].since)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
