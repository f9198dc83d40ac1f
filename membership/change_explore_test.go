package membership

import (
	"testing"
	"time"
)

// rollExplorer searches the states that are reachable under a bound, breadth-first, so that a
// counterexample is a shortest one.
type rollExplorer struct {
	bound rollBound
	rollPlanner
	decided map[rollKey]*rollDecision
	ends    map[rollKey]rollEnd

	states     []rollKey
	parent     []int32
	index      map[rollKey]int32
	edges      int
	violations []string // of ends
	worst      int      // the most steps of any fair continuation
}

func exploreRoll(b rollBound, p rollPlanner) (*rollExplorer, *ringStory) {
	x := &rollExplorer{bound: b, rollPlanner: p, decided: map[rollKey]*rollDecision{}, ends: map[rollKey]rollEnd{}, index: map[rollKey]int32{}, violations: []string{"", "L1: it goes round in a circle"}}
	start := rollState{budget: b.budget, roll: roll{size: b.size, spec: b.from, lies: b.lies, sized: b.sized, guarded: b.guarded, leader: 1, cluster: b.from.minor()}}
	for i := range b.size {
		start.roll.seats[i] = rollSeat{role: rollVoter, image: b.from, runs: b.from, volume: b.from, storage: b.from.minor(), old: b.from.minor() == 5}
		if b.unmarked || b.memory {
			start.roll.seats[i].good = rollUnknown
		}
	}
	if b.wrong {
		start.roll.wrong = 1 << rollWrong
	}
	start.roll.mute, start.roll.unpulled, start.roll.memory = b.mute, b.unpulled, b.memory
	start.roll.patient, start.roll.onOne, start.roll.unstarted = b.patient, b.onOne, b.unstarted
	start.roll.unseen = b.passing || b.mute || b.fades != nil || b.refuses && b.kills
	if b.passing {
		start.roll.passing = 1 << rollWrong
	}
	for _, v := range b.broken {
		start.roll.broken |= 1 << v
	}
	x.add(&start, -1)
	for at := 0; at < len(x.states); at++ {
		s := x.states[at].unpack()
		end := x.end(s.roll)
		x.worst = max(x.worst, end.steps)
		if end.violation != 0 {
			return x, &ringStory{violation: x.violations[end.violation], lines: append(x.story(at), x.ending(s.roll)...)}
		}
		if end.steps > 40 {
			return x, &ringStory{violation: "L2: it takes too many steps to come to an end", lines: append(x.story(at), x.ending(s.roll)...)}
		}
		var bad *rollEdge
		x.successors(&s, func(e *rollEdge) {
			x.edges++
			if e.violation == "" {
				e.violation = e.to.roll.breaks()
			}
			switch {
			case e.violation == "":
				x.add(&e.to, at)
			case bad == nil:
				worst := *e
				bad = &worst
			}
		})
		if bad != nil {
			return x, &ringStory{violation: bad.violation, lines: append(x.story(at), bad.String())}
		}
		if len(x.states) > b.states {
			return x, &ringStory{violation: "the bound is too small for so many states"}
		}
	}
	return x, nil
}

func (x *rollExplorer) add(s *rollState, parent int) {
	k := s.pack()
	if _, known := x.index[k]; known {
		return
	}
	x.index[k] = int32(len(x.states))
	x.states = append(x.states, k)
	x.parent = append(x.parent, int32(parent))
}

func (x *rollExplorer) decide(g rollGlance) *rollDecision {
	s := rollState{roll: g.roll}
	if g.blind {
		s.budget.delays = 1
	}
	k := s.pack()
	t, known := x.decided[k]
	if !known {
		made := x.rollPlanner.decide(&g, x.bound.recreates)
		t = &made
		x.decided[k] = t
	}
	return t
}

func (e *rollEdge) String() string { return e.what + "\n       " + e.to.roll.String() }

// story walks the path to a state again.
func (x *rollExplorer) story(to int) []string {
	var path []int
	for at := to; at >= 0; at = int(x.parent[at]) {
		path = append([]int{at}, path...)
	}
	var lines []string
	for n, next := range path[1:] {
		s, found := x.states[path[n]].unpack(), false
		x.successors(&s, func(e *rollEdge) {
			if !found && e.to.pack() == x.states[next] {
				found = true
				lines = append(lines, e.String())
			}
		})
	}
	return lines
}

