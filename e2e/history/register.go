package history

import (
	"maps"
	"math"
	"slices"

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
		return slices.Collect(maps.Values(keys))
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if o := input.(operation); o.write {
			return true, o.value
		}
		return state == output, state
	},
}

// checkLinearizable judges what the clients asked for together.
func (l *Load) checkLinearizable(history []operation, truth []event) {
	l.Helper()
	if result := porcupine.CheckOperationsTimeout(register, l.fork.known(history, truth), l.config.Patience); result != porcupine.Ok {
		l.Errorf("linearizable: %s", result)
	}
}

// known leaves out the reads that failed, which say nothing, and the writes that failed and never
// happened. One that failed and did happen was over when a later revision was acknowledged, and
// else it is not known when it ended. A restore is a write to each key.
func (f fork) known(history []operation, truth []event) []porcupine.Operation {
	happened := map[string]int64{}
	for _, o := range history {
		if o.err == nil {
			happened[o.value] = o.made
		}
	}
	for _, key := range f.kept {
		happened[key.Last.Value] = key.Last.Revision
	}
	for _, e := range truth {
		happened[e.Value] = e.Revision
	}
	var known []porcupine.Operation
	keys := map[string]bool{}
	for _, o := range history {
		if f.resumed > 0 && !keys[o.key] {
			keys[o.key] = true
			restored := f.read(o.key)
			known = append(known, porcupine.Operation{Input: restored, Output: restored.value, Call: int64(f.called), Return: int64(f.ended)})
		}
		ended := int64(o.ended)
		if o.err != nil {
			revision, did := happened[o.value]
			if !o.write || !did {
				continue
			}
			ended = over(history, revision)
		}
		known = append(known, porcupine.Operation{ClientId: o.client, Input: o, Output: o.value, Call: int64(o.called), Return: ended})
	}
	return known
}

// over is when the first write after that revision was acknowledged.
func over(history []operation, revision int64) int64 {
	ended := int64(math.MaxInt64)
	for _, o := range history {
		if o.write && o.err == nil && o.revision > revision {
			ended = min(ended, int64(o.ended))
		}
	}
	return ended
}
