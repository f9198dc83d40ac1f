package membership

// The model of data that is wrong: in the database of a voter, at any moment, in one of two ways.
// Which it is shows only by a comparison, and etcd accuses by the opinion of one member: the
// leader raises the alarm, and a member that starts ends where any other one has other data.

// ringHashes is what there is to be known about it.
type ringHashes struct {
	matter    bool     // false: all data is right, and known to be
	data      ringData // that each seat has
	compared  uint8    // the seats that were compared since anything changed
	sums      ringData // what came of it
	unchecked uint8    // the seats whose Pods start without etcd's check
}

// ringData is the data of each seat, in two bits.
type ringData uint16

const dataRight = 0

func (d ringData) of(i int) uint8 { return uint8(d >> (2 * i) & 3) }

func (d *ringData) set(i int, v uint8) { *d = *d&^(3<<(2*i)) | ringData(v)<<(2*i) }

func (d *ringData) move(from, to int) {
	v := d.of(from)
	d.set(from, dataRight)
	d.set(to, v)
}

func (h *ringHashes) clear(i int) {
	h.data.set(i, dataRight)
	h.sums.set(i, dataRight)
	h.compared &^= 1 << i
	h.unchecked &^= 1 << i
}

func (h *ringHashes) move(from, to int) {
	h.data.move(from, to)
	h.sums.move(from, to)
	h.compared, h.unchecked = moveBit(h.compared, from, to), moveBit(h.unchecked, from, to)
}

// forget what was compared.
func (h *ringHashes) forget() { h.compared, h.sums = 0, 0 }

func (h *ringHashes) bits() uint64 {
	var matter uint64
	if h.matter {
		matter = 1
	}
	return matter<<42 | uint64(h.data)<<28 | uint64(h.sums)<<14 | uint64(h.compared)<<7 | uint64(h.unchecked)
}

func hashesOf(v uint64) ringHashes {
	return ringHashes{matter: v>>42&1 == 1, data: ringData(v >> 28 & 0x3fff), sums: ringData(v >> 14 & 0x3fff), compared: uint8(v >> 7 & 0x7f), unchecked: uint8(v & 0x7f)}
}

// inconsistency is what the kubelet tells of a member that etcd's check has ended.
const inconsistency = "exited with code 1: found data inconsistency with peers"

// accused reports whether etcd's check at the start has ended the member: it has data, and exits.
func (s *ringSeat) accused() bool { return s.pod == podExited && s.member() && s.disk == diskData }

// runsInconsistent reports whether etcd's check would end a member that has just started.
func (w *ring) runsInconsistent(i int) bool {
	s := &w.seats[i]
	return s.pod == podUp && w.hashes.unchecked>>i&1 == 0 && w.another(i, func(j int, o *ringSeat) bool {
		return o.raft == raftVoter && o.runs() && w.hashes.data.of(j) != w.hashes.data.of(i)
	})
}

// feed a learner that starts. Where the leader is not known, that is the first that runs.
func (w *ring) feed(i int) {
	w.another(i, func(j int, s *ringSeat) bool {
		feeds := s.raft == raftVoter && s.runs() && (w.leader == 0 || int(w.leader) == j+1)
		if feeds {
			w.hashes.data.set(i, w.hashes.data.of(j))
		}
		return feeds
	})
}

// fed yields the data that a learner that has just started may have got otherwise: from another
// voter that may lead.
func (w *ring) fed(i int, yield func(to ring)) {
	if w.leader > 0 {
		return
	}
	for j := range w.seats {
		if s := &w.seats[j]; j != i && s.raft == raftVoter && s.runs() && w.hashes.data.of(j) != w.hashes.data.of(i) {
			to := *w
			to.hashes.data.set(i, w.hashes.data.of(j))
			yield(to)
		}
	}
}

// alike reports whether all voters have the same data; that is the right data, unless more of it
// was wrong than can be told.
func (w *ring) alike(beyond bool) bool {
	var first *uint8
	for i := range w.seats {
		if w.seats[i].raft != raftVoter {
			continue
		}
		v := w.hashes.data.of(i)
		if first == nil {
			first = &v
		}
		if v != *first || v != dataRight && !beyond {
			return false
		}
	}
	return true
}

