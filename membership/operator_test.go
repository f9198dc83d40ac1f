package membership

import "slices"

// The model of the operator around Plan: the effects of a step, one by one, as package reconcile
// has them. Between any two of them it may crash.

// decision is a Step in the terms of the model.
type decision struct {
	step    Step
	members [most]bool
	formed  bool
	id      epoch
	ids     [most]epoch
	choice  uint8 // for status.restored, where that has none
	again   bool  // the first start was written down before
}

func (p *planner) decide(l look) decision {
	d, o := l.facts()
	if p.see != nil {
		o = p.see(o)
	}
	t := decision{step: plan(p.phases, d, o), formed: o.Formed(), id: epoch(o.ID()), choice: storedAs(first(d, o).Snapshot), again: o.Bootstrapping != nil}
	if t.step.Action == Choose {
		t.choice = storedAs(t.step.Snapshot.ID())
	}
	for _, i := range o.Instances {
		t.members[i.Ordinal] = t.step.Acts() && !goesOnElsewhere(t.step) && slices.Contains(t.step.Members, i.Name)
		if o.Remembered || o.Reach == ReachQuorum {
			t.ids[i.Ordinal] = epoch(i.ID >> 8) // what only a volume says does not tell that these are all
		}
	}
	return t
}

// goesOnElsewhere: what changes the members has a model of its own. Here there are only those of
// the first start, and such a step has no effect: where it comes to rest, a size is still to be
// reached, or a member to be replaced.
func goesOnElsewhere(s Step) bool {
	switch s.Action {
	case Provision:
		return s.First == First{}
	case Stop:
		return s.Reason == Retiring
	case AddLearner, Join, Promote, Remove, MoveLeader, Disarm, Discard:
		return true
	default:
		return false
	}
}

// outcome is one way in which a pass can go.
type outcome struct {
	done      string // how far it came
	who       [most]bool
	world     world
	violation string
}

// careless are ways in which package reconcile could go wrong around a Plan that is right. The zero
// value is as it must be.
type careless struct {
	letsClientsInEarly  bool // as soon as the cluster has formed, and not only when every Pod is told to find its data
	reportsFailedRecord bool // sets status.clusterID though not every volume could be recorded
	bootstrapsFromCache bool // without another look at what it starts, past the cache
	appliesFirstPods    bool // over those that are there, and does not only create them
	provisionsFromCache bool // writes over a volume that it did not know
	startsFromCache     bool // without another look at the volumes
	forgetsToIntend     bool // creates first Pods before it has written down on which volumes
	choosesAgain        bool // writes over the snapshot that was chosen
	restoresNewest      bool // each member from what is the newest snapshot at the time
	restoresNothing     bool // the Pods have no init container
	startsBlank         bool // and etcd in them may start empty
	clearsNothing       bool // recreates a first member over whatever its etcd has left
	stopsRestoring      bool // tells Pods not to restore before the cluster has formed
	keepsRestoring      bool // never tells them, and lets clients in
}

