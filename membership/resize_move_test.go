package membership

// judgeMove says what is wrong with a decision on which member leaves its volume, because the spec
// asks for another one or because it goes with its Pod, made on facts as they are (S17): one member
// more than wanted at most, and that only in the place of such a one; begun only while all voters
// serve, on one volume that stays and is as the spec asks for; no member goes before its successor
// votes, and the leader last.
func (w *ring) judgeMove(t *ringDecision) string {
	s, n := &w.seats[t.target], w.voters()
	needed := n < int(w.size) || n == int(w.size) && w.another(-1, func(i int, s *ringSeat) bool { return s.raft == raftVoter && (s.leaving() || w.unfit(i)) })
	allServe := w.serving(-1) == n
	goes := t.step.Action == Remove && s.raft == raftVoter && s.runs() && !s.terminating && w.alarm == 0
	before := func(worth int) func(i int, s *ringSeat) bool {
		return func(i int, s *ringSeat) bool {
			return s.raft == raftVoter && s.runs() && !s.terminating && w.worth(i) < worth
		}
	}
	switch a := t.step.Action; {
	case (a == AddLearner || a == Promote) && !needed:
		return "S17: one more member than wanted, and in no other's place"
	case (a == AddLearner || a == Promote) && w.worth(t.target) < worthStays:
		return "S17: a member comes to a volume that the spec does not ask for, or that goes"
	case a == AddLearner && n == int(w.size) && !allServe:
		return "S17: a successor comes while a voter does not serve"
	case a == Provision && t.step.Reason == Moving && !allServe && w.fresh(t):
		return "S17: a move is begun while a voter does not serve"
	case a == Provision && t.step.Reason == Moving && w.fresh(t) && w.another(t.target, func(_ int, s *ringSeat) bool {
		return s.spare && s.claim == claimKept && !s.terminating
	}):
		return "S17: a second volume is made for one successor"
	case (a == Stop || a == Discard) && w.throwsAway(t):
		return "S17: what was made for the successor of a member is thrown away, and that member is lost"
	case goes && n <= int(w.size) && t.step.Reason != CorruptMember:
		return "S17: a serving voter goes, and fewer than wanted stay"
	case goes && w.another(t.target, before(w.worth(t.target))):
		return "S17: a voter where the spec asks for goes, and one elsewhere stays"
	case (a == MoveLeader || goes && int(w.leader) == t.target+1) && t.step.Reason == Moving && w.leader > 0 &&
		w.another(int(w.leader)-1, before(min(w.worth(int(w.leader)-1)+1, worthStays))):
		return "S17: the leader goes before a follower"
	default:
		return ""
	}
}

// How much a volume is worth: one that cannot be used again before a person has accepted it is
// worth the least, then one that goes with its Pod, and then one that is not what the spec asks
// for.
const (
	worthCopied = iota
	worthGoes
	worthUnfit
	worthStays
)

func (w *ring) worth(i int) int {
	switch {
	case w.seats[i].leaving():
		return worthGoes
	case w.seats[i].claim == claimCopied:
		return worthCopied
	case w.unfit(i):
		return worthUnfit
	default:
		return worthStays
	}
}

// throwsAway reports whether a spare goes that is as the spec asks for, though members are lost
// whose successors it could be.
func (w *ring) throwsAway(t *ringDecision) bool {
	usable := func(i int) bool {
		s := &w.seats[i]
		return s.spare && !s.member() && s.claim == claimKept && !s.terminating && !w.unfit(i)
	}
	spares, lost, learners, thrown := 0, 0, 0, false
	for i := range w.seats {
		s := &w.seats[i]
		switch {
		case usable(i):
			spares++
			thrown = thrown || t.who>>i&1 == 1
		case s.raft == raftLearner:
			learners++
		case s.raft == raftVoter && s.leaving() && !s.keeps():
			lost++
		}
	}
	return thrown && lost > 0 && spares <= int(w.size)-w.voters()+lost-learners
}

// fresh reports whether volumes are made.
func (w *ring) fresh(t *ringDecision) bool {
	return t.names(w, func(s *ringSeat) bool { return s.claim == claimNone })
}
