package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// ringExplorer searches the states that are reachable under a bound, breadth-first, so that a
// counterexample is a shortest one.
type ringExplorer struct {
	bound ringBound
	ringPlanner
	decided map[ringGlance]int32 // an index of steps
	steps   []ringDecision       // that differ, but for the message
	step    map[ringStep]int32
	ends    map[ringKey]ringEnd

	states     []ringKey
	parent     []int32
	index      map[ringKey]int32
	edges      int
	violations []string // of ends
	worst      ringEnd  // the most steps, and the most names, of any fair continuation
}

// ringStory is how a violation comes about.
type ringStory struct {
	violation string
	lines     []string
}

func (c *ringStory) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, in %d steps:", c.violation, len(c.lines))
	for n, line := range c.lines {
		fmt.Fprintf(&b, "\n%3d. %s", n+1, line)
	}
	return b.String()
}

func newRingExplorer(b ringBound, p ringPlanner) *ringExplorer {
	return &ringExplorer{
		bound: b, ringPlanner: p, decided: map[ringGlance]int32{}, step: map[ringStep]int32{}, ends: map[ringKey]ringEnd{}, index: map[ringKey]int32{},
		violations: []string{"", "L1: it goes round in a circle"},
	}
}

// ringOf is a cluster of so many members, at rest.
func ringOf(members int) ring {
	w := ring{size: uint8(members)}
	for i := range members {
		w.seats[i] = ringSeat{raft: raftVoter, named: true, holds: true, claim: claimKept, recorded: true, disk: diskData, pod: podUp}
	}
	return w
}

func exploreRing(b ringBound, p ringPlanner) (*ringExplorer, *ringStory) {
	x := newRingExplorer(b, p)
	start := ringState{ring: ringOf(int(b.first)), budget: b.budget}
	start.ring.size, start.ring.backOff = max(b.first, b.size), b.backOff
	start.ring.hashes.matter = b.hashes
	mostSteps, mostNames := b.most()
	x.add(&start, -1)
	for at := 0; at < len(x.states); at++ {
		s := x.states[at].unpack()
		end := x.end(s.ring)
		x.worst.steps, x.worst.names = max(x.worst.steps, end.steps), max(x.worst.names, end.names)
		if end.violation != 0 {
			return x, &ringStory{violation: x.violations[end.violation], lines: append(x.story(at), x.ending(s.ring)...)}
		}
		switch {
		case end.steps > mostSteps:
			return x, &ringStory{violation: "L2: it takes too many steps to come to an end", lines: append(x.story(at), x.ending(s.ring)...)}
		case end.names > mostNames:
			return x, &ringStory{violation: "S16: it uses up too many names", lines: append(x.story(at), x.ending(s.ring)...)}
		}
		bad := ""
		var worst ringEdge
		x.successors(&s, func(e *ringEdge) {
			x.edges++
			if e.violation == "" {
				e.violation = e.to.ring.broken(b.beyond)
			}
			switch {
			case e.violation == "":
				x.add(&e.to, at)
			case bad == "":
				bad, worst = e.violation, *e
			}
		})
		if bad != "" {
			return x, &ringStory{violation: bad, lines: append(x.story(at), worst.String())}
		}
		if len(x.states) > b.states {
			return x, &ringStory{violation: "the bound is too small for so many states"}
		}
	}
	return x, nil
}

// add a canonical state.
func (x *ringExplorer) add(s *ringState, parent int) {
	k := s.pack()
	if _, known := x.index[k]; known {
		return
	}
	x.index[k] = int32(len(x.states))
	x.states = append(x.states, k)
	x.parent = append(x.parent, int32(parent))
}

// ringStep is what matters of a decision.
type ringStep struct {
	action Action
	reason Reason
	who    uint8
	target int
}

func (x *ringExplorer) decide(g ringGlance) *ringDecision {
	n, known := x.decided[g]
	if !known {
		t := x.ringPlanner.decide(g, x.bound.retain)
		key := ringStep{t.step.Action, t.step.Reason, t.who, t.target}
		if n, known = x.step[key]; !known {
			n = int32(len(x.steps))
			x.step[key] = n
			x.steps = append(x.steps, t)
		}
		x.decided[g] = n
	}
	return &x.steps[n]
}

func (e *ringEdge) String() string {
	var who []string
	for i := range ringSeats {
		if e.who>>i&1 == 1 {
			who = append(who, seatName(i))
		}
	}
	return strings.TrimSpace(e.by+e.what+": "+strings.Join(who, ", ")) + "\n       " + e.to.ring.String()
}