// pass yields every way in which a pass that was decided on this look can go: complete, or ended by
// a crash after any of its effects, or by an error after which it still reports. Of effects that
// are carried out at the same time, any may be missing. same tells which Pods are still those of
// the look.
func (op careless) pass(w world, l look, t decision, same [most]bool, yield func(outcome)) {
	if t.step.Reason == Suspended || l.cluster.suspended {
		op.report(w, l, t, [most]bool{}, yield)
		return
	}
	crash := func(done string, who [most]bool, w world, violation string) {
		yield(outcome{done + ", then the operator crashes", who, w, violation})
	}
	if t.formed && !w.service && (op.letsClientsInEarly || l.cluster.latch != 0 && l.cluster.latch == l.list && l.fenced(op)) {
		w.service = l.cluster.token == w.cluster.token // that of an earlier EtcdCluster is collected with it
		crash("creates the client Service", [most]bool{}, w, "")
	}
	if t.step.Action == Find && !w.search.begun && l.cluster.token == w.cluster.token {
		w.search.begun = true
		crash("begins the search", [most]bool{}, w, "")
	}
	if t.step.Action == Bootstrap && !l.cluster.intent && !op.forgetsToIntend {
		if w.cluster != l.cluster {
			return // another writer was first: look again
		}
		l.cluster.intent = true
		for n := range t.step.First.Size {
			l.cluster.status[n].named, l.cluster.status[n].target = true, l.members[n].claim.uid
		}
		w.cluster = l.cluster
		crash("writes down the first start", [most]bool{}, w, "")
	}
	if t.step.Action == Bootstrap && !op.bootstrapsFromCache && !w.asSeen(l) {
		return // it would be decided otherwise now: look again
	}
	subsets(t.members, func(some [most]bool, all bool) {
		after, violation, conflict := w, "", false
		for n := range some {
			if !some[n] {
				continue
			}
			v, lost := op.effect(&after, l, t, n, same[n])
			violation, conflict = cmpOr(violation, v), conflict || lost
		}
		done := string(t.step.Action)
		if after != w || violation != "" {
			crash(done, some, after, violation)
		}
		switch {
		case conflict || violation != "" || !all && t.step.Action == Record && !op.reportsFailedRecord:
		case all:
			op.maintain(after, l, t, same, yield)
		default:
			op.report(after, l, t, some, yield)
		}
	})
}

// asSeen reports whether the objects are those of the look.
func (w *world) asSeen(l look) bool {
	for n, m := range w.members {
		if m.claim != l.members[n].claim || m.pod != l.members[n].pod {
			return false
		}
	}
	return w.cluster == l.cluster
}

