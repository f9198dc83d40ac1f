package membership

import (
	"fmt"
	"slices"
)

// swapLook is everything that an operator sees of a world at one time.
type swapLook struct {
	status  swapStatus
	asked   [swapRestores]swapRestore
	service bool
	search  swapSearch
	copy    swapCopy
	members [swapMost]swapGlimpse
	clock   swapClock // what the operator's own tells
	overdue bool
}

type swapGlimpse struct {
	claim  swapClaim
	pod    swapPod
	answer lineage // of etcd itself
	led    bool    // and it knows a leader
}

func (w *swap) look(size int) swapLook {
	l := swapLook{status: w.status, asked: w.asked, service: w.service, search: w.search, copy: w.copy}
	for n, m := range w.members {
		l.members[n] = swapGlimpse{claim: m.claim, pod: m.pod}
	}
	for uid := range l.asked {
		l.asked[uid].snapshot, l.asked[uid].noted = 0, false // nothing tells
	}
	l.clock = w.clock.told()
	w.ask(size, &l)
	return l
}

// ask etcd in the Pods that are there still.
func (w *swap) ask(size int, l *swapLook) {
	for n, m := range w.members {
		g := &l.members[n]
		g.answer, g.led = 0, false
		if m.pod.serves() && g.pod.phase >= starting && !g.pod.terminating && g.pod.told == m.pod.told {
			g.answer, g.led = m.disk, w.quorate(size, m.disk)
		}
	}
}

// isFormer reports whether a member is one of before, as package reconcile knows them (takeFormer).
func (l *swapLook) isFormer(n int, op swapCareless) bool {
	st := l.status
	lost := st.latch == 0 && st.phase != swapRestoring && st.phase != swapReverting
	if op.knowsFormerByRestore {
		lost = st.latch == 0 && st.phase == swapNone
	}
	return n < int(st.first) || lost && l.members[n].claim.aside != 0 && !l.halfAside(n)
}

// halfAside reports whether a volume of the same cluster was not set aside: the operator was
// interrupted.
func (l *swapLook) halfAside(n int) bool {
	return slices.ContainsFunc(l.members[:], func(g swapGlimpse) bool {
		return g.claim.uid != 0 && g.claim.aside == 0 && g.claim.record != 0 && g.claim.record == l.members[n].claim.record
	})
}

// deleted reports whether the EtcdRestore that is carried out was deleted.
func (l *swapLook) deleted() bool {
	p := l.status.phase
	return (p == swapPending || p == swapRestoring) && !l.asked[l.status.restore].there
}

// next is the EtcdRestore that can be carried out next; 0 where there is none.
func (l *swapLook) next() uint8 {
	for uid, r := range l.asked {
		if r.there && !r.done && l.status.carried&(1<<r.name) == 0 {
			return uint8(uid)
		}
	}
	return 0
}

// facts is the look in the terms of Plan.
func (l *swapLook) facts(b *swapBound, op swapCareless) (Desired, Observed) {
	st := l.status
	d := Desired{Size: b.size, Version: etcd36, Token: "1", Base: int(st.first)}
	if st.phase == swapRestoring {
		d.Token = fmt.Sprint(st.restore)
	}
	asks := st.phase == swapPending && st.latch != 0
	d.Restore = st.phase == swapRestoring || asks
	if st.phase == swapCompleted && b.discards&(1<<st.restore) != 0 {
		d.DiscardFormer = uid(st.restore)
	}
	o := Observed{ClusterID: st.latch.clusterID(), Snapshot: swapSnapshot(st.chosen), Remembered: st.remembered != 0}
	if st.phase == swapPending || st.phase == swapRestoring || st.phase == swapReverting {
		o.InPlace = InPlace{Name: fmt.Sprint(st.restore), UID: uid(st.restore), Begun: st.phase == swapRestoring, Reverted: st.phase == swapReverting, Anyway: b.anyway}
		if st.phase == swapPending && l.deleted() {
			o.InPlace = InPlace{}
		}
	}
	o.InPlace.Suspended = asks && o.InPlace.Name != "" && l.asked[st.restore].held
	o.Search.Begun = d.Restore && l.search.is(st, op)
	if o.Search.Begun {
		o.Search.Found = inStore(l.search.found)
	}
	if b.onLoss {
		l.lossFacts(b, op, &d, &o)
	}
	o.Loss.Another = l.next() != 0 && !op.loss.knowsNoOther
	l.roster(b.size, op, &o)
	if op.loss.awayIsGone {
		o = each(o, func(i *Instance) {
			if i.Pod.Away {
				i.Volume = Volume{}
			}
		})
	}
	survivor := l.takesSurvivor(op)
	if survivor {
		o.Copy = l.copied(op)
	}
	if survivor && asks {
		l.survivor(b, &o)
	}
	if asks && !op.choosesAnew {
		l.asPlanned(survivor, &o)
	}
	return d, o
}

