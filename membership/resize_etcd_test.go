package membership

// What etcd 3.7 does with a change of its members, at the time at which the call reaches it: server/etcdserver/server.go,
// mayAddMember, mayRemoveMember, mayPromote and IsReadyToPromoteMember of server/etcdserver/api/membership/cluster.go.

// land yields every way in which a call under way may take effect; none where etcd refuses it. A change of the configuration
// is an entry of the log: it commits on a quorum, one of which had everything before.
func (w *ring) land(f ringFlight, yield func(to ring, violation string)) {
	i := int(f.seat)
	if !w.quorate() {
		return
	}
	to, s := *w, &w.seats[i]
	t := &to.seats[i]
	violation := ""
	n, active := w.voters(), w.active()
	switch f.action {
	case flightAdd:
		if s.member() || w.hasLearner() || n > 1 && active < Quorum(n+1) {
			return
		}
		if s.disk == diskData || s.disk == diskWiped || s.joins != joinsNobody {
			violation = "S9: a name is used again under which something has run"
		}
		t.raft, t.named, t.matched = raftLearner, false, false
	case flightPromote:
		if s.raft != raftLearner || !s.matched {
			return
		}
		t.raft, t.matched = raftVoter, false
	case flightRemove:
		if !w.mayRemove(i) {
			return
		}
		to.expel(i)
	case flightMove:
		if s.raft == raftVoter && s.runs() {
			t.holds, to.leader = true, f.seat+1
			yield(to, "")
		}
		return
	default:
		return
	}
	w.commits(func(quorum uint8) {
		then := to
		for j := range then.seats {
			if quorum>>j&1 == 1 && then.seats[j].raft == raftVoter {
				then.seats[j].holds = true
			}
		}
		yield(then, violation)
	})
}

// mayRemove is etcd's own check. Names count for it as if they were processes, and who is down may always go.
func (w *ring) mayRemove(i int) bool {
	s := &w.seats[i]
	switch {
	case s.raft == raftLearner:
		return true
	case s.raft != raftVoter || w.voters() == 1:
		return false
	}
	n, named, active := w.voters(), 0, w.active()
	for j := range w.seats {
		if j != i && w.seats[j].raft == raftVoter && w.seats[j].named {
			named++
		}
	}
	return named >= Quorum(n-1) && (!s.runs() || active-1 >= 1+(n-1)/2)
}

// expel makes a member one that was removed: its process learns of it, and exits.
func (w *ring) expel(i int) {
	s := &w.seats[i]
	s.raft, s.named, s.matched, s.holds = raftRemoved, false, false, false
	if s.joins == joinsNow {
		s.joins = joinsBefore
	}
	if s.pod == podUp {
		s.pod = podExited
	}
	if int(w.leader) == i+1 {
		w.leader = 0
	}
	if int(w.corrupt) == i+1 {
		w.corrupt = 0
	}
}

// commits yields every smallest quorum of voters that run, one of which has the latest write, and the leader.
func (w *ring) commits(yield func(quorum uint8)) {
	need := Quorum(w.voters())
	var up []int
	for i := range w.seats {
		if w.seats[i].raft == raftVoter && w.seats[i].runs() {
			up = append(up, i)
		}
	}
	for mask := range 1 << len(up) {
		var quorum uint8
		size, led := 0, false
		for bit, i := range up {
			if mask>>bit&1 == 1 {
				size++
				quorum |= 1 << i
				led = led || w.seats[i].holds
			}
		}
		if size == need && led && (w.leader == 0 || quorum>>(w.leader-1)&1 == 1) {
			yield(quorum)
		}
	}
}
