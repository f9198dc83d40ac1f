package membership

import (
	"slices"
	"strings"
)

// ringEnd is how a world goes on when nothing more goes wrong.
type ringEnd struct {
	violation int32 // an index; 0: it ends well
	steps     int   // that act, until it comes to rest
	names     int   // that were used up on the way
}

// end follows the fair continuation: what is under way comes to nothing, kubelets and etcd do what
// they do by themselves, and each pass is complete. It must come to rest as wanted, or at a stall
// that is justified and tells a person what to do.
func (x *ringExplorer) end(w ring) ringEnd {
	if x.bound.safety {
		return ringEnd{}
	}
	type stop struct {
		key          ringKey
		steps, names int // from there to the next one
	}
	var path []stop
	end := ringEnd{}
	impatient := false
	for {
		w = x.settled(w)
		s := ringState{ring: w}
		s.canonical()
		w = s.ring
		key := s.pack()
		if impatient {
			key[3] |= 1 << 63
		}
		known, ok := x.ends[key]
		if ok {
			end = known
			break
		}
		x.ends[key] = ringEnd{violation: 1} // a circle, unless it proves otherwise
		path = append(path, stop{key: key})
		next, t, names := x.turn(w, impatient)
		if next != w {
			path[len(path)-1].names = names
			if t.step.Acts() {
				path[len(path)-1].steps = 1
			}
			w = next
			continue
		}
		if forsake(&w) {
			continue
		}
		if !impatient {
			impatient = true
			continue
		}
		if bad := x.rest(w); bad != "" {
			end.violation = int32(len(x.violations))
			x.violations = append(x.violations, bad)
		}
		break
	}
	for _, p := range slices.Backward(path) {
		end.steps += p.steps
		end.names += p.names
		x.ends[p.key] = end
	}
	return end
}

// forsake is when patience runs out with all that do not answer.
func forsake(w *ring) bool {
	was := *w
	for i := range w.seats {
		if s := &w.seats[i]; s.damaged() {
			s.forsaken = true
		}
	}
	return *w != was
}

// settled is the world after kubelets and etcd have done what they do by themselves.
func (x *ringExplorer) settled(w ring) ring {
	w.flights = [2]ringFlight{}
	for i := range w.seats {
		s := &w.seats[i]
		if s.terminating && !s.cutOff {
			w.vanish(i)
		}
		if s.released() {
			s.discard()
		}
		if s.pod == podMaking && s.claim == claimKept && !s.cutOff {
			s.pod = podReady
		}
		if (s.pod == podWaiting || s.pod == podCrashed && !w.backOff || s.pod == podExited) && !s.terminating {
			had := s.disk == diskData
			w.launch(i) // what must not happen here is found by the search
			if had && w.runsInconsistent(i) {
				s.pod = podExited
			}
		}
	}
	putOff := w.backOff && !w.quorate() // for too long to wait for
	for i := range w.seats {
		s := &w.seats[i]
		if s.pod == podCrashed && !putOff && !s.terminating {
			w.launch(i)
		}
		if s.runs() {
			s.forsaken = false
		}
	}
	w.young = 0
	for i := range w.seats {
		if s := &w.seats[i]; s.runs() && s.member() && w.quorate() {
			s.pod, s.holds, s.matched, s.named = podUp, true, s.raft == raftLearner, true
		}
	}
	return w
}

