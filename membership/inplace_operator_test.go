package membership

import "slices"

// The model of the operator around Plan while a cluster is restored in place: the effects of a
// pass, one by one, as package reconcile has them. Between any two of them it may crash.

// swapDecision is a Step in the terms of the model, with what else a pass goes by.
type swapDecision struct {
	step      Step
	members   [swapMost]bool
	instances [swapMost]bool
	formed    bool
	id, list  lineage
	waits     string
	refused   bool
	snapshot  uint8 // as the volumes have it
	plan      uint8 // the snapshot that a plan would have; 0: there is none, or none is told
	high      uint8 // the ordinal behind all that were seen
	fenced    bool  // no Pod would be restored any more
	lost      bool  // the majority
	made      bool  // an EtcdRestore for that
}

// swapPlanner is what is explored: the rules, and the operator that carries out what they decide.
type swapPlanner struct {
	phases   []Phase
	operator swapCareless
}

func (p *swapPlanner) decide(l swapLook, b *swapBound) swapDecision {
	d, o := l.facts(b, p.operator)
	t := swapDecision{step: plan(p.phases, d, o), formed: o.Formed(), id: lineage(o.ID()), refused: InPlaceRefused(o), fenced: true, high: l.status.next}
	t.waits, _ = InPlaceWaits(d, o)
	if t.waits == "" && o.InPlace.Suspended && l.status.planned == 0 {
		t.plan = swapStored(o.Search.Found.ID())
	}
	t.lost, t.made = MajorityLost(o), o.Loss.Made
	if o.Reach == ReachQuorum {
		t.list = lineage(o.Members[0].ID >> 8)
	}
	for _, i := range slices.Concat(o.Instances, o.Former) {
		t.members[i.Ordinal] = t.step.Acts() && !swapGoesOnElsewhere(t.step) && slices.Contains(t.step.Members, i.Name)
	}
	for _, i := range o.Instances {
		t.instances[i.Ordinal] = true
		t.high = max(t.high, uint8(i.Ordinal+1))
		t.fenced = t.fenced && l.members[i.Ordinal].pod.snapshot == 0
		if i.Volume.Stays() && t.snapshot == 0 {
			t.snapshot = swapStored(i.Volume.First.Snapshot)
		}
	}
	return t
}

// swapGoesOnElsewhere: what changes the members of a formed cluster has a model of its own.
func swapGoesOnElsewhere(s Step) bool {
	switch s.Action {
	case Provision:
		return s.First == First{}
	case AddLearner, Join, Promote, Remove, MoveLeader, Disarm:
		return true
	default:
		return false
	}
}

// swapOutcome is one way in which a pass can go.
type swapOutcome struct {
	done      string
	who       [swapMost]bool
	world     swap
	violation string
	flight    swapFlight // a request that has yet to arrive
}

// swapCareless are ways in which package reconcile could go wrong around a Plan that is right. The
// zero value is as it must be.
type swapCareless struct {
	knowsFormerByRestore bool // a status that has an EtcdRestore again tells of no former members
	forgetsFirst         bool // where the latch comes from the volumes, their ordinals do not
	reusesNames          bool // what was begun and reverted does not move nextOrdinal on
	reusesFirst          bool // new members get the ordinals of before
	leavesServiceOpen    bool // while the members are replaced
	opensServiceUnseen   bool // on the word of an old EtcdCluster
	letsClientsInEarly   bool // before the latch is written, and every Pod told to find its data
	keepsRestoring       bool // never tells them, and lets clients in
	replacesFromCache    bool // without another look, and whatever the status says by now
	startsFromCache      bool // without another look at the claim
	marksFromCache       bool // sets aside and readmits without another look
	forgetsFormer        bool // status.restore does not keep the cluster ID of before
	takesAnyCopy         bool // the Job of another copy is taken for that of this one
	takesEarlierCopy     bool // the Job that has copied to an earlier volume of the member is taken for that of this one
	expectsNothing       bool // etcd is started on whatever the volume has
	keepsCopying         bool // the Job of a copy goes on when the restore is taken back
	choosesAnew          bool // what a plan has told is not kept to
	leavesCopy           bool // the Job of an earlier copy goes on when another restore has begun
	takesAnySource       bool // that of any EtcdRestore is taken for that of the one that is carried out
	copiesOn             bool // a Job of a copy that has yet to start goes on when the new members have formed
	loss                 swapLossCareless
}

