package membership

import (
	"cmp"
	"slices"
	"strings"
)

// swapState is a world, what may still go wrong in it, and what an operator with an old view
// believes.
type swapState struct {
	world  swap
	budget swapBudget
	stale  staleness
	old    swapLook
	same   [swapMost]bool // the Pods of the old look are those of today
	flight swapFlight
}

// swapBudget bounds the faults that would make the states infinite.
type swapBudget struct {
	restores, losses, wipes, statusWipes, kills, delays, flights uint8
	offs, empties                                                uint8 // nodes go off, volumes seem to be blank
	unseen                                                       uint8 // what is created by itself is deleted before it is seen
}

// swapFlight is a request that was sent, and arrives when it likes: an operator looked before it
// sent it, and whatever has become of that since, the API server goes by what the request itself
// says.
type swapFlight struct {
	action Action // empty: there is none
	n      int
	claim  swapClaim // that it changes, as it was seen
	pod    swapPod   // that it creates
	aside  uint8
	copy   swapCopy // that it creates
}

// inFlight is the request of a step for one member.
func inFlight(l swapLook, t swapDecision, n int) swapFlight {
	f := swapFlight{action: t.step.Action, n: n, claim: l.members[n].claim}
	switch t.step.Action {
	case Start:
		f.claim, f.pod = swapClaim{}, swapPod{phase: pending, told: l.members[n].claim.first}
	case Bootstrap:
		f.claim, f.pod = swapClaim{}, newSwapPod(t.step.First)
	case SetAside:
		f.aside = l.status.restore
	case Readmit:
	default:
		return swapFlight{}
	}
	return f
}

// arrive carries out a request.
func (f swapFlight) arrive(w *swap) (happens bool) {
	m := &w.members[f.n]
	switch {
	case f.copy.of != 0:
		if w.copy.of != 0 {
			return false
		}
		w.copy = f.copy
		w.copy.late = w.status.phase != swapRestoring || w.status.restore != f.copy.of // it did when the operator looked
		return true
	case f.pod != (swapPod{}):
		f.pod.late = m.claim.aside != 0 // it was not when the operator looked
		return !swapCreate(m, f.pod)
	case m.claim != f.claim:
		return false
	}
	m.claim.aside, m.claim.patched = f.aside, m.claim.patched+1
	return true
}

// swapBound is how far an exploration goes.
type swapBound struct {
	size     int // members of every cluster
	budget   swapBudget
	anyway   bool        // spec.whenServing is Replace
	discards uint8       // UIDs of EtcdRestores whose formerVolumes is Delete, as bits
	again    bool        // the second EtcdRestore has the name of the first
	breaks   bool        // the store may break
	newer    bool        // a newer snapshot may be stored
	lost     uint8       // volumes that the cluster has lost before
	held     bool        // EtcdRestores are made suspended, and may be that or not at any time
	survivor bool        // EtcdRestores take the data of a member, and begin a cluster of one
	mixed    bool        // they take that, or a snapshot of the store
	named    bool        // that is m-0; otherwise the only one that is left
	onLoss   bool        // where a majority is lost, an EtcdRestore is created by itself
	behind   []staleness // what an operator may not be told of; nil: anything
	late     Action      // the only step that an operator with an old view may be about to take, or whose request is late; empty: any
	prompt   bool        // no request for a Job outlives the beginning of another restore
	safety   bool        // look for safety only, and not how it goes on
	states   int         // at most
}

// firstSize is how many members a restore begins with.
func (b *swapBound) firstSize(survivor bool) int {
	if survivor {
		return 1
	}
	return b.size
}

type swapEdge struct {
	what      string
	who       [swapMost]bool
	to        swapState
	violation string
}

func (e swapEdge) String() string {
	var who []string
	for n, in := range e.who {
		if in {
			who = append(who, name(n))
		}
	}
	return strings.TrimSpace(e.what+": "+strings.Join(who, ", ")) + "\n       " + e.to.world.String()
}

// swapExplorer searches the states that are reachable under a bound, breadth-first, so that a
// counterexample is a shortest one.
type swapExplorer struct {
	swapPlanner
	bound   *swapBound
	decided map[swapLook]swapDecision
	ends    map[swap]string
	states  []swapState
	parent  []int32
	index   map[swapState]struct{}
	edges   int
}

func exploreSwap(b swapBound, p swapPlanner) (*swapExplorer, *counterexample) {
	x := &swapExplorer{swapPlanner: p, bound: &b, decided: map[swapLook]swapDecision{}, ends: map[swap]string{}, index: map[swapState]struct{}{}}
	x.add(x.start(), -1)
	for at := 0; at < len(x.states); at++ {
		if violation := x.end(x.states[at].world); violation != "" {
			return x, &counterexample{violation: violation, story: append(x.story(at), x.ending(x.states[at].world)...)}
		}
		var bad *counterexample
		x.successors(x.states[at], func(e swapEdge) {
			x.edges++
			if e.violation != "" && bad == nil {
				bad = &counterexample{violation: e.violation, story: append(x.story(at), e.String())}
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

// start is a cluster that serves, or has lost volumes.
func (x *swapExplorer) start() swapState {
	s := swapState{budget: x.bound.budget}
	w := &s.world
	w.newest, w.service, w.served = 1, true, original
	w.status = swapStatus{latch: original, remembered: original, next: uint8(x.bound.size)}
	w.hurt = x.bound.onLoss && x.bound.lost > 0
	for n := range x.bound.size {
		if n < int(x.bound.lost) {
			continue
		}
		w.members[n] = swapMember{made: 1, claim: swapClaim{uid: 1, record: original, first: original}, pod: swapPod{phase: up, told: original}, disk: original}
	}
	return s
}

// add a state. Members of one cluster that change places make the same one: Plan treats them the
// same (TestPlanIgnoresNames).
func (x *swapExplorer) add(s swapState, parent int) {
	key := x.bound.canonical(s)
	if _, known := x.index[key]; known {
		return
	}
	x.index[key] = struct{}{}
	x.states = append(x.states, s)
	x.parent = append(x.parent, int32(parent))
}

func (x *swapExplorer) decide(l swapLook) swapDecision {
	t, known := x.decided[l]
	if !known {
		t = x.swapPlanner.decide(l, x.bound)
		x.decided[l] = t
	}
	return t
}

// story walks the path to a state again.
func (x *swapExplorer) story(to int) []string {
	var lines []string
	for at := to; x.parent[at] >= 0; at = int(x.parent[at]) {
		line, want := "", x.states[at]
		x.successors(x.states[x.parent[at]], func(e swapEdge) {
			if e.to == want {
				line = cmp.Or(line, e.String())
			}
		})
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return lines
}

// believes is the look of the operator that is behind.
func (x *swapExplorer) believes(s *swapState) swapLook {
	l, now := s.old, s.world.look(x.bound.size)
	if s.stale == oldDecision {
		return l
	}
	l.service, l.copy, l.clock = now.service, now.copy, now.clock
	if s.stale == oldPods || s.stale == oldClaims {
		l.status, l.asked = now.status, now.asked
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
	s.world.ask(x.bound.size, &l)
	return l
}
