package membership

import (
	"fmt"
	"strings"
)

// state is a world, what may still go wrong in it, and what an operator with an old view believes.
type state struct {
	world  world
	budget budget
	stale  staleness
	old    look       // of an operator that is behind
	same   [most]bool // the Pods of the old look are those of today
}

// budget bounds the faults that would make the states infinite. The others happen as often as they
// like.
type budget struct{ losses, wipes, deletions, statusWipes, foreign, restores, delays, kills, copies, mutes uint8 }

// staleness is what of the old look an operator goes by.
type staleness uint8

const (
	upToDate    staleness = iota
	oldCluster            // the cache is behind with the EtcdCluster
	oldPods               // with Pods
	oldClaims             // with PersistentVolumeClaims
	oldObjects            // with all objects; etcd is asked again
	oldDecision           // the pass was decided long ago, and is carried out now
	stalenesses
)

// believes is the look of the operator that is behind.
func (s *state) believes() look {
	l, now := s.old, s.world.look()
	if s.stale == oldDecision {
		return l
	}
	if s.stale == oldPods || s.stale == oldClaims {
		l.cluster = now.cluster
	}
	if s.stale != oldObjects {
		l.search = now.search
	}
	for n := range l.members {
		if s.stale == oldCluster || s.stale == oldPods {
			l.members[n].claim = now.members[n].claim
		}
		if s.stale == oldCluster || s.stale == oldClaims {
			l.members[n].pod = now.members[n].pod
		}
	}
	if s.stale == oldPods || s.stale == oldObjects {
		s.world.ask(&l, s.same)
	} else {
		s.world.ask(&l, every)
	}
	return l
}

// bound is how far an exploration goes.
type bound struct {
	sizes   []uint8 // that the spec may have
	first   uint8   // that it has at first
	budget  budget
	safety  bool // look for safety only, and not how it goes on
	stalls  bool // spec.suspend and images may be wrong, and be mended; Pods are evicted
	restore bool // the cluster is to start from a stored snapshot, and there may be a newer one later
	kills   bool // Pods are deleted only as often as the budget says
	states  int  // at most
}

type edge struct {
	what      string
	who       [most]bool
	to        state
	violation string
}

func (e edge) String() string {
	var who []string
	for n, in := range e.who {
		if in {
			who = append(who, name(n))
		}
	}
	return strings.TrimSpace(e.what + ": " + strings.Join(who, ", "))
}

// explorer searches the states that are reachable under a bound, breadth-first, so that a
// counterexample is a shortest one.
type explorer struct {
	bound bound
	planner
	decided map[look]decision
	ends    map[packed]string // how the fair continuation of a world ends: a violation, or nothing

	states []state
	parent []int32
	index  map[packed]int32
	edges  int

	scratch state
}

// planner is what is explored: the rules, and the operator that carries out what they decide.
type planner struct {
	phases   []Phase
	see      func(Observed) Observed // nil: what there is
	operator careless
}

func explore(b bound, p planner) (*explorer, *counterexample) {
	x := &explorer{bound: b, planner: p, decided: map[look]decision{}, ends: map[packed]string{}, index: map[packed]int32{}}
	start := state{world: world{cluster: cluster{size: b.first, token: 1}}, budget: b.budget}
	if b.restore {
		start.world.newest = 1
	}
	x.add(start, -1)
	for at := 0; at < len(x.states); at++ {
		var bad *counterexample
		if violation := x.end(x.states[at].world); violation != "" {
			return x, &counterexample{violation: violation, story: append(x.story(at), x.ending(x.states[at].world)...)}
		}
		x.successors(x.states[at], func(e edge) {
			x.edges++
			if e.violation == "" {
				e.violation = e.to.world.broken()
			}
			if e.violation != "" && bad == nil {
				bad = &counterexample{violation: e.violation, story: append(x.story(at), line(e))}
			}
			if bad == nil {
				x.add(e.to, at)
			}
		})
		if bad != nil {
			return x, bad
		}
		if len(x.states) > b.states {
			return x, &counterexample{violation: "the bound is too small for so many states"}
		}
	}
	return x, nil
}

func (x *explorer) add(s state, parent int) {
	p := x.bound.pack(&s)
	if _, known := x.index[p]; known {
		return
	}
	x.index[p] = int32(len(x.states))
	x.states = append(x.states, s)
	x.parent = append(x.parent, int32(parent))
}

func (x *explorer) decide(l look) decision {
	t, known := x.decided[l]
	if !known {
		t = x.planner.decide(l)
		x.decided[l] = t
	}
	return t
}

// counterexample is how a violation comes about.
type counterexample struct {
	violation string
	story     []string
}

func (c *counterexample) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, in %d steps:", c.violation, len(c.story))
	for n, line := range c.story {
		fmt.Fprintf(&b, "\n%3d. %s", n+1, line)
	}
	return b.String()
}

func line(e edge) string { return e.String() + "\n       " + e.to.world.String() }

// story walks the path to a state again. On it, members change places where states pack to the
// same; walked again from the start, every member keeps its name.
func (x *explorer) story(to int) []string {
	var path []int
	for at := to; at >= 0; at = int(x.parent[at]) {
		path = append([]int{at}, path...)
	}
	s := x.states[path[0]]
	var lines []string
	for _, next := range path[1:] {
		found, want := false, x.bound.pack(&x.states[next])
		x.successors(s, func(e edge) {
			if !found && x.bound.pack(&e.to) == want {
				found = true
				lines = append(lines, line(e))
				s = e.to
			}
		})
	}
	return lines
}

// successors of a state: what an operator, an operator that is behind, Kubernetes, etcd, people and
// misfortune may do next.
func (x *explorer) successors(s state, visit func(edge)) {
	yield := func(e edge) {
		e.to.world.consent()
		for n, m := range e.to.world.members {
			e.to.same[n] = e.to.same[n] && m.pod.phase != absent // the next Pod of this name is another one
		}
		visit(e)
	}
	operator := func(who string, l look, same [most]bool) {
		x.operator.pass(s.world, l, x.decide(l), same, func(o outcome) {
			to := s
			to.world = o.world
			if to != s || o.violation != "" {
				yield(edge{who + o.done, o.who, to, o.violation})
			}
		})
	}
	operator("", s.world.look(), every)
	if s.stale != upToDate {
		operator("with an old view: ", s.believes(), s.same)
		to := s
		to.stale, to.old, to.same = upToDate, look{}, [most]bool{}
		yield(edge{what: "the old view is updated", to: to})
	}
	change := func(what string, who int, do func(*state) (violation string, possible bool)) {
		x.scratch = s
		violation, possible := do(&x.scratch)
		if !possible {
			return
		}
		e := edge{what: what, to: x.scratch, violation: violation}
		if who >= 0 {
			e.who[who] = true
		}
		yield(e)
	}
	for n := range s.world.members {
		x.machines(n, change)
		x.misfortune(n, change)
	}
	x.clients(s, yield)
	x.people(change)
}