// rightQuorum reports whether a quorum of the voters has right data.
func (w *ring) rightQuorum() bool {
	right := 0
	for i := range w.seats {
		if w.seats[i].raft == raftVoter && w.seats[i].disk == diskData && w.hashes.data.of(i) == dataRight {
			right++
		}
	}
	return right >= Quorum(w.voters())
}

// misfed reports whether a learner that is about to get a vote has wrong data that a comparison
// would have shown: a voter that serves has it as well. Where the one that has fed it is away,
// those that are right must be a quorum beside the learner: it is found then, and goes.
func (w *ring) misfed(i int) bool {
	if !w.rightQuorum() || w.hashes.data.of(i) == dataRight {
		return false
	}
	right, shown := 0, false
	for j := range w.seats {
		switch s := &w.seats[j]; {
		case s.raft != raftVoter || s.disk != diskData:
		case w.hashes.data.of(j) == dataRight:
			right++
		case s.serves():
			shown = true
		}
	}
	return shown || right < Quorum(w.voters()+1)
}

// ringSubject is what a comparison is about, but for the processes.
type ringSubject struct {
	voters, learners, serving, alarm uint8
	surplus                          bool
}

func (w *ring) subject() ringSubject {
	s := ringSubject{alarm: w.alarm, surplus: w.voters() > int(w.size)}
	for i := range w.seats {
		m := &w.seats[i]
		if m.raft == raftVoter {
			s.voters |= 1 << i
		}
		if m.raft == raftLearner {
			s.learners |= 1 << i
		}
		if m.raft == raftVoter && m.serves() || m.raft == raftLearner && m.runs() {
			s.serving |= 1 << i
		}
	}
	return s
}

// restarted reports whether the process of a member is another one than before.
func (w *ring) restarted(before *ring) bool {
	for i := range w.seats {
		if w.seats[i].runs() && !before.seats[i].runs() {
			return true
		}
	}
	return false
}

// compare the voters that serve. What is known already stays where the operator goes by what was.
func (w *ring) compare(operator ringCareless) {
	if !w.hashes.matter || operator.ignoresStarts && w.hashes.compared != 0 {
		return
	}
	w.hashes.forget()
	for i := range w.seats {
		if w.seats[i].raft == raftVoter && w.seats[i].serves() {
			w.hashes.compared |= 1 << i
			w.hashes.sums.set(i, w.hashes.data.of(i))
		}
	}
}

// known is what an operator knows of the data of those that serve.
func (w *ring) known(asked bool) (uint8, ringData) {
	if !asked || !w.quorate() {
		return 0, 0
	}
	compared, sums := w.hashes.compared, w.hashes.sums
	if !w.hashes.matter {
		compared = 0x7f
	}
	for i := range w.seats {
		if !w.seats[i].serves() || w.seats[i].raft != raftVoter {
			compared &^= 1 << i
			sums.set(i, dataRight)
		}
	}
	return compared, sums
}

// agreed are the seats that were found to be a quorum of equal ones, and whether another one
// differs.
func (w *ring) agreed() (right uint8, differ bool) {
	compared, sums := w.known(true)
	var with [4]uint8
	for i := range w.seats {
		if compared>>i&1 == 1 {
			with[sums.of(i)] |= 1 << i
		}
	}
	groups := 0
	for _, seats := range with {
		if seats != 0 {
			groups++
		}
		if w.counted(seats) >= Quorum(w.voters()) {
			right = seats
		}
	}
	return right, groups > 1
}

// proved reports whether a quorum was found to be equal, and each voter that serves with it.
func (w *ring) proved() bool {
	right, differ := w.agreed()
	return right != 0 && !differ && !w.another(-1, func(i int, s *ringSeat) bool { return s.raft == raftVoter && s.serves() && right>>i&1 == 0 })
}