// ending tells how it goes on from a world.
func (x *rollExplorer) ending(w roll) []string {
	lines := []string{"nothing more goes wrong"}
	seen := map[roll]bool{}
	for {
		settled, bad := x.settled(w)
		if bad != "" {
			return append(lines, bad)
		}
		next, t := x.turn(settled)
		lines = append(lines, t.step.String()+"\n       "+settled.String())
		if next == settled || seen[settled] {
			return lines
		}
		seen[settled] = true
		w = next
	}
}

// successors of a state, canonical: what an operator, an operator that is slow, Kubernetes, etcd,
// people and misfortune may do next.
func (x *rollExplorer) successors(s *rollState, visit func(*rollEdge)) {
	yield := func(what string, to rollState, violation string) {
		to.invalidate(s)
		to.canonical()
		if to != *s || violation != "" {
			visit(&rollEdge{what: what, to: to, violation: violation})
		}
	}
	x.fresh(s, yield)
	x.slow(s, yield)
	x.bound.environment(s, yield)
}

// fresh is the operator that sees what is there.
func (x *rollExplorer) fresh(s *rollState, yield rollVisit) {
	for _, blind := range []bool{false, true} {
		t := x.decide(s.roll.glance(blind))
		if !blind {
			if violation := s.roll.judge(t); violation != "" {
				yield("the operator decides "+t.step.String(), *s, violation)
				return
			}
		}
		x.act(s, t, yield)
	}
}

// act carries out a step, at once or later.
func (x *rollExplorer) act(s *rollState, t *rollDecision, yield rollVisit) {
	unsettled := s.late.action == actDowngrade || s.late.action == actCancel
	fenced := s.late.disrupts() && !x.done(s, t) && !x.operator.ignoresIntents && (!unsettled || !x.operator.forgetsCalls)
	maintained := *s
	if maintained.roll.maintain(t, x.operator); maintained != *s {
		yield("what members have answered from is written down", maintained, "")
	}
	if t.step.Action == BackUp {
		to := *s
		to.roll = t.backsUp(s.roll)
		yield(t.step.String(), to, "")
		return
	}
	if t.step.Action == Disarm {
		to := *s
		to.roll = t.disarms(s.roll)
		yield(t.step.String(), to, "")
		return
	}
	if t.changesMembers() {
		if !fenced {
			to := *s
			to.roll = t.changeMembers(s.roll)
			yield(string(t.step.Action), to, "")
		}
		return
	}
	flights := t.flights(&s.roll)
	if len(flights) > 1 && !fenced {
		to := *s
		to.roll = x.all(s.roll, flights)
		yield(t.step.String(), to, "")
	}
	for _, f := range flights {
		if fenced && f.disrupts() {
			continue
		}
		x.carry(s.roll, f, func(w roll, complete bool) {
			to := *s
			to.roll = w
			what := t.step.String()
			if !complete {
				what += ", and stops in the middle of it"
			}
			yield(what, to, "")
		})
		// What a member has just said is written down at once: nothing but a pause of the whole
		// process lies between.
		if s.late.action == actNone && s.budget.delays > 0 && f.action != actRecord {
			to := *s
			to.budget.delays--
			to.late = f
			yield("an operator decides, and is slow: "+t.step.String(), to, "")
		}
	}
}

// all the effects of a step.
func (x *rollExplorer) all(w roll, flights []rollFlight) roll {
	for _, f := range flights {
		x.carry(w, f, func(to roll, complete bool) {
			if complete {
				w = to
			}
		})
	}
	return w
}

// TestExploreChange searches every state of a cluster whose members come to run something else that
// is reachable within a bound, with the real rules, for a violated invariant: S7 and S8 (a member
// is changed only where all the others serve and are a quorum, and no node is silent, and one at a
// time), S13 (voters are within one minor; etcd never refuses what it is started with, but for a
// member that was rolled back over a minor that may have served unseen; no member is added during a
// downgrade, and none is changed to an earlier minor before all data can be read by it), S15 (the
// leader last, its leadership first), and that what does not come up touches one member and one
// that has served is not rolled back; and from each state follows how it goes on when nothing more
// goes wrong (L1 to L3, L5), which must end with what the spec asks for, or at a stall that is
// justified.
func TestExploreChange(t *testing.T) {
	states := counted(t, "states")
	for name, tc := range toExplore(t, rollBounds, 2) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			x, bad := exploreRoll(tc.bound, rollPlanner{phases: Phases})
			states.Add(int64(len(x.states)))
			t.Logf("%s: %d states, %d edges, %d different looks, at most %d steps to the end, %.1f s", tc.reason, len(x.states), x.edges, len(x.decided), x.worst, time.Since(start).Seconds())
			if bad != nil {
				t.Error(bad)
			}
		})
	}
}
