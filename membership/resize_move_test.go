package membership

// judgeMove says what is wrong with a decision on who moves to another volume, made on facts as they are (S17): one member more
// than wanted at most, and that only to take the place of one whose volume is unfit; begun only while all voters serve, on one
// volume as the spec asks for; and the leader last.
func (w *ring) judgeMove(t *ringDecision) string {
	s, n := &w.seats[t.target], w.voters()
	needed := n < int(w.size) || n == int(w.size) && w.another(-1, func(i int, s *ringSeat) bool { return s.raft == raftVoter && w.unfit(i) })
	allServe := w.serving(-1) == n
	goes := t.step.Action == Remove && s.raft == raftVoter && s.runs() && s.claim == claimKept && w.alarm == 0
	unfitServes := func(i int, s *ringSeat) bool {
		return s.raft == raftVoter && s.runs() && s.claim == claimKept && w.unfit(i)
	}
	switch a := t.step.Action; {
	case (a == AddLearner || a == Promote) && !needed:
		return "S17: one more member than wanted, and in nobody's place"
	case (a == AddLearner || a == Promote) && w.unfit(t.target):
		return "S17: a member comes to a volume that the spec does not ask for"
	case a == AddLearner && n == int(w.size) && !allServe:
		return "S17: a successor comes while a voter does not serve"
	case a == Provision && t.step.Reason == Moving && !allServe && w.fresh(t):
		return "S17: a move is begun while a voter does not serve"
	case a == Provision && t.step.Reason == Moving && w.fresh(t) && w.another(t.target, func(_ int, s *ringSeat) bool {
		return s.spare && s.claim == claimKept && !s.terminating
	}):
		return "S17: a second volume is made for one successor"
	case goes && n <= int(w.size) && t.step.Reason != CorruptMember:
		return "S17: who serves goes, and fewer than wanted stay"
	case goes && !w.unfit(t.target) && w.another(t.target, unfitServes):
		return "S17: who is where the spec asks for goes, and who is not stays"
	case (a == MoveLeader || goes && int(w.leader) == t.target+1) && t.step.Reason == Moving && w.leader > 0 &&
		w.another(int(w.leader)-1, unfitServes):
		return "S17: the leader goes before a follower"
	default:
		return ""
	}
}

// fresh reports whether volumes are made.
func (w *ring) fresh(t *ringDecision) bool {
	return t.names(w, func(s *ringSeat) bool { return s.claim == claimNone })
}
