//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plan is one disturbance: a life, the effect that is disturbed in it, and how.
type plan struct {
	life   string
	effect string
	mode   mode
}

func (p plan) String() string { return p.life + "/" + p.effect + "/" + string(p.mode) }

// run fails unless the end is that of the undisturbed run, and no client was told what is not so.
func (p plan) run(t *testing.T, want []string) ending {
	s := newStageAlone(t)
	f := newFault(p.effect, p.mode)
	crash := s.operate(f.between)
	successor := make(chan struct{})
	go func() {
		defer close(successor)
		select {
		case <-f.fired:
		case <-t.Context().Done():
			return
		}
		if p.mode == before || p.mode == after {
			crash()
			s.operate()
		}
	}()
	t.Cleanup(func() { <-successor })
	c, writes := lives[p.life].play(s, f)
	if diff := cmp.Diff(want, s.picture(c)); want != nil && diff != "" {
		t.Errorf("%s: the end is not that of an undisturbed run: -want +got:\n%s", lives[p.life].reason, diff)
	}
	if !f.met() {
		t.Logf("this run got by without it, so there was nothing to disturb: %v", f.effects())
	}
	return ending{met: f.met(), writes: writes}
}

// undisturbed runs each of the lives once, and returns its effects and its end.
func undisturbed(t *testing.T, names ...string) (effects, ends map[string][]string) {
	effects, ends = map[string][]string{}, map[string][]string{}
	var mu sync.Mutex
	t.Run("Reference", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				s := newStage(t)
				f := newFault("", "")
				s.operate(f.between)
				c, _ := lives[name].play(s, f)
				mu.Lock()
				defer mu.Unlock()
				effects[name], ends[name] = f.effects(), s.picture(c)
				t.Logf("%s: %d effects: %v", lives[name].reason, len(effects[name]), effects[name])
			})
		}
	})
	for _, name := range names {
		if len(effects[name]) == 0 {
			t.Fatalf("the reference run of %s had no effect", name)
		}
	}
	return effects, ends
}

// every is which part of the plans of a life is run each time: every so manieth effect, counted from its end, in each mode
// of a crash, and refused in one way. What etcd is asked for is always disturbed, in every mode; with 0 only that is, by one
// death each.
var every = map[string]int{"wake": 8, "grow": 8, "grow35": 0, "grow37": 0, "shrink": 7, "heal": 8, "late": 0, "upgrade": 9, "double": 0, "down": 9, "options": 9, "cpu": 9, "mend": 15, "move": 0}

// modes in which the effect is disturbed each time, which is the nth of so many in the life.
func modes(life, effect string, n, of int) []mode {
	verb, _, _ := strings.Cut(effect, ".")
	refused, k := refusals(effect), every[life]
	switch inEtcd := slices.Contains(etcdVerbs, verb); {
	case inEtcd && k == 0:
		return []mode{[]mode{before, after}[n%2]}
	case inEtcd:
		return slices.Concat(crashes, refused)
	case k > 0 && (of-n)%k == 0:
		return slices.Concat(crashes, []mode{refused[n%len(refused)]})
	default:
		return nil
	}
}

// TestCrash kills the operator at effects of a cluster's life, and starts another: before the effect, after it, or, without
// a death, with the effect there and the reply lost or refused. Each time the end is that of an undisturbed run: the same
// cluster, with what was written to it. Once in each life it is calls that only read which fail, all the way. All the plans there are
// run with make chaos.
func TestCrash(t *testing.T) {
	if inChaos() {
		t.Skip("TestChaos runs these and more")
	}
	t.Parallel()
	effects, ends := undisturbed(t, slices.Sorted(maps.Keys(every))...)
	figures := newTally(t)
	for life := range every {
		b := newBlindness(life, allCalls)
		figures.plan(t, b.String(), func(t *testing.T) ending { return b.run(t, ends[life]) })
		for n, effect := range slices.Backward(effects[life]) {
			for _, m := range modes(life, effect, n, len(effects[life])) {
				p := plan{life, effect, m}
				figures.plan(t, p.String(), func(t *testing.T) ending { return p.run(t, ends[p.life]) })
			}
		}
	}
}