// fenced: no Pod would start empty any more, and this is no view from before there were Pods.
// Clients are let in only then, and when etcd itself says that it is the cluster of the status.
func (l *look) fenced(op careless) bool {
	some := false
	for _, g := range l.members {
		if g.pod.blank || g.pod.snapshot != 0 && !op.keepsRestoring {
			return false
		}
		some = some || g.pod.phase != absent
	}
	return some
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// subsets of the named members, the empty one too, but not where all is the same.
func subsets(of [most]bool, yield func(some [most]bool, all bool)) {
	var names []int
	for n, in := range of {
		if in {
			names = append(names, n)
		}
	}
	for mask := range 1 << len(names) {
		var some [most]bool
		for bit, n := range names {
			some[n] = mask>>bit&1 == 1
		}
		yield(some, mask == 1<<len(names)-1)
	}
}

// effect of the step on one member. A conflict makes the operator look again.
func (op careless) effect(w *world, l look, t decision, n int, same bool) (violation string, conflict bool) {
	m, g := &w.members[n], l.members[n]
	if m.claim.replaced && slices.Contains([]Action{Provision, Bootstrap, Start, Record}, t.step.Action) && (m.claim == g.claim || op.startsFromCache) {
		return "S18: a volume that was restored is written on, or started", false
	}
	switch t.step.Action {
	case Provision:
		if m.claim.foreign || m.claim.terminating || m.claim != g.claim && !op.provisionsFromCache {
			return "", true
		}
		if m.claim.uid == 0 {
			violation = provisionedBesideData(w, l, n)
			m.made++
			m.claim.uid = m.made
		}
		if m.claim.record != g.claim.record {
			violation = "what a volume says of whose data it holds is overwritten"
		}
		m.claim.first, m.claim.record = begun(t.step.First), g.claim.record // an apply removes what it does not give
		m.claim.snapshot = storedAs(t.step.First.Snapshot)
	case Bootstrap:
		p := pod{phase: pending, told: begun(t.step.First), badImage: l.cluster.badImage, snapshot: storedAs(t.step.First.Snapshot)}
		if op.restoresNewest {
			p.snapshot = w.newest
		}
		p.restores, p.blank = p.snapshot != 0, p.snapshot == 0
		p.clears = p.blank && t.again && !op.clearsNothing
		if op.restoresNothing {
			p.restores, p.snapshot, p.blank = false, 0, op.startsBlank
		}
		if op.appliesFirstPods && m.pod.phase != absent && !m.pod.terminating && m.pod.told>>4 == p.told>>4 {
			m.pod.told, m.pod.blank, m.pod.badImage, m.pod.snapshot = p.told, p.blank, p.badImage, p.snapshot // the arguments cannot change, the annotations and the image can
			return bootstrappedAfterFormed(w, l), false
		}
		return bootstrappedAfterFormed(w, l), create(m, p)
	case Start:
		if m.claim != g.claim {
			return "", true
		}
		return "", create(m, pod{phase: pending, told: g.claim.first, badImage: l.cluster.badImage})
	case Record:
		if m.claim != g.claim {
			return "", true
		}
		m.claim.record = g.answer
	case Stop:
		comes := g.idle // it may have come up since the look: it has served nothing, and its data stays
		if w.cluster == l.cluster && w.cluster.size > 0 && same && m.pod.phase == up && !comes {
			violation = "S15: it stops a member that serves"
		}
		if same {
			w.kill(n)
		}
	case None, Wait, Stall:
	default:
		return "the step has an action that is not known", false
	}
	return violation, false
}

// create makes a Pod where there is none.
func create(m *instance, p pod) (conflict bool) {
	if m.pod.phase != absent {
		return true
	}
	m.pod = p
	return false
}

// maintain tells Pods what they must do at their next start.
func (op careless) maintain(w world, l look, t decision, same [most]bool, yield func(outcome)) {
	var stale [most]bool
	if t.step.Action != Record && t.step.Reason != ForeignObject {
		for n, g := range l.members {
			p := w.members[n].pod
			may := p.blank || p.snapshot != 0 && !op.keepsRestoring
			now := t.formed || op.stopsRestoring
			stale[n] = now && may && same[n] && p == g.pod && p.phase != absent && !p.terminating && !g.claim.terminating
		}
	}
	subsets(stale, func(some [most]bool, all bool) {
		after := w
		for n := range some {
			if some[n] {
				after.members[n].pod.blank, after.members[n].pod.snapshot = false, 0
			}
		}
		if all {
			op.report(after, l, t, t.members, yield)
		} else if after != w {
			yield(outcome{"tells Pods to find their data, then crashes", some, after, ""})
		}
	})
}

// report writes the status, unless the EtcdCluster has changed since.
func (op careless) report(w world, l look, t decision, who [most]bool, yield func(outcome)) {
	done := string(t.step.Action) + " (" + string(t.step.Reason) + ")"
	if w.cluster != l.cluster {
		yield(outcome{done + ", status refused", who, w, ""})
		return
	}
	c := &w.cluster
	violation := ""
	if c.latch == 0 && t.step.Reason != Formed {
		violation = inheritedFromDeleted(l, t.id)
	}
	switch {
	case c.chosen == 0, op.choosesAgain && t.choice != 0:
		c.chosen = t.choice
	}
	c.latch = t.id
	if t.step.Reason == Formed {
		c.latch = l.list
	}
	for n := range c.status {
		c.status[n].id = t.ids[n]
	}
	if c.latch != 0 {
		w.formed = c.latch
		c.intent = false
		for n := range c.status {
			c.status[n].named, c.status[n].target = false, 0
		}
	}
	yield(outcome{done, who, w, violation})
}

// provisionedBesideData and bootstrappedAfterFormed judge decisions that were made on fresh facts.
// A stale one is bound to be wrong at times, and what matters then is that nothing comes of it.

func provisionedBesideData(w *world, l look, of int) string {
	data := false
	for n, m := range w.members {
		if w.cluster != l.cluster || n != of && m.claim != l.members[n].claim {
			return ""
		}
		data = data || m.disk != 0
	}
	if data {
		return "a volume is provisioned while another one has data"
	}
	return ""
}

func bootstrappedAfterFormed(w *world, l look) string {
	if w.cluster == l.cluster && w.cluster.latch != 0 {
		return "S3: bootstrap after the cluster has formed"
	}
	return ""
}

// inheritedFromDeleted: an EtcdCluster that was applied again takes over its predecessor's data
// where it is retained, and not where it is being deleted.
func inheritedFromDeleted(l look, id epoch) string {
	for _, g := range l.members {
		if id == 0 || g.claim.record == id && !g.claim.terminating {
			return ""
		}
	}
	return "the status takes over a cluster whose volumes are all being deleted"
}
