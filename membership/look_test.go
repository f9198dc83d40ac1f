package membership

import "fmt"

// look is everything that an operator sees of a world at one time.
type look struct {
	cluster cluster
	search  search
	restore bool // spec.bootstrap.restore
	members [most]glimpse
	list    epoch // whose member list was read linearizably
	overdue bool
	ready   [most]bool // members that serve, as their kubelets find, where etcd cannot be reached
}

type glimpse struct {
	claim  claim
	pod    pod
	answer epoch // of etcd itself
	led    bool  // and it knows a leader
	idle   bool  // it runs for long, and does not serve
}

func (w *world) look() look {
	l := look{cluster: w.cluster, search: w.search, restore: w.newest != 0}
	for n, m := range w.members {
		l.members[n] = glimpse{claim: m.claim, pod: m.pod}
	}
	w.ask(&l, every)
	return l
}

var every = [most]bool{true, true, true, true, true}

// ask etcd. A Pod that is not there any more does not answer, and the next one of its name has
// another address. One that is being stopped is not asked (reconcile.listens).
func (w *world) ask(l *look, same [most]bool) {
	l.list = 0
	for n, m := range w.members {
		g := &l.members[n]
		g.answer, g.led = 0, false
		g.idle = m.mute && m.pod.phase == starting && g.pod.phase >= starting && !g.pod.terminating && same[n] && !w.answers(n)
		if m.pod.phase != up || g.pod.phase < starting || g.pod.terminating || !same[n] {
			continue
		}
		g.answer, g.led = m.disk, w.quorate(m.disk)
		if g.led && l.list == 0 {
			l.list = m.disk
		}
	}
}

var etcd36 = Version{3, 6, 16}

func name(n int) string { return fmt.Sprintf("m-%d", n) }

// facts is the look in the terms of Plan.
func (l *look) facts() (Desired, Observed) {
	d := Desired{Size: int(l.cluster.size), Version: etcd36, Suspended: l.cluster.suspended, Token: fmt.Sprint(l.cluster.token), Restore: l.restore}
	o := Observed{ClusterID: l.cluster.latch.clusterID(), Snapshot: inStore(l.cluster.chosen)}
	o.Search = Search{Begun: l.search.begun, Found: inStore(l.search.found)}
	var known [most]bool
	wanted := d.Size
	for n, g := range l.members {
		r := l.cluster.status[n]
		known[n] = g.claim.uid != 0 || g.pod.phase != absent || r.id != 0 || r.named || n < l.list.size()
		wanted = max(wanted, g.claim.first.size())
		if g.answer != 0 {
			o.Reach = max(o.Reach, ReachSome)
		}
		if r.named {
			if o.Bootstrapping == nil {
				o.Bootstrapping = map[string]string{}
			}
			o.Bootstrapping[name(n)] = uid(r.target)
		}
	}
	for _, r := range l.cluster.status {
		o.Remembered = o.Remembered || r.id != 0
	}
	for n := range l.list.size() {
		o.Reach = ReachQuorum
		o.Members = append(o.Members, Member{ID: l.list.memberID(n), Name: l.list.memberName(n)})
	}
	for n, g := range l.members {
		if n >= wanted && !known[n] {
			continue
		}
		i := Instance{Name: name(n), Ordinal: n, ID: l.cluster.status[n].id.memberID(n), Volume: g.volume(n), Pod: l.podFacts(n)}
		if n < l.list.size() && l.list != alien {
			i.ID = l.list.memberID(n)
		}
		if i.ID == 0 && (o.Reach == ReachQuorum || !o.Remembered) { // as package reconcile has it (roster.identify)
			i.ID = i.Volume.MemberID
		}
		if g.answer != 0 {
			i.Endpoint = Endpoint{ClusterID: g.answer.clusterID(), MemberID: g.answer.memberID(n), Version: etcd36}
			i.Hash = Hash{Revision: 1} // all data is right here
		}
		if g.led {
			i.Endpoint.Leader = 0xff // it does not matter which
		}
		o.Instances = append(o.Instances, i)
	}
	for n := range most {
		o.Fresh = append(o.Fresh, name(len(o.Instances)+n))
	}
	return d, o
}

// inStore is a snapshot in the store, and storedAs the inverse of its ID.
func inStore(n uint8) Snapshot {
	if n == 0 {
		return Snapshot{}
	}
	return Snapshot{Name: fmt.Sprint(n), SHA256: "sum"}
}

func storedAs(id string) uint8 {
	if id == "" {
		return 0
	}
	return id[len(id)-1] - '0'
}

func uid(u uint8) string {
	if u == 0 {
		return ""
	}
	return fmt.Sprintf("uid-%d", u)
}

func (g glimpse) volume(n int) Volume {
	if g.claim.uid == 0 {
		return Volume{}
	}
	first := g.claim.first.first()
	first.Snapshot = inStore(g.claim.snapshot).ID()
	return Volume{
		UID: uid(g.claim.uid), Terminating: g.claim.terminating, Foreign: g.claim.foreign, Replaced: g.claim.replaced, First: first,
		ClusterID: g.claim.record.clusterID(), MemberID: g.claim.record.memberID(n), Version: etcd36,
	}
}

func (l *look) podFacts(n int) Pod {
	p := l.members[n].pod
	if p.phase == absent {
		return Pod{}
	}
	f := Pod{UID: "pod", Terminating: p.terminating, NeverRan: p.phase == pending, Outdated: p.badImage != l.cluster.badImage, Unfenced: p.blank, Restoring: p.restores && !p.restored}
	switch {
	case p.phase == pending && p.badImage:
		f.Problem = "cannot pull the image"
	case p.phase == pending:
		f.Problem = "cannot be scheduled"
	case p.phase == exited:
		f.Problem = "exited with code 1"
	case p.phase == ended:
		f.Problem, f.Ended = "was evicted", true
	}
	f.Overdue = f.Problem != "" && l.overdue
	f.Cleared, f.Idle, f.IdleLong, f.UnreadyLong = p.clears, l.members[n].idle, l.members[n].idle, l.members[n].idle && l.overdue
	f.Ready, f.ReadyLong = l.ready[n], l.ready[n] && l.overdue
	return f
}
