//go:build env

package reconcile_test

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// register is one key.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(operation).key
			keys[key] = append(keys[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if o := input.(operation); o.write {
			return true, o.value
		}
		return state == output, state
	},
}

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
			if got := porcupine.CheckOperationsTimeout(register, tc.history, patience); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// checkLinearizable leaves out the reads that failed, which say nothing, and the writes that failed and never happened. Of
// one that failed and did happen nobody knows when it ended.
func (l *load) checkLinearizable(history []operation, truth []event) {
	l.Helper()
	happened := map[string]bool{}
	for _, e := range truth {
		happened[e.Value] = true
	}
	var known []porcupine.Operation
	for _, o := range history {
		ended := int64(o.ended)
		if o.err != nil {
			if !o.write || !happened[o.value] {
				continue
			}
			ended = math.MaxInt64
		}
		known = append(known, porcupine.Operation{ClientId: o.client, Input: o, Output: o.value, Call: int64(o.called), Return: ended})
	}
	if result := porcupine.CheckOperationsTimeout(register, known, patience); result != porcupine.Ok {
		l.Errorf("linearizable: %s", result)
	}
}
