package membership

// effect of the step on one member. A conflict makes the operator look again.
func (x *swapExplorer) effect(w *swap, l swapLook, t swapDecision, n int, same bool) (violation string, conflict bool) {
	m, g, op := &w.members[n], l.members[n], x.operator
	seen := m.claim == g.claim
	switch t.step.Action {
	case Provision:
		if !seen || m.claim.terminating {
			return "", true
		}
		if m.claim.uid == 0 {
			m.made++
			m.claim.uid = m.made
		}
		m.claim.first, m.claim.snapshot = lineageOf(t.step.First), swapStored(t.step.First.Snapshot)
	case Bootstrap:
		if t.step.First.Snapshot == "" {
			return "S3: a cluster that had formed is begun empty", false
		}
		if memberOf(swapStored(t.step.First.Snapshot)) >= 0 && !w.hasCopy(n, t.step.First) {
			return "R5: a new member gets a Pod, and its data was not copied yet", false
		}
		return "", swapCreate(m, newSwapPod(t.step.First))
	case Start:
		if !seen && !op.startsFromCache {
			return "", true
		}
		return "", swapCreate(m, swapPod{phase: pending, told: g.claim.first})
	case Record:
		if !seen {
			return "", true
		}
		m.claim.record = g.answer
	case Stop, StopFormer:
		if same {
			w.kill(n)
		}
	case SetAside, Readmit:
		if !seen {
			return "", true
		}
		m.claim.aside, m.claim.patched = 0, m.claim.patched+1
		if t.step.Action == SetAside {
			m.claim.aside = l.status.restore
		}
	case Discard, DiscardFormer:
		if !seen {
			return "", true
		}
		violation = w.discarded(n, x.bound)
		w.deleteClaim(n)
	case None, Wait, Stall, Find, CopyData:
	default:
		return "the step has an action that is not known", false
	}
	return violation, false
}

func newSwapPod(f First) swapPod {
	return swapPod{phase: pending, told: lineageOf(f), restores: true, snapshot: swapStored(f.Snapshot)}
}

// swapCreate makes a Pod where there is none.
func swapCreate(m *swapMember, p swapPod) (conflict bool) {
	if m.pod.phase != absent {
		return true
	}
	m.pod = p
	return false
}

// discarded judges the deletion of a claim.
func (w *swap) discarded(n int, b *swapBound) string {
	m := w.members[n]
	switch st := w.status; {
	case m.disk == 0:
		return ""
	case m.claim.aside != 0 && (st.phase != swapCompleted || m.claim.aside != st.restore || b.discards&(1<<m.claim.aside) == 0):
		return "R7: a volume that was set aside is deleted, and that was not asked for, or not yet"
	case m.claim.aside == 0 && m.disk == w.served:
		return "R7: a volume of the cluster that has served last is deleted"
	default:
		return ""
	}
}

// returned judges the end of a restore that was taken back: all former volumes are as before, and
// nothing is left of the new members.
func (w *swap) returned() string {
	for n, m := range w.members {
		switch {
		case n >= int(w.status.first) && (m.claim.uid != 0 || m.pod.phase != absent):
			return "R8: something of a new member is left"
		case m.claim.aside != w.marks[n] && !m.claim.terminating && !w.hurt && !w.wiped:
			return "R8: a former volume is not as before"
		}
	}
	return ""
}

// replacing is the status with which a restore begins.
func (x *swapExplorer) replacing(w *swap, l swapLook, t swapDecision) swapStatus {
	op := x.operator
	s := x.next(l, t)
	s.former = swapFormer{latch: s.latch, first: s.first, chosen: s.chosen}
	if op.forgetsFormer {
		s.former.latch = 0
	}
	s.phase, s.restore, s.first = swapRestoring, l.status.restore, t.high
	if op.reusesFirst {
		s.first = s.former.first
	}
	s.next = s.first
	if !op.reusesNames {
		s.next += uint8(x.bound.firstSize(l.takesSurvivor(op)))
	}
	s.chosen = swapStored(t.step.Snapshot.ID())
	s.latch, s.remembered, s.intent, s.targets, s.planned = 0, 0, false, [swapMost]uint8{}, 0
	s.turn = w.status.turn + 1
	w.noted(s)
	w.asked[s.restore].snapshot = s.chosen
	for n, m := range w.members {
		w.marks[n] = m.claim.aside
	}
	return s
}