// pass yields every way in which a pass that was decided on this look can go.
func (x *swapExplorer) pass(w swap, l swapLook, t swapDecision, same [swapMost]bool, yield func(swapOutcome)) {
	op := x.operator
	crash := func(done string, who [swapMost]bool, w swap, violation string) {
		yield(swapOutcome{done: done + ", then the operator crashes", who: who, world: w, violation: violation})
	}
	if w = x.applied(w, l, t); w.service != l.service {
		crash("applies the Service", [swapMost]bool{}, w, "")
	}
	if l.deleted() && l.status.phase == swapPending && w.search.of == l.status.restore {
		w.search = swapSearch{}
	}
	forms := l.status.phase == swapRestoring && (t.formed || t.step.Reason == Formed)
	stops := l.takesSurvivor(op) && (l.status.phase == swapReverting && !op.keepsCopying || forms && !w.copy.done && !op.copiesOn)
	if w.copy.of != 0 && (stops || l.bare() && !t.formed && !op.leavesCopy) {
		w.stopCopy()
		crash("deletes the Job of the copy", [swapMost]bool{}, w, "")
	}
	switch t.step.Action { //nolint:exhaustive // the others change no status here
	case CopyData:
		if !x.confirmed(&w, l, t) {
			return
		}
		job := newCopy(l, t)
		if l.status.phase != swapRestoring {
			yield(swapOutcome{done: "CopyData", world: w, violation: "R5: data is copied for no restore"})
			return
		}
		if w.copy.of == 0 {
			yield(swapOutcome{done: "CopyData is asked for", world: w, flight: swapFlight{action: CopyData, copy: job}})
		}
		job.begin(&w)
		crash("CopyData", [swapMost]bool{}, w, "")
	case Find:
		if !l.takesSurvivor(op) && !w.search.is(l.status, op) {
			w.search = swapSearch{of: l.status.restore, named: named(l.status, op)}
			crash("begins the search", [swapMost]bool{}, w, "")
		}
	case Recover:
		x.recover(w, l, t, same, yield)
		return
	case Replace, Revert:
		if !x.confirmed(&w, l, t) && (!op.replacesFromCache || t.step.Action != Replace) {
			return
		}
		violation := ""
		if t.step.Action == Replace {
			violation = cmpOr(w.unplanned(l.status, t), w.begunBySelf(x.bound.size))
			w.status = x.replacing(&w, l, t)
		} else {
			w.status, violation = op.reverting(l), w.returned()
		}
		yield(swapOutcome{done: string(t.step.Action), world: w, violation: violation})
		return
	case Bootstrap:
		if !l.status.intent {
			if w.status != l.status {
				return
			}
			l.status.intent = true
			for n := range swapMost {
				if t.step.First.Has(n) {
					l.status.targets[n] = l.members[n].claim.uid
					l.status.next = max(l.status.next, uint8(n+1))
				}
			}
			w.status = l.status
			crash("writes down the first start", [swapMost]bool{}, w, "")
		}
		if !x.confirmed(&w, l, t) {
			return
		}
	case StopFormer, SetAside, Readmit, DiscardFormer, Discard:
		careless := op.marksFromCache && (t.step.Action == SetAside || t.step.Action == Readmit)
		if !careless && !x.confirmed(&w, l, t) {
			return
		}
	case Stop:
		if !l.status.intent && w.status != l.status {
			return
		}
	}
	x.each(w, l, t, same, yield)
}

// each carries the step out on its members, of which some may be missing: all at the same time, and
// the operator may crash.
func (x *swapExplorer) each(w swap, l swapLook, t swapDecision, same [swapMost]bool, yield func(swapOutcome)) {
	swapSubsets(t.members, func(some [swapMost]bool, all bool) {
		after, violation, conflict := w, "", false
		for n := range some {
			if some[n] {
				v, lost := x.effect(&after, l, t, n, same[n])
				violation, conflict = cmpOr(violation, v), conflict || lost
			}
		}
		done := string(t.step.Action)
		if after != w || violation != "" {
			yield(swapOutcome{done: done + ", then the operator crashes", who: some, world: after, violation: violation})
		}
		switch {
		case conflict || violation != "" || !all && t.step.Action == Record:
		case all:
			x.maintain(after, l, t, same, yield)
		}
	})
	for n, in := range t.members {
		if f := inFlight(l, t, n); in && f.action != "" && (t.step.Action != Start || w.members[n].claim == l.members[n].claim) {
			yield(swapOutcome{done: string(t.step.Action) + " is asked for", world: w, flight: f})
		}
	}
}

// confirmed reports whether another look, past the cache, leads to the same step.
func (x *swapExplorer) confirmed(w *swap, l swapLook, t swapDecision) bool {
	if w.status != l.status {
		return false
	}
	now := w.look(x.bound.size)
	now.overdue = l.overdue
	again := x.decide(now)
	return again.members == t.members && again.step.String() == t.step.String() && again.step.First == t.step.First
}

// applied is the world after the Service for clients was applied: as it was seen, or not at all.
func (x *swapExplorer) applied(w swap, l swapLook, t swapDecision) swap {
	op, st := x.operator, l.status
	shut := (st.phase == swapRestoring || st.phase == swapReverting) && !op.leavesServiceOpen
	admits := st.latch != 0 && t.list != 0 && (t.fenced || op.keepsRestoring)
	if op.letsClientsInEarly {
		admits = t.list != 0 && st.phase != swapReverting
		shut = shut && !admits
	}
	opens := (admits || l.service) && !shut
	if op.opensServiceUnseen || w.service == l.service && (w.status == st || opens == w.service) {
		w.service = opens
	}
	return w
}

func swapSubsets(of [swapMost]bool, yield func(some [swapMost]bool, all bool)) {
	var names []int
	for n, in := range of {
		if in {
			names = append(names, n)
		}
	}
	for mask := range 1 << len(names) {
		var some [swapMost]bool
		for bit, n := range names {
			some[n] = mask>>bit&1 == 1
		}
		yield(some, mask == 1<<len(names)-1)
	}
}

// maintain tells Pods of a cluster that has formed what they must do at their next start.
func (x *swapExplorer) maintain(w swap, l swapLook, t swapDecision, same [swapMost]bool, yield func(swapOutcome)) {
	var stale [swapMost]bool
	if t.step.Action != Record && t.formed && !x.operator.keepsRestoring {
		for n, g := range l.members {
			p := w.members[n].pod
			stale[n] = t.instances[n] && p.snapshot != 0 && same[n] && p == g.pod && !p.terminating && !g.claim.terminating
		}
	}
	swapSubsets(stale, func(some [swapMost]bool, all bool) {
		after := w
		for n := range some {
			if some[n] {
				after.members[n].pod.snapshot = 0
			}
		}
		if all {
			x.report(after, l, t, yield)
		} else if after != w {
			yield(swapOutcome{done: "tells Pods to find their data, then crashes", who: some, world: after})
		}
	})
}