// story walks the path to a state again.
func (x *ringExplorer) story(to int) []string {
	var path []int
	for at := to; at >= 0; at = int(x.parent[at]) {
		path = append([]int{at}, path...)
	}
	var lines []string
	for n, next := range path[1:] {
		s, found := x.states[path[n]].unpack(), false
		x.successors(&s, func(e *ringEdge) {
			if !found && e.to.pack() == x.states[next] {
				found = true
				lines = append(lines, e.String())
			}
		})
	}
	return lines
}

// ending tells how it goes on from a world.
func (x *ringExplorer) ending(w ring) []string {
	lines := []string{"nothing more goes wrong"}
	for patient := true; len(lines) < 20; {
		w = x.settled(w)
		s := ringState{ring: w}
		s.canonical()
		w = s.ring
		next, t, _ := x.turn(w, false)
		lines = append(lines, t.step.String()+"\n       "+w.String())
		if next == w && (!forsake(&next) || !patient) {
			break
		}
		patient = next != w
		w = next
	}
	return lines
}

// successors of a state, canonical: what an operator, an operator that is behind, Kubernetes, etcd,
// people and misfortune may do next.
func (x *ringExplorer) successors(s *ringState, visit func(*ringEdge)) {
	yield := func(e ringEdge) {
		if !x.bound.slow {
			e.to.ring.sweep()
		}
		if to := &e.to; to.behind != behindNot {
			for i := range to.ring.seats {
				m := &to.ring.seats[i]
				if m.pod == podNone {
					to.same &^= 1 << i
				}
				if m.claim != claimNone || m.pod != podNone || m.member() {
					to.used |= 1 << i
				}
			}
		}
		if x.bound.hashes && !x.operator.ignoresStarts && (e.to.ring.subject() != s.ring.subject() || e.to.ring.restarted(&s.ring)) {
			e.to.ring.hashes.forget()
		}
		e.to.canonical()
		if e.to != *s || e.violation != "" {
			visit(&e)
		}
	}
	x.fresh(s, yield)
	if s.behind != behindNot {
		x.behind(s, yield)
	} else if s.budget.delays > 0 {
		x.falls(s, changes(yield))
	}
	x.bound.surroundings(s, yield)
}

// fresh is the operator that sees what is there.
func (x *ringExplorer) fresh(s *ringState, yield func(ringEdge)) {
	taken := s.used
	if x.bound.names > 0 {
		taken |= 0x7f << x.bound.names & 0x7f
	}
	for i := range s.old.seats {
		if s.old.seats[i] != (ringSeat{}) {
			taken |= 1 << i
		}
	}
	for _, asked := range []bool{true, false} {
		t := x.decide(s.ring.glance(taken, asked, false, x.bound.leads))
		violation := ""
		if asked {
			violation = s.ring.judge(t, taken)
		} else {
			violation = s.ring.judgeBlind(t)
		}
		if violation != "" {
			yield(ringEdge{by: "the operator decides ", what: t.step.String(), to: *s, violation: violation})
			return
		}
		x.carryOut(s, t, &pass{operator: x.operator, retain: x.bound.retain, kind: s.ring.kind, seen: &s.ring.seats, same: 0x7f}, "", yield)
		x.call(s, t, yield)
		x.hashes(s, asked, yield)
	}
	if !x.bound.backOff || !s.ring.quorate() || s.ring.serving(-1) == 0 {
		return
	}
	// Kubelets find that they serve.
	if t := x.decide(s.ring.glance(taken, false, true, x.bound.leads)); t.step.Action == Wait {
		yield(ringEdge{by: "the operator decides ", what: t.step.String(), to: *s, violation: "L4: members serve, none of them can be reached, and no condition says so"})
	}
}

// call makes a call to etcd. That is done only under an intent that was written down, on facts that
// are looked at again after that: so many are under way at most as the bound says.
func (x *ringExplorer) call(s *ringState, t *ringDecision, yield func(ringEdge)) {
	if t.step.Action == Disarm {
		to := *s
		to.ring = s.ring.disarmed(t.target)
		yield(ringEdge{what: "Disarm", who: 1 << t.target & 0x7f, to: to})
		return
	}
	f := callOf(t)
	if f.action == flightNone {
		return
	}
	if x.operator.refuses(&s.ring.seats[t.target], f) {
		return
	}
	if s.ring.flights[0] == f || s.ring.flights[x.bound.calls-1].action != flightNone {
		return
	}
	to := *s
	to.ring.flights[x.bound.calls-1] = f
	to.ring.seats[t.target].spend(f, x.operator)
	yield(ringEdge{by: "calls: ", what: string(t.step.Action), who: 1 << t.target, to: to})
}