// turn is one complete pass of a fresh operator, and what etcd makes of it. Overdue tells that what
// does not run has not done so for long.
func (x *ringExplorer) turn(w ring, overdue bool) (next ring, t *ringDecision, names int) {
	w.compare(x.operator)
	t = x.decide(w.glance(0, true, overdue, x.bound.leads))
	next = w
	p := pass{operator: x.operator, retain: x.bound.retain, kind: w.kind, seen: &w.seats, same: 0x7f}
	switch call := callOf(t); {
	case call.action != flightNone && x.operator.refuses(&w.seats[t.target], call):
	case call.action != flightNone:
		w.seats[t.target].spend(call, x.operator)
		landed := false
		w.land(call, func(to ring, _ string) {
			if !landed {
				next, landed = to, true
			}
		})
	case t.step.Action == Disarm:
		next = w.disarmed(t.target)
	default:
		for i := range ringSeats {
			if t.who>>i&1 == 1 {
				if t.step.Action == Provision && w.seats[i] == (ringSeat{}) {
					names++
				}
				p.effects(&next, t.step.Action, i, stagesOf(t.step.Action))
			}
		}
	}
	next.hashes.unchecked = w.checks(x.operator)
	if !x.operator.ignoresStarts {
		next.hashes.forget()
	}
	for i, unfenced := 0, p.fence(&next, t); i < ringSeats; i++ {
		if unfenced>>i&1 == 1 {
			next.seats[i].unfenced = false
		}
	}
	return next, t, names
}

// callOf is the call to etcd that a step is.
func callOf(t *ringDecision) ringFlight {
	switch t.step.Action {
	case AddLearner:
		return ringFlight{flightAdd, uint8(t.target)}
	case Promote:
		return ringFlight{flightPromote, uint8(t.target)}
	case Remove:
		return ringFlight{flightRemove, uint8(t.target)}
	case MoveLeader:
		return ringFlight{flightMove, uint8(t.target)}
	default:
		return ringFlight{}
	}
}

func (w *ring) disarmed(i int) ring {
	to := *w
	if int(w.alarm) == i+1 && w.quorate() {
		to.alarm = 0
	}
	return to
}

// rest judges a world in which nothing happens any more.
func (x *ringExplorer) rest(w ring) string {
	w.compare(x.operator)
	t := x.ringPlanner.decide(w.glance(0, true, true, x.bound.leads), x.bound.retain).step
	switch {
	case w.crowded(0):
		return "" // names have run out, as they never do
	case t.Acts():
		return "L5: it does the same over and over, and nothing comes of it: " + t.String()
	case t.Action == Wait:
		return "L3: it waits for nothing: " + t.String()
	case t.Action == None && w.atGoal() && w.alike(x.bound.beyond):
		return ""
	case t.Action == None:
		return "it says that all is well: " + t.String()
	case w.stranger != raftNone && t.Reason == ForeignMember, w.voters() == 1 && t.Reason == AlarmRaised && strings.Contains(t.Message, "CORRUPT"):
	case t.Reason == VolumeReplaced && w.copied():
		if left := w.untended(); left >= 0 {
			return "it asks a person before it has cared for " + seatName(left) + ": " + t.String()
		}
	case !x.bound.beyond:
		return "L1: it stalls though no more was lost than it survives: " + t.String()
	case w.survives() && w.stranger == raftNone:
		return "L1: it stalls though a quorum has its data: " + t.String()
	}
	for _, verb := range []string{"remove ", "Bring ", "restore ", "kubectl delete pvc "} {
		if strings.Contains(t.Message, verb) {
			return ""
		}
	}
	return "its message does not tell what to do: " + t.String()
}

// copied reports whether a volume has come back as another object.
func (w *ring) copied() bool {
	return w.another(-1, func(_ int, s *ringSeat) bool { return s.claim == claimCopied })
}

// untended is a voter that has its data and could serve, and does not; -1 where there is none.
func (w *ring) untended() int {
	for i := range w.seats {
		if s := &w.seats[i]; s.raft == raftVoter && w.intact(i) && !s.serves() {
			return i
		}
	}
	return -1
}

// atGoal: as many voters as wanted, all healthy, and nothing is left of any other.
func (w *ring) atGoal() bool {
	for i := range w.seats {
		s := &w.seats[i]
		switch {
		case s.raft == raftVoter && s.serves() && !s.terminating && !s.unfenced && s.holds && s.recorded && s.claim == claimKept && !w.unfit(i):
		case !s.member() && (s.pod == podNone && s.claim == claimNone || s.cutOff && s.claim != claimKept || s.retired):
		default:
			return false
		}
	}
	return w.voters() == int(w.size) && w.alarm == 0 && w.stranger == raftNone
}
