package history

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TestRegister: what the checks of a load rest on tells right from wrong.
func TestRegister(t *testing.T) {
	put := func(value string, called, ended int64) porcupine.Operation {
		return porcupine.Operation{Input: operation{write: true, key: "k", value: value}, Output: value, Call: called, Return: ended}
	}
	get := func(value string, called, ended int64) porcupine.Operation {
		return porcupine.Operation{ClientId: 1, Input: operation{key: "k"}, Output: value, Call: called, Return: ended}
	}
	cases := map[string]struct {
		reason  string
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"Overlap": {
			reason:  "a read beside a write sees it or not",
			history: []porcupine.Operation{put("a", 0, 1), put("b", 2, 9), get("a", 3, 4), get("b", 5, 6)}, want: porcupine.Ok,
		},
		"Stale": {
			reason:  "a read after a write sees it",
			history: []porcupine.Operation{put("a", 0, 1), put("b", 2, 3), get("a", 4, 5)}, want: porcupine.Illegal,
		},
		"Back": {
			reason:  "what one read has seen the next one sees",
			history: []porcupine.Operation{put("a", 0, 1), put("b", 2, 9), get("b", 3, 4), get("a", 5, 6)}, want: porcupine.Illegal,
		},
		"Late": {
			reason:  "a write that failed may happen at any later time",
			history: []porcupine.Operation{put("a", 0, math.MaxInt64), put("b", 1, 2), get("b", 3, 4), get("a", 5, 6)}, want: porcupine.Ok,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := porcupine.CheckOperationsTimeout(register, tc.history, time.Minute); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestOver: a write that failed and happened all the same ended at the latest when a later one was
// acknowledged.
func TestOver(t *testing.T) {
	history := []operation{
		{write: true, revision: 3, ended: 30}, {write: true, revision: 6, ended: 60}, {write: true, revision: 7, ended: 50},
		{revision: 9, ended: 1}, {write: true, revision: 9, ended: 1, err: errors.New("timed out")},
	}
	for revision, want := range map[int64]int64{2: 30, 3: 50, 5: 50, 7: math.MaxInt64} {
		if got := over(history, revision); got != want {
			t.Errorf("over after revision %d: %d, want %d", revision, got, want)
		}
	}
}
