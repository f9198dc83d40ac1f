package membership

import "slices"

// ringBound is how far an exploration goes.
type ringBound struct {
	sizes  []uint8 // that the spec may have
	first  uint8   // how many members there are at first
	size   uint8   // that the spec has at first; 0: as many
	names  int     // that may be in use at a time; 0: as many as there are seats
	budget ringBudget
	calls  int // to etcd that are under way at a time

	slow     bool // what is deleted and unused takes its time to go, too
	crashes  bool // processes crash
	one      bool // but not while a voter does not run
	still    bool // clients write nothing
	claims   bool // of losses: a volume is deleted by a user
	copies   bool // a volume comes back as another object, annotations and all, with the data of an earlier day
	all      bool // so are all volumes at once
	strips   bool // and a claim is gone from under its Pod
	wipes    bool // its content is gone
	nodes    bool // its node is lost
	patience bool // may run out
	backOff  bool // kubelets start what has crashed ever later
	marks    bool // the node controller may give up nodes whose members serve
	late     bool // a learner that starts may serve clients only after a while
	leads    bool // it matters which member leads
	retain   bool // the volumes of former members
	beyond   bool // more may be lost than a cluster survives
	hashes   bool // data may be wrong, so that it matters whether it was compared
	safety   bool // look for safety only, and not how it goes on
	states   int  // at most
}

// most steps and names that it may take to come to an end: so many for a cluster that changes its
// size and heals, and those of each member that moves to another volume.
func (b *ringBound) most() (steps, names int) {
	moves := 0
	if b.budget.kinds > 0 || b.all {
		moves = int(slices.Max(b.sizes))
	}
	return 24 + 9*moves, 5 + moves
}

// ringEdge is something that happens.
type ringEdge struct {
	by        string
	what      string
	who       uint8
	to        ringState
	violation string
}

type ringChange func(what string, who int, to *ringState, violation string)

// changes yields what happens to one member, or to none.
func changes(yield func(ringEdge)) ringChange {
	return func(what string, who int, to *ringState, violation string) {
		e := ringEdge{what: what, to: *to, violation: violation}
		if who >= 0 {
			e.who = 1 << who
		}
		yield(e)
	}
}

// surroundings are all but the operator.
func (b *ringBound) surroundings(s *ringState, yield func(ringEdge)) {
	change := changes(yield)
	for i := range s.ring.seats {
		if s.ring.seats[i] != (ringSeat{}) {
			b.machines(s, i, change)
			b.misfortune(s, i, change)
		}
	}
	b.etcd(s, yield)
	b.clients(s, yield)
	b.people(s, change)
}

// machines are kubelets, controllers and etcd itself, at their own pace.
func (b *ringBound) machines(s *ringState, i int, change ringChange) {
	m := &s.ring.seats[i]
	if m.pod == podMaking && m.claim == claimKept && !m.terminating {
		to := *s
		to.ring.seats[i].pod = podReady
		change("its volume and image are there", i, &to, "")
	}
	if m.pod == podWaiting && m.claim == claimKept && !m.terminating || m.pod == podCrashed && !m.terminating || m.pod == podExited && !m.terminating && m.member() && (m.disk == diskData || m.unfenced && !m.matched) {
		to := *s
		violation := to.ring.launch(i)
		change("its container starts", i, &to, violation)
		if m.disk != diskData && b.hashes {
			to.ring.fed(i, func(w ring) {
				otherwise := to
				otherwise.ring = w
				change("its container starts, and another one feeds it", i, &otherwise, violation)
			})
		}
		if m.disk == diskData && to.ring.runsInconsistent(i) {
			ended := to
			ended.ring.seats[i].pod = podExited
			change("its container starts, and etcd ends it: another one has other data", i, &ended, violation)
		}
		if s := &to.ring.seats[i]; b.late && s.raft == raftLearner && s.pod == podUp {
			s.pod = podMute
			change("its container starts, and it does not serve yet", i, &to, violation)
		}
	}
	if m.terminating && !m.cutOff {
		to := *s
		to.ring.vanish(i)
		change("its Pod is gone", i, &to, "")
	}
	if m.released() {
		to := *s
		to.ring.seats[i].discard()
		change("its volume is gone", i, &to, "")
	}
	if m.fetches() && s.ring.quorate() {
		to := *s
		to.ring.seats[i].holds = true
		change("gets its data, which the leader does not know yet", i, &to, "")
	}
	if m.runs() && m.member() && s.ring.quorate() && (!m.holds || m.raft == raftLearner && !m.matched) {
		to := *s
		to.ring.seats[i].holds = true
		to.ring.seats[i].matched = m.raft == raftLearner
		change("catches up", i, &to, "")
	}
	if m.pod == podMute && m.member() && s.ring.quorate() {
		to := *s
		to.ring.seats[i].pod, to.ring.seats[i].named = podUp, true
		change("serves clients", i, &to, "")
	}
	if m.runs() && m.member() && s.ring.quorate() && !m.named {
		to := *s
		to.ring.seats[i].named = true
		change("publishes its name", i, &to, "")
	}
	if s.ring.young>>i&1 == 1 {
		to := *s
		to.ring.young &^= 1 << i
		change("its Pod is not young any more", i, &to, "")
	}
	if m.runs() && m.forsaken {
		to := *s
		to.ring.seats[i].forsaken = false
		change("its node is heard of again", i, &to, "")
	}
	if b.leads && int(s.ring.leader) == i+1 {
		to := *s
		to.ring.leader = 0
		change("is not heard for a while, and leads no more", i, &to, "")
	}
	if b.leads && int(s.ring.leader) != i+1 && m.raft == raftVoter && m.runs() && m.holds && s.ring.quorate() && s.ring.leader == 0 {
		to := *s
		to.ring.leader = uint8(i) + 1
		change("becomes the leader", i, &to, "")
	}
}

