package membership

import "slices"

// rollEnd is how a world goes on when nothing more goes wrong.
type rollEnd struct {
	violation int32 // an index; 0: it ends well
	steps     int   // that act, until it comes to rest
}

// end follows the fair continuation: kubelets and etcd do what they do by themselves, and each pass
// is complete. It must come to rest with what the spec asks for, or at a stall that is justified.
func (x *rollExplorer) end(w roll) rollEnd {
	if x.bound.safety {
		return rollEnd{}
	}
	type stop struct {
		key   rollKey
		steps int
	}
	var path []stop
	end := rollEnd{}
	for {
		var bad string
		if w, bad = x.settled(w); bad != "" {
			end.violation = x.violation(bad)
			break
		}
		s := rollState{roll: w}
		s.canonical()
		w = s.roll
		key := s.pack()
		known, ok := x.ends[key]
		if ok {
			end = known
			break
		}
		x.ends[key] = rollEnd{violation: 1} // a circle, unless it proves otherwise
		path = append(path, stop{key: key})
		next, t := x.turn(w)
		if next != w {
			if t.step.Acts() {
				path[len(path)-1].steps = 1
			}
			w = next
			continue
		}
		if bad := x.rest(&w, t); bad != "" {
			end.violation = x.violation(bad)
		}
		break
	}
	for _, p := range slices.Backward(path) {
		end.steps += p.steps
		x.ends[p.key] = end
	}
	return end
}

func (x *rollExplorer) violation(text string) int32 {
	n := slices.Index(x.violations, text)
	if n < 0 {
		n = len(x.violations)
		x.violations = append(x.violations, text)
	}
	return int32(n)
}

// settled is the world after kubelets and etcd have done what they do by themselves, and what must
// not happen on the way.
func (x *rollExplorer) settled(w roll) (roll, string) {
	w.alarm, w.corrupt = w.alarm && w.sized, false
	for {
		was := w
		for i := range w.seats {
			s := &w.seats[i]
			if s.silent == rollUnheard {
				s.silent = rollMarked
			}
			if s.silent != rollHears {
				s.lags = false
				continue
			}
			if s.going {
				w.vanish(i)
			}
			if s.image == rollNone || s.role < rollLearner {
				continue
			}
			if s.before && s.runs != rollNone {
				w.end(i)
			}
			if s.runs == rollNone {
				if bad := w.launch(i, false); bad != "" {
					return w, bad
				}
			}
			s.lags = false
			switch {
			case s.runs != rollNone && w.passes(s):
				w.crash(i, true)
			case s.runs != rollNone:
				s.proof = rollProved
			}
		}
		w.elect()
		w.decide()
		if w.downgraded() {
			w.down = 0
		}
		for i := range w.seats {
			if w.migrates(i) {
				w.seats[i].storage = w.cluster
			}
		}
		w.alarm = w.alarm || w.overflows()
		if w.backup == backupRuns {
			w.backup = backupVerified
		}
		if w == was {
			return w, ""
		}
	}
}

// turn is one complete pass of a fresh operator.
func (x *rollExplorer) turn(w roll) (roll, *rollDecision) {
	t := x.decide(w.glance(false))
	next := x.all(w, t.flights(&w))
	if t.changesMembers() {
		next = t.changeMembers(w)
	}
	next = t.backsUp(t.disarms(next))
	next.maintain(t, x.operator)
	return next, t
}

// maintain takes back the mark of a Pod that was changed and has answered since, and writes down
// with what members serve. It is done in every pass after the step, but not after a Record.
func (w *roll) maintain(t *rollDecision, c rollCareless) {
	for i := range w.seats {
		s := &w.seats[i]
		unseen := w.memory && t.blind && s.volume != s.image // that it has answered
		if t.step.Action == Record || s.going || unseen {
			continue
		}
		if s.previous != rollNone && s.settled() && w.refused != writePod {
			s.previous = rollNone
		}
		if w.refused != writeClaim {
			w.serves(s, c)
		}
	}
}

// rest judges a world in which nothing happens any more.
func (x *rollExplorer) rest(w *roll, t *rollDecision) string {
	_, noWay := Path(runningOf(w), rollVersions[w.spec])
	switch step := t.step; {
	case w.refused != writeNone: // the status says so, and it is tried again after a while
		return ""
	case step.Acts():
		return "L5: it does the same over and over, and nothing comes of it: " + step.String()
	case w.leftArmed():
		return "L1: what was ordered on a node that is silent is not taken back: " + step.String()
	case step.Action == None && w.atGoal():
		return ""
	case step.Action == None:
		return "it says that all is well: " + step.String()
	case w.hopeless() || w.awaits() || w.triesAny():
		return ""
	case step.Action == Stall && (step.Reason == PodPending || step.Reason == Unreachable) && w.unstarted && w.wrong>>w.template&1 == 1:
		return "" // the spec asks for it, and a person is told
	case step.Action == Wait:
		return "L3: it waits for nothing: " + step.String()
	case step.Reason == VersionNotAllowed && noWay != nil:
	case step.Reason == ChangeFailed && w.givenUp && (w.broken != 0 || x.bound.mends || x.bound.refuses || x.bound.passing || (w.wrong|w.passing)>>w.template&1 == 1):
	case step.Reason == ChangeNotSupported && w.voters() == 2:
	case step.Reason == BackupFailed && w.guarded && w.backup == backupFailed:
	case step.Reason == VersionMismatch && w.lies:
	case (step.Reason == AlarmRaised || step.Reason == QuotaTooSmall) && w.db != sizeSmall && w.template != rollOther:
	case step.Reason == DataLost && w.running() < Quorum(w.voters()):
	default:
		return "L1: it stalls without a reason: " + step.String()
	}
	if lowest, _ := w.minors(); w.down != 0 && lowest > w.down && !w.lies && t.step.Reason != AlarmRaised {
		return "L1: it stalls in the middle of a downgrade: " + t.step.String()
	}
	if w.running() < w.voters() {
		return "L1: a member stays down: " + t.step.String()
	}
	return ""
}

// triesAny: a member that has been changed may read its log.
func (w *roll) triesAny() bool {
	for i := range w.seats {
		if w.tries(i) {
			return true
		}
	}
	return false
}

// hopeless: a member is down that comes up neither with what it has served with nor with what the
// spec says, or whose image has gone.
func (w *roll) hopeless() bool {
	return w.count(func(s *rollSeat) bool {
		return s.voter() && s.runs == rollNone && w.wrong>>s.good&1 == 1 && (w.wrong>>w.template&1 == 1 || w.givenUp)
	})+w.faded() > 0
}

func runningOf(w *roll) []Version {
	var versions []Version
	for i := range w.seats {
		if s := &w.seats[i]; s.voter() && s.runs != rollNone {
			versions = append(versions, rollVersions[s.runs])
		}
	}
	return versions
}