// reverting is the status with which the former members are those of the cluster again.
func (op swapCareless) reverting(l swapLook) swapStatus {
	s := l.status
	s.latch, s.first, s.chosen = s.former.latch, s.former.first, s.former.chosen
	s.phase, s.restore, s.former = swapNone, 0, swapFormer{}
	s.remembered, s.intent, s.targets = 0, false, [swapMost]uint8{}
	s.turn++
	return s
}

// next is the status that a pass reports.
func (x *swapExplorer) next(l swapLook, t swapDecision) swapStatus {
	s, op := l.status, x.operator
	s.latch = t.id
	if s.chosen == 0 {
		s.chosen = t.snapshot
	}
	if t.step.Action == Choose {
		s.chosen = swapStored(t.step.Snapshot.ID())
	}
	if t.step.Reason == Formed {
		s.latch = t.list
	}
	if s.latch != 0 {
		s.next, s.intent, s.targets = t.high, false, [swapMost]uint8{}
		if l.status.latch == 0 && s.first == 0 && !op.forgetsFirst {
			s.first = l.behindAside()
		}
	}
	if t.list != 0 {
		s.remembered = t.list
	}
	if x.bound.onLoss {
		x.setLoss(&s, l, t)
	}
	x.carryOut(&s, l, t)
	return s
}

// behindAside is the first ordinal behind those that were set aside.
func (l *swapLook) behindAside() uint8 {
	first := 0
	for n, g := range l.members {
		if g.claim.aside != 0 && !l.halfAside(n) {
			first = n + 1
		}
	}
	return uint8(first)
}

// carryOut goes on with the EtcdRestore that is carried out, or begins with the next (setRestore).
func (x *swapExplorer) carryOut(s *swapStatus, l swapLook, t swapDecision) {
	switch {
	case s.phase == swapNone || s.phase == swapRefused || s.phase == swapCompleted:
		if next := l.next(); next != 0 {
			s.phase, s.restore, s.former = swapPending, next, swapFormer{}
		}
	case s.phase == swapReverting:
		s.latch = 0
	case s.phase == swapRestoring && s.latch != 0:
		s.phase = swapCompleted
		s.carried |= 1 << l.asked[s.restore].name
	case s.phase == swapRestoring && l.deleted():
		s.phase = swapReverting
	case s.phase == swapRestoring:
	case l.deleted():
		s.phase, s.restore, s.planned = swapNone, 0, 0
	case t.refused:
		s.phase, s.planned = swapRefused, 0
		s.carried |= 1 << l.asked[s.restore].name
	case t.plan != 0:
		s.planned = t.plan
	}
}

// report writes the status, unless the EtcdCluster has changed since.
func (x *swapExplorer) report(w swap, l swapLook, t swapDecision, yield func(swapOutcome)) {
	done := string(t.step.Action) + " (" + string(t.step.Reason) + ")"
	if w.status != l.status {
		yield(swapOutcome{done: done + ", status refused", world: w})
		return
	}
	was := w.status
	w.status = x.next(l, t)
	w.noted(w.status)
	if t.list != 0 && t.list == was.latch {
		w.clock.over()
	}
	if w.status.phase == swapCompleted && was.phase != swapCompleted {
		w.asked[was.restore].done = true
		for n := range w.marks {
			w.marks[n] = 0
		}
	}
	violation := ""
	if st := w.status; st.phase == swapCompleted && was.phase != swapCompleted && st.latch != st.restored() {
		violation = "R9: a restore is called completed, and the cluster is not of its snapshot"
	}
	if st := w.status; st.phase == swapReverting && w.served == st.restored() {
		violation = "R3: a cluster is reverted that has served clients"
	}
	yield(swapOutcome{done: done, world: w, violation: violation})
}
