//go:build env

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// together are plans of one life that are carried out in one run of it, in the order of its story.
type together []plan

// String names all of them, for TestChaos as well: grow/AddLearner#1/Before+Promote#2/Before.
func (ps together) String() string {
	name := ps[0].String()
	for _, p := range ps[1:] {
		name += "+" + p.effect + "/" + string(p.mode)
	}
	return name
}

// parseTogether reads what String writes of several plans.
func parseTogether(name string) (together, error) {
	life, rest, _ := strings.Cut(name, "/")
	var ps together
	for disturbance := range strings.SplitSeq(rest, "+") {
		effect, m, ok := strings.Cut(disturbance, "/")
		if !ok {
			return nil, fmt.Errorf("plan %q: %q is no effect and a mode, such as AddLearner#1/Before", name, disturbance)
		}
		ps = append(ps, plan{life, effect, mode(m)})
	}
	return ps, nil
}

func (ps together) names() []string {
	names := make([]string, 0, len(ps))
	for _, p := range ps {
		names = append(names, p.String())
	}
	return names
}

// run fails unless the end is that of the undisturbed run, and no client was told what is not so;
// and unless, when a later effect is disturbed, members have come and gone as in the story of the
// undisturbed run. A plan has met its effect if that came after those of the plans before it were
// there.
func (ps together) run(t *testing.T, want, story []string) []ending {
	s := newStageAlone(t, agents)
	s.backsUp = lives[ps[0].life].backsUp
	faults := make([]*fault, len(ps))
	for n, p := range ps {
		faults[n] = newFault(p.effect, p.mode)
		if n > 0 {
			faults[n-1].next = faults[n]
		}
	}
	first, all := faults[0], newFault("", "") // the effects of all operators, which no death ends
	faults[len(faults)-1].next = all
	s.disturb(first)
	crash := s.operate(first.between)
	var mu sync.Mutex // over crash
	var successors sync.WaitGroup
	for _, f := range faults {
		successors.Go(func() {
			select {
			case <-f.fired:
			case <-t.Context().Done():
				return
			}
			if f.ends() {
				mu.Lock()
				defer mu.Unlock()
				crash()
				crash = s.operate(first.between)
			}
		})
	}
	t.Cleanup(func() {
		successors.Wait()
		for n, f := range faults {
			if t.Failed() {
				t.Logf("%s: disturbed: %t", ps[n], f.met())
			}
		}
	})
	c, writes := lives[ps[0].life].play(s, first)
	if diff := cmp.Diff(want, s.picture(c)); diff != "" {
		t.Errorf("%s, disturbed at %s: the end is not that of an undisturbed run: -want +got:\n%s", lives[ps[0].life].reason, ps, diff)
	}
	made, endings := all.effects(), make([]ending, len(ps))
	for n, f := range faults {
		endings[n].met = f.met() && (n == 0 || slices.Index(made, ps[n-1].effect) < slices.Index(made, ps[n].effect))
		if diff := cmp.Diff(membersIn(story, ps[n].effect), membersIn(made, ps[n].effect)); n > 0 && endings[n].met && diff != "" {
			t.Errorf("%s: members changed otherwise after %s, until %s: -undisturbed +got:\n%s", ps, ps[n-1].effect, ps[n].effect, diff)
		}
		if !endings[n].met {
			t.Logf("this run got by without %s, so there was nothing to disturb: %v", ps[n].effect, made)
		}
	}
	endings[0].writes = writes
	return endings
}

// membersIn are the changes of etcd's members that a story has until an effect.
func membersIn(story []string, until string) []string {
	changes := []string{}
	for _, effect := range story[:max(0, slices.Index(story, until))] {
		if verb := verbOf(effect); verb == "AddLearner" || verb == "Promote" || verb == "Remove" {
			changes = append(changes, effect)
		}
	}
	return changes
}

// asOne is the ending of plans that count as one.
func asOne(endings []ending) ending {
	one := endings[0]
	for _, e := range endings[1:] {
		one.met = one.met && e.met
	}
	return one
}

// runEach runs all together, and then by itself each that met nothing beside the others: what comes
// before an effect may change the story.
func (ps together) runEach(t *testing.T, want, story []string) []ending {
	endings := ps.run(t, want, story)
	if len(ps) == 1 || t.Failed() {
		return endings
	}
	for n, p := range ps {
		if !endings[n].met {
			t.Run(p.String(), func(t *testing.T) {
				writes := endings[n].writes
				endings[n] = p.run(t, want)
				endings[n].writes = sumOf(writes, endings[n].writes)
			})
		}
	}
	return endings
}

// apart is how many effects lie between two that are disturbed in one run, at least: the operator
// has written down what came of the first, and what it does next, and has begun with that.
const apart = 3

// pairs puts two plans of a life together where they lie far enough apart in its story. Both are of
// the same mode: a death would heal an operator that lives on with what it does not know.
func pairs(effects map[string][]string, plans []plan) []together {
	type group struct {
		life string
		mode mode
	}
	place := func(p plan) int { return slices.Index(effects[p.life], p.effect) }
	groups := map[group][]plan{}
	var order []group
	for _, p := range plans {
		g := group{p.life, p.mode}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], p)
	}
	var sets []together
	for _, g := range order {
		ps := groups[g]
		slices.SortFunc(ps, func(a, b plan) int { return place(a) - place(b) })
		half := (len(ps) + 1) / 2
		for n, p := range ps[:half] {
			switch later := n + half; {
			case later == len(ps):
				sets = append(sets, together{p})
			case place(ps[later])-place(p) > apart:
				sets = append(sets, together{p, ps[later]})
			default:
				sets = append(sets, together{p}, together{ps[later]})
			}
		}
	}
	return sets
}
