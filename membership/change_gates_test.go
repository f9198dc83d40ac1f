package membership

import (
	"slices"
	"strings"
	"testing"
)

// TestChangeGateMutants shows the same of each gate: what a minor may be left from, and where it
// may be reached.
func TestChangeGateMutants(t *testing.T) {
	found := counted(t, "mutants")
	for name, tc := range map[string]struct {
		reason string
		mutant func(gates []Gate)
		want   string
	}{
		"Leave35": {
			reason: "3.5 is left for 3.6 from a patch that loses track of members",
			mutant: func(gates []Gate) { gates[0].Leave = 0 }, want: "S13: a patch is left",
		},
		"Enter35": {
			reason: "3.5 is reached at a patch that loses track of members",
			mutant: func(gates []Gate) { gates[0].Enter = 0 }, want: "S13: a minor is reached",
		},
		"Leave36": {
			reason: "3.6 is left for 3.7 from a patch that knows too little of it",
			mutant: func(gates []Gate) { gates[1].Leave = 0 }, want: "S13: a patch is left",
		},
		"Enter36": {
			reason: "3.6 is reached at a patch that may not start",
			mutant: func(gates []Gate) { gates[1].Enter = 0 }, want: "S13: a minor is reached",
		},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: the gates are shared
			before := slices.Clone(Gates)
			defer copy(Gates, before)
			tc.mutant(Gates)
			x, bad := exploreRoll(rollBounds["One"].bound, rollPlanner{phases: Phases})
			if bad == nil {
				t.Fatalf("%s: not found in %d states", tc.reason, len(x.states))
			}
			if !strings.HasPrefix(bad.violation, tc.want) {
				t.Errorf("%s: want a violation of %s, got %s", tc.reason, tc.want, bad)
			}
			found.Add(1)
			t.Logf("%.100s: found after %d states, in %d steps", bad.violation, len(x.states), len(bad.lines))
		})
	}
}