// roster puts the members that are known from anywhere among the facts.
func (l *swapLook) roster(size int, op swapCareless, o *Observed) {
	st := l.status
	var known [swapMost]bool
	var list lineage
	for n, g := range l.members {
		if l.isFormer(n, op) {
			continue
		}
		known[n] = g.claim.uid != 0 || g.pod.phase != absent || st.targets[n] != 0 || st.remembered.has(size, n)
		if g.led && list == 0 {
			list = g.answer
		}
	}
	if list != 0 {
		o.Reach = ReachQuorum
		for n := list.base(); n < list.base()+list.size(size); n++ {
			known[n] = true
			o.Members = append(o.Members, Member{ID: list.memberID(size, n), Name: name(n)})
		}
	}
	if st.intent {
		o.Bootstrapping = map[string]string{}
	}
	for n, g := range l.members {
		if l.isFormer(n, op) {
			if g.claim.uid != 0 || g.pod.phase != absent {
				o.Former = append(o.Former, Instance{Name: name(n), Ordinal: n, Volume: g.volume(size, n), Pod: l.podFacts(n)})
			}
			continue
		}
		if st.targets[n] != 0 {
			o.Bootstrapping[name(n)] = uid(st.targets[n])
		}
		if known[n] {
			o.Instances = append(o.Instances, l.instance(size, n, list, o.Reach))
		}
	}
	if formed := o.Formed(); !formed || !o.Remembered { // as package reconcile has it (roster.expect)
		first := size
		if (st.phase == swapRestoring || st.phase == swapReverting) && memberOf(st.chosen) >= 0 {
			first = 1
		}
		for n := range l.members {
			expected := !formed && n >= int(st.first) && n < int(st.first)+first
			for _, g := range o.Instances {
				expected = expected || g.Volume.First.Has(n)
			}
			if expected && !known[n] && !l.isFormer(n, op) {
				known[n] = true
			}
		}
		o.Instances = nil
		for n := range l.members {
			if known[n] && !l.isFormer(n, op) {
				o.Instances = append(o.Instances, l.instance(size, n, list, o.Reach))
			}
		}
	}
	for _, i := range o.Instances {
		if i.Endpoint.Answered() {
			o.Reach = max(o.Reach, ReachSome)
		}
	}
	for n := range swapMost {
		o.Fresh = append(o.Fresh, name(swapMost+n))
	}
}

func (l *swapLook) instance(size, n int, list lineage, reach Reach) Instance {
	g := l.members[n]
	i := Instance{Name: name(n), Ordinal: n, ID: l.status.remembered.memberID(size, n), Volume: g.volume(size, n), Pod: l.podFacts(n)}
	if list.has(size, n) {
		i.ID = list.memberID(size, n)
	}
	if i.ID == 0 && (reach == ReachQuorum || l.status.remembered == 0) {
		i.ID = i.Volume.MemberID
	}
	if at := g.answer.memberID(size, n); at != 0 && (i.ID == 0 || i.ID == at) {
		i.Endpoint = Endpoint{ClusterID: g.answer.clusterID(), MemberID: at, Version: etcd36}
		i.Hash = Hash{Revision: 1}
		if g.led {
			i.Endpoint.Leader = 0xff
		}
	}
	return i
}

func (g swapGlimpse) volume(size, n int) Volume {
	if g.claim.uid == 0 {
		return Volume{}
	}
	v := Volume{
		UID: uid(g.claim.uid), Terminating: g.claim.terminating, Aside: uid(g.claim.aside), Version: etcd36,
		ClusterID: g.claim.record.clusterID(), MemberID: g.claim.record.memberID(size, n),
	}
	if f := g.claim.first; f != 0 {
		v.First = First{Token: fmt.Sprint(f.token()), Size: f.size(size), Base: f.base(), Snapshot: swapSnapshot(g.claim.snapshot).ID()}
	}
	return v
}

func (l *swapLook) podFacts(n int) Pod {
	p := l.members[n].pod
	if p.phase == absent {
		return Pod{}
	}
	f := Pod{UID: "pod", Terminating: p.terminating, NeverRan: p.phase == pending, Restoring: p.restores && !p.restored}
	switch {
	case p.phase == pending && f.Restoring && p.snapshot != 0:
		f.Problem = "cannot be restored: the snapshot cannot be read"
	case p.phase == pending:
		f.Problem = "cannot be scheduled"
	case p.phase == exited:
		f.Problem = "exited with code 1"
	}
	if p.off {
		f.Problem, f.Damaged, f.Away, f.AwayLong = "is on a node that does not answer", true, true, l.overdue
	}
	f.Empty, f.EmptyLong = p.empty(), p.emptyLong
	f.Overdue = f.Problem != "" && l.overdue
	return f
}
