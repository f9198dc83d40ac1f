package membership

import "go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

// What etcd does with a change of its members, at the time at which the call reaches it:
// server/etcdserver/server.go, mayAddMember, mayRemoveMember, mayPromoteMember and MoveLeader, and
// IsReadyToPromoteMember and IsReadyToRemoveVotingMember of
// server/etcdserver/api/membership/cluster.go. They are the same in 3.5.35, 3.6.16 and 3.7.3.
// Before 3.5.30 and 3.6.11 etcd wanted to be connected to all voters to add another one
// (isConnectedFullySince), and not to a quorum of what comes of it: so fewer calls took effect, and
// no others.

// land yields every way in which a call under way may take effect; none where etcd refuses it. A
// change of the configuration is an entry of the log: it commits on a quorum, one of which had
// everything before.
func (w *ring) land(f ringFlight, yield func(to ring, violation string)) {
	if w.refuses(f, w.up()) != nil {
		return
	}
	to, s := *w, &w.seats[f.seat]
	t := &to.seats[f.seat]
	violation := ""
	switch f.action {
	case flightAdd:
		if s.disk == diskData || s.disk == diskWiped || s.joins != joinsNobody {
			violation = "S9: a name is used again under which something has run"
		}
		t.raft, t.named, t.matched = raftLearner, false, false
	case flightPromote:
		t.raft, t.matched = raftVoter, false
		if w.misfed(int(f.seat)) {
			violation = "S20: a learner that was fed wrong data gets a vote"
		}
	case flightRemove:
		to.expel(int(f.seat))
	case flightMove:
		t.holds, to.leader = true, f.seat+1
		yield(to, "")
		return
	case flightNone:
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

// refuses is etcd's answer to a call that it does not carry out. Whom the member that is asked has
// been connected to for HealthInterval are its peers: all that run, sooner or later. Names count
// where processes should, and one that is down may always be removed.
func (w *ring) refuses(f ringFlight, peers uint8) error {
	s, n := &w.seats[f.seat], w.voters()
	switch {
	case !w.quorate():
		return rpctypes.ErrNoLeader
	case f.action == flightAdd && w.hasLearner():
		return rpctypes.ErrTooManyLearners
	case f.action == flightAdd && s.member():
		return rpctypes.ErrPeerURLExist
	case f.action == flightAdd && n > 1 && w.counted(peers) < Quorum(n+1):
		return rpctypes.ErrUnhealthy
	case f.action == flightPromote && !s.member(), f.action == flightRemove && !s.member():
		return rpctypes.ErrMemberNotFound
	case f.action == flightPromote && s.raft == raftVoter:
		return rpctypes.ErrMemberNotLearner
	case f.action == flightPromote && !s.matched:
		return rpctypes.ErrMemberLearnerNotReady
	case f.action == flightPromote && w.started(-1)+1 < Quorum(n+1): // it counts the learner as one that has started
		return rpctypes.ErrMemberNotEnoughStarted
	case f.action == flightRemove && s.raft == raftVoter && (n == 1 || w.started(int(f.seat)) < Quorum(n-1)):
		return rpctypes.ErrMemberNotEnoughStarted
	case f.action == flightRemove && s.raft == raftVoter && s.runs() && w.counted(peers)-1 < 1+(n-1)/2:
		return rpctypes.ErrUnhealthy
	case f.action == flightMove && s.raft != raftVoter:
		return rpctypes.ErrBadLeaderTransferee
	case f.action == flightMove && !s.runs():
		return rpctypes.ErrTimeout
	default:
		return nil
	}
}

// up are the seats of running members.
func (w *ring) up() (seats uint8) {
	for i := range w.seats {
		if w.seats[i].runs() {
			seats |= 1 << i
		}
	}
	return seats
}

// counted are the voters among these seats.
func (w *ring) counted(seats uint8) int {
	n := 0
	for i := range w.seats {
		if w.seats[i].raft == raftVoter && seats>>i&1 == 1 {
			n++
		}
	}
	return n
}

// started counts the voters whose names etcd has, but for one.
func (w *ring) started(but int) int {
	n := 0
	for i := range w.seats {
		if i != but && w.seats[i].raft == raftVoter && w.seats[i].named {
			n++
		}
	}
	return n
}

// expel makes a member one that was removed: its process learns of it, and exits.
func (w *ring) expel(i int) {
	s := &w.seats[i]
	s.raft, s.named, s.matched, s.holds = raftRemoved, false, false, false
	if s.joins == joinsNow {
		s.joins = joinsBefore
	}
	if s.runs() {
		s.pod = podExited
	}
	if int(w.leader) == i+1 {
		w.leader = 0
	}
	w.hashes.data.set(i, dataRight) // it is no member's data any more
}

// commits yields every smallest quorum of voters that run, one of which has the latest write, and
// the leader.
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