// carryOut the effects of a step on objects, or those that follow every step.
func (x *ringExplorer) carryOut(s *ringState, t *ringDecision, p *pass, by string, yield func(ringEdge)) {
	if t.step.Acts() && !t.step.ChangesMembership() && t.step.Action != Disarm {
		p.carryOut(&s.ring, t, func(who uint8, w ring, renewed uint8, violation string) {
			to := *s
			to.ring = w
			to.same &^= renewed
			if w.backOff && t.step.Action == Start {
				to.ring.young |= renewed
			}
			yield(ringEdge{by: by, what: string(t.step.Action), who: who, to: to, violation: violation})
		})
	}
	unfenced := p.fence(&s.ring, t)
	for some := unfenced; some != 0; some = (some - 1) & unfenced {
		to := *s
		for i := range ringSeats {
			if some>>i&1 == 1 {
				to.ring.seats[i].unfenced = false
			}
		}
		yield(ringEdge{by: by, what: "tells Pods to find their data", who: some, to: to})
	}
}

// behind is the operator that goes by an old view. It makes no calls to etcd: its intent would be
// refused.
func (x *ringExplorer) behind(s *ringState, yield func(ringEdge)) {
	t := x.decide(s.believes())
	kind := s.ring.kind
	if s.behind == behindAll {
		kind = s.old.kind
	}
	x.carryOut(s, t, &pass{operator: x.operator, retain: x.bound.retain, kind: kind, seen: &s.old.seats, same: s.same, used: s.used}, "with an old view: ", yield)
	to := *s
	to.behind = behindNot
	yield(ringEdge{what: "the old view is updated", to: to})
}

func (x *ringExplorer) falls(s *ringState, change ringChange) {
	for b := behindObjects; b <= behindAll; b++ {
		to := *s
		to.budget.delays--
		to.behind, to.old = b, s.ring
		to.old.flights, to.old.leader, to.old.hashes = [2]ringFlight{}, 0, ringHashes{}
		to.same, to.used = 0, 0
		for i := range s.ring.seats {
			if s.ring.seats[i].pod != podNone {
				to.same |= 1 << i
			}
			m := &to.old.seats[i]
			if b == behindObjects {
				m.raft, m.named, m.holds = raftNone, false, false
				to.old.size, to.old.alarm, to.old.stranger = 0, 0, raftNone
			}
			m.matched, m.disk, m.holds = false, diskNone, false
		}
		change([...]string{"", "an operator is told of no objects any more", "an operator pauses in its pass"}[b], -1, &to, "")
	}
}

// TestExploreResize searches every state of a formed cluster that is reachable within a bound, with
// the real rules, for a violated invariant: S1 and S2 (no acknowledged write is lost, no voter
// starts empty), S4 to S6 (one learner at most; a removed or promoted one leaves a quorum that
// serves), S9 and S10 (a removed member never runs again, and no member's volume is deleted), S11
// (nothing is done where nothing is known) and S15 (what serves is not stopped, and no change
// leaves less than a quorum its data), S17 (one that moves to another volume has a successor
// first); and from each state follows how it goes on when nothing more goes wrong (L1 to L3, L5,
// S16). S18: a Pod is recreated because of its kubelet's back-off only without a quorum, and not
// again and again. S19 and S20: no member whose data is right goes for corruption while a quorum is
// right, and no learner that was fed wrong data gets a vote. L4: where members serve and the
// operator reaches none of them, a person is told.
func TestExploreResize(t *testing.T) {
	states := counted(t, "states")
	for name, tc := range toExplore(t, ringBounds, 4) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			x, bad := exploreRing(tc.bound, ringPlanner{phases: Phases})
			states.Add(int64(len(x.states)))
			t.Logf("%s: %d states, %d edges, %d different looks, at most %d steps and %d names to the end, %.1f s", tc.reason, len(x.states), x.edges, len(x.decided), x.worst.steps, x.worst.names, time.Since(start).Seconds())
			if bad != nil {
				t.Error(bad)
			}
		})
	}
}

// TestRingPacks shows that no two states are taken for one by the way in which they are packed.
func TestRingPacks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Behind", "Hands", "Corrupt", "MovedBehind"} {
		x, bad := exploreRing(ringBounds[name].bound, ringPlanner{phases: Phases})
		if bad != nil {
			t.Fatal(bad)
		}
		for _, k := range x.states {
			s := k.unpack()
			x.successors(&s, func(e *ringEdge) {
				if got := e.to.pack().unpack(); got != e.to {
					t.Fatalf("%v becomes %v", e.to, got)
				}
			})
		}
	}
}