// checks is whose Pods start without etcd's check after a pass: those that were ended by it, until
// they are known to be right and none differs.
func (w *ring) checks(operator ringCareless) uint8 {
	unchecked := w.hashes.unchecked
	if !w.hashes.matter {
		return 0
	}
	right, differ := w.agreed()
	for i := range w.seats {
		switch s := &w.seats[i]; {
		case s.accused() && !operator.checksAlways:
			unchecked |= 1 << i
		case right>>i&1 == 1 && !differ:
			unchecked &^= 1 << i
		}
	}
	return unchecked
}

// corruption is what makes data wrong, and how etcd accuses.
func (b *ringBound) corruption(s *ringState, i int, change ringChange) {
	m := &s.ring.seats[i]
	if s.budget.corruptions > 0 && m.raft == raftVoter && m.disk == diskData && s.ring.hashes.data.of(i) == dataRight {
		for _, how := range []uint8{1, 2} {
			if how == 2 && s.ring.hashes.data == 0 {
				continue // the first one is wrong in the first way
			}
			to := *s
			to.budget.corruptions--
			to.ring.hashes.data.set(i, how)
			if to.ring.voters() > int(to.ring.size) {
				to.ring.hashes.forget() // when a member is one too many, they are compared again: no time is left in between
			}
			if b.beyond || to.ring.survives() {
				change("its data goes wrong", i, &to, "")
			}
		}
	}
	if s.ring.alarm != 0 || m.raft != raftVoter || !m.runs() || !s.ring.quorate() || s.ring.leader != 0 && int(s.ring.leader) != i+1 {
		return
	}
	for j := range s.ring.seats { // in the eyes of the leader, which is wrong or right
		if o := &s.ring.seats[j]; o.member() && o.runs() && s.ring.hashes.data.of(j) != s.ring.hashes.data.of(i) {
			to := *s
			to.ring.alarm = uint8(j) + 1
			change("is accused by the leader", j, &to, "")
			to.ring.alarm = ringNobody
			change("an alarm names no member", -1, &to, "")
		}
	}
}

// hashes are the comparisons beside the passes, and what a pass makes of them.
func (x *ringExplorer) hashes(s *ringState, asked bool, yield func(ringEdge)) {
	if !x.bound.hashes {
		return
	}
	to := *s
	if asked && s.ring.quorate() {
		to.ring.compare(x.operator)
		yield(ringEdge{what: "the voters are compared", to: to})
	}
	to = *s
	to.ring.hashes.unchecked = s.ring.checks(x.operator)
	yield(ringEdge{what: "tells Pods whether etcd is to check their data", to: to})
}

// judgeHash says what is wrong with a decision about data.
func (w *ring) judgeHash(t *ringDecision) string {
	s, right := &w.seats[t.target], w.hashes.data.of(t.target) == dataRight
	found, _ := w.agreed()
	switch a := t.step.Action; {
	case a == AddLearner && w.voters() > 1 && !w.proved():
		return "S20: a learner is to be fed before the voters are known to be equal"
	case a == Remove && s.raft == raftVoter && t.step.Reason == CorruptMember && w.hasLearner():
		return "S20: a learner stays that may have been fed by the member that goes"
	case a == Remove && s.raft == raftVoter && t.step.Reason == CorruptMember && right && w.rightQuorum():
		return "S19: a member whose data is right goes for corruption"
	case a == Remove && s.raft == raftVoter && t.step.Reason == MemberFailed && s.accused() && right && w.rightQuorum():
		return "S19: a member whose data is right goes since etcd's check has ended it"
	case a == MoveLeader && t.step.Reason == CorruptMember && found>>t.target&1 == 0:
		return "S19: the leadership goes to a member that was not found to be right" // it may have gone wrong since
	default:
		return ""
	}
}

// judgeDisarm: writes are let in again where nothing is known to differ.
func (w *ring) judgeDisarm(target int) string {
	if target < ringSeats && !w.seats[target].member() {
		return ""
	}
	if right, differ := w.agreed(); right == 0 || differ {
		return "S19: an alarm is taken back though the voters are not known to be equal"
	}
	return ""
}