// damaged reports whether it may be that the member never comes back.
func (s *ringSeat) damaged() bool {
	return s.member() && (s.pod == podCrashed || s.pod == podExited && !s.accused() || s.cutOff)
}

// calm reports whether one more voter may fail.
func (b *ringBound) calm(w *ring, i int) bool {
	if !b.one || w.seats[i].raft != raftVoter {
		return true
	}
	for j := range w.seats {
		if s := &w.seats[j]; j != i && s.raft == raftVoter && (!s.serves() || s.terminating) {
			return false
		}
	}
	return true
}

// misfortune is what happens to one member by accident or by a user.
func (b *ringBound) misfortune(s *ringState, i int, change ringChange) {
	m := &s.ring.seats[i]
	if b.crashes && m.runs() && !m.terminating && b.calm(&s.ring, i) {
		to := *s
		to.ring.crash(i)
		change("crashes", i, &to, "")
	}
	if s.budget.kills > 0 && m.pod != podNone && !m.terminating && b.calm(&s.ring, i) {
		to := *s
		to.budget.kills--
		to.ring.kill(i)
		if b.beyond || !m.member() || !m.leaving() || to.ring.survives() { // its data goes with it
			change("its Pod is deleted by a user", i, &to, "")
		}
	}
	if m.cutOff {
		to := *s
		to.ring.vanish(i)
		change("its node is back, or declared gone", i, &to, "")
	}
	if b.patience && m.damaged() && !m.forsaken {
		to := *s
		to.ring.seats[i].forsaken = true
		if b.beyond || m.raft == raftLearner || to.ring.survives() {
			change("patience with it runs out", i, &to, "")
		}
	}
	if b.marks && m.runs() && m.member() && !m.forsaken && !m.terminating {
		to := *s
		to.ring.seats[i].forsaken = true
		change("its node is not heard of for long, and it serves", i, &to, "")
	}
	if s.budget.losses > 0 {
		b.losses(s, i, change)
	}
	if b.hashes {
		b.corruption(s, i, change)
	}
}

func (b *ringBound) losses(s *ringState, i int, change ringChange) {
	m := &s.ring.seats[i]
	lose := func(what string, do func(*ring)) {
		to := *s
		to.budget.losses--
		do(&to.ring)
		if b.beyond || !m.member() || to.ring.survives() {
			change(what, i, &to, "")
		}
	}
	if b.claims && m.claim == claimKept && !m.retired {
		lose("its volume is deleted by a user", func(w *ring) {
			w.seats[i].claim = claimDoomed
		})
	}
	if b.copies && m.claim == claimKept && m.recorded && !m.retired && m.disk == diskData && m.pod != podWaiting {
		lose("its volume comes back as another object", func(w *ring) {
			w.seats[i].claim = claimCopied
			w.seats[i].holds = m.holds && m.pod != podNone
		})
	}
	if b.strips && m.claim != claimNone && !m.retired && m.keeps() {
		lose("its volume is gone from under its Pod", func(w *ring) {
			n := &w.seats[i]
			n.claim, n.spare, n.joins, n.recorded = claimNone, false, joinsNobody, false
		})
	}
	if b.wipes && m.disk == diskData && m.member() {
		lose("its disk is wiped", func(w *ring) {
			w.seats[i].disk = diskWiped
			if m.runs() {
				w.crash(i)
			}
		})
	}
	if b.nodes && m.pod != podNone && !m.cutOff {
		lose("its node is lost", func(w *ring) {
			if n := &w.seats[i]; n.runs() {
				w.crash(i)
			}
			w.seats[i].terminating, w.seats[i].cutOff = true, true
		})
	}
}

