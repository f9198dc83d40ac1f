package membership

import "fmt"

// judge says what is wrong with a decision that was made on facts as they are.
func (w *roll) judge(t *rollDecision) string {
	s := &w.seats[t.target]
	n := w.voters()
	if bad := w.judgeBackup(t); bad != "" {
		return bad
	}
	learners := w.count(func(s *rollSeat) bool { return s.role == rollListed || s.role == rollLearner })
	switch t.step.Action {
	case AddLearner, Join, Promote:
		_, highest := w.minors()
		if t.step.Action == AddLearner && w.down != 0 && highest > w.down { // a member of the earlier minor does not tell; etcd is about to end it
			return "S13: a member is added while the cluster is being downgraded"
		}
	case PutBack:
		for i := range w.seats {
			if o := &w.seats[i]; i != t.target && o.voter() && o.runs.minor() >= 6 && o.storage > t.to.minor() && s.image.minor() > t.to.minor() {
				return "S13: a member is rolled back over a minor that has served, as others tell"
			}
		}
		if w.tries(t.target) {
			return "a member is rolled back that may read its log, and is what the spec asks for"
		}
		if s.silent == rollMarked && s.before && s.runs != rollNone && t.same>>t.target&1 == 1 {
			return "what the spec asks for is taken back where the node is silent"
		}
		if s.served && s.runs != rollNone {
			return "a member that runs what it was changed to is rolled back"
		}
		if s.volume == s.image && s.previous != rollNone && s.previous != s.image && s.template == s.good && (s.next == rollNone || s.next == s.volume) {
			return "a member known to have served with what it was changed to is rolled back"
		}
		if s.image == s.volume && (s.next == rollNone || s.next == s.volume) && s.previous == rollNone && s.template == s.good {
			return "a member that was not changed is rolled back"
		}
	case Stop, Start:
		if w.memory {
			return "S4: data in memory is given up"
		}
	case Raise, Repair:
		if t.to.minor() > max(w.cluster, s.storage, s.volume.minor()) {
			return "it is written down that a minor has served that has not"
		}
	case Update:
		switch running := w.running(); {
		case learners > 0:
			return "S7: a member is changed while another one learns"
		case w.narrows(s) && w.db != sizeSmall:
			return "S22: a member gets a quota that its database has reached"
		case w.corrupt || w.alarm && !w.widens(s):
			return "S7: a member is changed while an alarm is raised"
		case running < n || n < int(w.size):
			return "S7: a member is changed while another one is away"
		case w.count(func(s *rollSeat) bool { return s.lags }) > 0:
			return "S7: a member is changed while another one has not caught up"
		case w.count(func(s *rollSeat) bool { return s.image != rollNone && s.going }) > 0:
			return "S7: a member is changed while another one's Pod goes"
		case w.unproved(t):
			return "S7: a member is changed while another one has yet to prove that it runs well"
		case s.silent == rollMarked:
			return "S7: a member is changed whose node is silent"
		case w.count(func(s *rollSeat) bool { return s.voter() && s.silent == rollMarked }) > 0:
			return "S7: a member is changed while the node of another one is silent"
		case n == 2:
			return "S7: one of two is changed"
		case n > 1 && running-1 < Quorum(n):
			return "S7: those that stay are no quorum"
		case int(w.leader) == t.target+1 && w.left(t) && s.proof == rollProved:
			return "S15: the leader is changed while a follower has yet to be"
		}
		return w.judgeVersion(t)
	case Disarm:
		return w.judgeDisarm(t)
	case Downgrade:
		if t.to.minor() != w.cluster-1 || w.down != 0 {
			return "S13: etcd refuses this downgrade"
		}
	case None:
		if t.step.Reason == Healthy && !w.looksWell() {
			return "it says that all is well: " + t.step.String()
		}
	default:
	}
	return ""
}

// unproved reports whether another voter than the target has yet to prove that it runs well, and
// not only with what it is to run no more.
func (w *roll) unproved(t *rollDecision) bool {
	for i := range w.seats {
		if s := &w.seats[i]; i != t.target && s.voter() && s.proof != rollProved && (t.same>>i&1 == 1 || s.proof == rollYoung && s.template == s.good) {
			return true
		}
	}
	return false
}

// judgeVersion of a change of what a member runs.
func (w *roll) judgeVersion(t *rollDecision) string {
	lowest, highest := w.minors()
	m := t.to.minor()
	if m > lowest+1 || highest > m+1 {
		return "S13: members would run minors that are not neighbours"
	}
	if why := w.refuses(t.target, t.to); why != "" {
		return fmt.Sprintf("S13: a member is changed to %s, which %s", rollVersions[t.to], why)
	}
	for i := range w.seats {
		if s := &w.seats[i]; s.voter() && s.storage > m {
			return "S13: a member is changed to an earlier minor before all data can be read by it"
		}
	}
	switch runs := w.seats[t.target].runs; {
	case runs.minor() == m || w.lies: // which member runs which patch is not ours then
	case runs == rollEarly && m > 5 || runs == rollEarly36 && m > 6:
		return "S13: a patch is left that is too early for the next minor"
	case t.to == rollEarly || t.to == rollEarly36:
		return "S13: a minor is reached at a patch that is too early"
	}
	return ""
}

// left reports whether any but the target has yet to become what it becomes.
func (w *roll) left(t *rollDecision) bool {
	for i := range w.seats {
		if i != t.target && w.seats[i].voter() && t.same>>i&1 == 0 && (!w.alarm || w.widens(&w.seats[i])) {
			return true
		}
	}
	return false
}

// breaks is the invariant that the world breaks, if any.
func (w *roll) breaks() string {
	lowest, highest := w.minors()
	ours := w.count(func(s *rollSeat) bool { return s.voter() && s.ours })
	untrue := w.count(func(s *rollSeat) bool { return s.good == rollWrong && (w.wrong|w.passing)>>rollWrong&1 == 1 })
	switch {
	case untrue > 0:
		return "no member has served with what is written down as that"
	case ours > 1:
		return "S8: two members are away by an act of the operator"
	case highest > lowest+1:
		return "S13: members run minors that are not neighbours"
	default:
		return ""
	}
}

// looksWell reports whether the cluster is as wanted, as far as can be seen.
func (w *roll) looksWell() bool {
	for i := range w.seats {
		s := &w.seats[i]
		switch {
		case s.voter() && !s.lost && s.runs == w.spec && s.image == w.spec && s.volume == w.spec && s.next == rollNone && s.template == w.template && !s.failing && !s.lags:
		case s.role == rollNobody:
		default:
			return false
		}
	}
	return w.voters() == int(w.size) && !w.alarm && !w.corrupt
}

// atGoal: all members run the spec, and etcd uses what is new in it.
func (w *roll) atGoal() bool {
	for i := range w.seats {
		s := &w.seats[i]
		if s.voter() && (s.going || s.undone || s.previous != rollNone || s.storage != s.runs.minor()) {
			return false
		}
	}
	return w.looksWell() && w.down == 0 && w.cluster == w.spec.minor()
}