// people change the spec, or etcd's members, or delete all volumes at once.
func (b *ringBound) people(s *ringState, change ringChange) {
	for _, size := range b.sizes {
		if s.budget.specs > 0 && s.ring.size != size {
			to := *s
			to.budget.specs--
			to.ring.size = size
			change("spec.replicas changes", -1, &to, "")
		}
	}
	for i := range s.ring.seats {
		if s.ring.seats[i].claim != claimCopied {
			continue
		}
		to := *s
		to.ring.seats[i].claim = claimDoomed
		change("a user gives it up, and deletes what was restored", i, &to, "")
		to.ring.seats[i].claim = claimKept
		if to.ring.broken(b.beyond) == "" { // otherwise it is consent to have lost writes
			change("a user accepts what was restored", i, &to, "")
		}
	}
	if s.budget.kinds > 0 {
		to := *s
		to.budget.kinds--
		to.ring.kind ^= 1
		change("spec.storage changes", -1, &to, "")
	}
	if b.all && s.budget.losses > 0 {
		to := *s
		to.budget.losses--
		for i := range to.ring.seats {
			if m := &to.ring.seats[i]; m.claim == claimKept && !m.retired {
				m.claim = claimDoomed
			}
		}
		if b.beyond || to.ring.survives() {
			change("all volumes are deleted", -1, &to, "")
		}
	}
	if s.ring.stranger != raftNone && s.ring.quorate() {
		to := *s
		to.ring.stranger = raftNone
		change("the stranger is removed", -1, &to, "")
	}
	if s.budget.hands == 0 || !s.ring.quorate() {
		return
	}
	by := func(what string, f ringFlight) {
		s.ring.land(f, func(w ring, _ string) {
			to := *s
			to.ring = w
			to.budget.hands--
			if b.beyond || w.survives() {
				change(what, int(f.seat), &to, "")
			}
		})
	}
	for i := range s.ring.seats {
		switch s.ring.seats[i].raft {
		case raftLearner:
			by("is promoted by a user", ringFlight{flightPromote, uint8(i)})
			by("is removed by a user", ringFlight{flightRemove, uint8(i)})
		case raftVoter:
			by("is removed by a user", ringFlight{flightRemove, uint8(i)})
		case raftNone, raftRemoved:
		}
	}
	if s.ring.stranger == raftNone {
		n := s.ring.voters()
		to := *s
		to.budget.hands--
		if !s.ring.hasLearner() {
			to.ring.stranger = raftLearner
			change("a user adds a learner", -1, &to, "")
		}
		if to.ring.stranger = raftVoter; n > 1 && s.ring.active() >= Quorum(n+1) && (b.beyond || to.ring.survives()) {
			change("a user adds a member", -1, &to, "")
		}
	}
}

// clients write. A write is acknowledged when a quorum has it, led by a member with every
// acknowledged write.
func (b *ringBound) clients(s *ringState, yield func(ringEdge)) {
	if b.still || !s.ring.quorate() || s.ring.alarm != 0 {
		return
	}
	s.ring.commits(func(quorum uint8) {
		to := *s
		for i := range to.ring.seats {
			to.ring.seats[i].holds = quorum>>i&1 == 1
		}
		yield(ringEdge{what: "a write is acknowledged by", who: quorum, to: to})
	})
}

// etcd carries out what it was asked for, or never does.
func (b *ringBound) etcd(s *ringState, yield func(ringEdge)) {
	for n, f := range s.ring.flights {
		if f.action == flightNone {
			continue
		}
		to := *s
		to.ring.flights[n] = ringFlight{}
		yield(ringEdge{what: "the call comes to nothing", who: 1 << f.seat, to: to})
		s.ring.land(f, func(w ring, violation string) {
			to := *s
			to.ring = w
			to.ring.flights[n] = ringFlight{}
			yield(ringEdge{what: "etcd does as it was asked", who: 1 << f.seat, to: to, violation: violation})
		})
	}
}
