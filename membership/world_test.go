package membership

import (
	"fmt"
	"strings"
)

// The model of what surrounds Plan: the objects in the API server, the kubelets, etcd's processes
// and their disks, and the clients. It is small on purpose: every field is there because some
// counterexample needs it.

// most members that a model has.
const most = 5

// epoch is the identity of an etcd cluster, as etcd hashes it from the arguments of the first
// start: token and size. Two starts with the same arguments get the same cluster ID and the same
// member IDs, which is what makes amnesia possible.
type epoch uint8

// alien is the data of some other cluster, on a volume that was restored from elsewhere.
const alien epoch = 3<<4 | 1

func begun(f First) epoch {
	if f.Size == 0 {
		return 0
	}
	return epoch(f.Token[0]-'0')<<4 | epoch(f.Size)
}

// memberName is what etcd's own list has: the name of the first start. Those of another cluster
// mean nothing here.
func (e epoch) memberName(n int) string {
	if e == alien {
		return "elsewhere-0"
	}
	return name(n)
}

func (e epoch) first() First {
	if e == 0 {
		return First{}
	}
	return First{Token: string(rune('0' + e>>4)), Size: e.size()}
}

func (e epoch) size() int { return int(e & 15) }

func (e epoch) clusterID() ID { return ID(e) }

func (e epoch) memberID(n int) ID {
	if e == 0 {
		return 0
	}
	return ID(e)<<8 | ID(n+1)
}

func (e epoch) bit() uint16 { return 1 << (3*(e>>4-1) + (e&15)/2) }

// world is the truth, of which an operator sees a look.
type world struct {
	cluster cluster
	service bool  // clients can reach the cluster
	formed  epoch // the cluster that has formed, as the status has said at some time
	acked   bool  // it has acknowledged a write
	newest  uint8 // snapshot in the store, from which the cluster is to start; 0: it is to start empty
	search  search
	members [most]instance
}

// search is the Job that looks for a snapshot.
type search struct {
	begun bool
	found uint8 // 0 while there is no result
}

// cluster is the EtcdCluster.
type cluster struct {
	size      uint8
	suspended bool
	badImage  bool
	token     uint8 // its UID

	latch  epoch // status.clusterID
	intent bool  // status.operation is a first start
	chosen uint8 // status.restored
	status [most]remembered
}

// remembered is what the status has of one member.
type remembered struct {
	id     epoch // of status.members
	target uint8 // UID of its volume in status.operation
	named  bool  // it is a target of status.operation
}

type instance struct {
	claim claim
	made  uint8 // how many volumes it has had
	pod   pod

	disk  epoch  // whose data is on the volume; 0: it is blank
	from  uint8  // the snapshot that it was restored from; 0: it began empty
	holds bool   // the acknowledged write is among it
	wiped bool   // it was wiped before any write was acknowledged
	mute  bool   // its etcd has ended before it had voted, and elects no leader with what it has left
	had   uint16 // all epochs in which this member has ever had data
}

type claim struct {
	uid         uint8 // 0: there is none
	terminating bool
	foreign     bool
	record      epoch // the annotations about its data
	first       epoch // the annotation about its first start
	snapshot    uint8 // the annotation about what it is restored from
	replaced    bool  // it is another object than the one that these were written on
}

type pod struct {
	phase       phase
	terminating bool
	blank       bool  // told --initial-cluster-state=new: with an empty volume it starts empty
	told        epoch // its initial cluster and token
	badImage    bool
	clears      bool  // it has an init container that removes what an etcd has left that has not voted
	restores    bool  // it has an init container, which is done
	restored    bool  // since the Pod has been on its node
	snapshot    uint8 // that this is told to restore from, where there is no data; 0: it is told to do nothing
}

type phase uint8

const (
	absent   phase = iota
	pending        // no image, or no volume
	starting       // etcd runs and does not answer yet
	up
	exited // etcd has found no data and no cluster to join
	ended  // evicted: it stays, and never runs again
)

func (p pod) runs() bool { return p.phase == starting || p.phase == up }

// quorate reports whether the members of that epoch that run could elect a leader.
func (w *world) quorate(e epoch) bool {
	n := 0
	for _, m := range w.members {
		if m.pod.phase == up && m.disk == e {
			n++
		}
	}
	return e != 0 && n >= Quorum(e.size())
}

// launch starts the container of a Pod, for the first time or again. It returns what must never
// happen. A disk that is wiped under a Pod of the first start is forgiven until the first write.
func (w *world) launch(n int, wiped bool) (violation string) {
	m := &w.members[n]
	if m.mute && m.pod.clears && m.pod.blank && m.pod.phase == pending {
		m.disk, m.mute = 0, false
	}
	switch {
	case m.disk != 0:
		m.pod.phase = starting // whatever it is told, etcd goes on with the data that it finds
	case !m.pod.blank:
		m.pod.phase = exited // the fence: told to join a cluster of which it knows no member
	default:
		e := m.pod.told
		if m.had&e.bit() != 0 && w.matters(e, n) && (w.acked || !wiped) {
			violation = "S2: a member starts empty under an identity that had data"
		}
		m.pod.phase, m.disk, m.holds, m.had = starting, e, false, m.had|e.bit()
	}
	return violation
}

// restore runs the init container of a Pod. An agent that finds data leaves it alone, and fails
// where that is of another snapshot. What was wiped before the first write is forgiven, as in
// launch.
func (w *world) restore(n int) (violation string, done bool) {
	m := &w.members[n]
	switch e := m.pod.told; {
	case m.pod.snapshot == 0:
	case m.disk != 0 && m.from != m.pod.snapshot:
		return "", false
	case m.disk == 0:
		if m.had&e.bit() != 0 && w.matters(e, n) && (w.acked || !m.wiped) {
			violation = "S2: a member is restored under an identity that had newer data"
		}
		m.disk, m.from, m.holds, m.had = e, m.pod.snapshot, false, m.had|e.bit()
	}
	m.pod.restored = true
	return violation, true
}

// answers reports whether an etcd that starts comes to answer. One that has not voted takes itself
// for a member of nothing, until it has a vote for one that has, which then sends it all.
func (w *world) answers(n int) bool {
	m := &w.members[n]
	running, voted := 0, false
	for _, o := range w.members {
		if o.pod.runs() && o.disk == m.disk {
			running, voted = running+1, voted || !o.mute
		}
	}
	return m.pod.phase == starting && (!m.mute || voted && running >= Quorum(m.disk.size()))
}

// matters reports whether anything else is left of a cluster, or it has served: otherwise nothing
// tells that it begins again.
func (w *world) matters(e epoch, but int) bool {
	for n, m := range w.members {
		if n != but && m.disk == e {
			return true
		}
	}
	return w.formed == e
}

// kill deletes a Pod. One that answers takes its time to stop.
func (w *world) kill(n int) {
	if p := &w.members[n].pod; p.phase == up {
		p.terminating = true
	} else if p.phase != absent {
		w.vanish(n)
	}
}

// vanish removes a Pod that is terminating, and the volume with it that is.
func (w *world) vanish(n int) {
	m := &w.members[n]
	m.pod = pod{}
	if m.claim.terminating {
		m.claim, m.disk, m.from, m.holds, m.wiped, m.mute = claim{}, 0, 0, false, false, false
	}
	w.consent()
}

// consent: a user deleted the EtcdCluster, and then every trace that it had formed went too. What
// begins now is new.
func (w *world) consent() {
	if w.cluster.token == 1 || w.cluster.latch != 0 {
		return
	}
	for _, m := range w.members {
		if m.claim.record != 0 && m.claim.record == w.formed {
			return
		}
	}
	w.formed, w.acked = 0, false
}

// broken is the invariant that the world breaks, if any.
func (w *world) broken() string {
	var running epoch
	var snapshot uint8
	lacking := 0
	for _, m := range w.members {
		if m.pod.runs() && w.newest != 0 && m.disk != alien && m.from == 0 {
			return "S20: a member runs without the data of the snapshot"
		}
		if m.from != 0 {
			if snapshot != 0 && m.from != snapshot {
				return "S21: members are restored from different snapshots"
			}
			snapshot = m.from
		}
		if m.pod.runs() && !m.pod.terminating {
			if running != 0 && m.disk != running {
				return "S12: two cluster IDs run under one name"
			}
			running = m.disk
		}
		if w.acked && m.disk == w.formed && !m.holds && !m.claim.replaced {
			lacking++
		}
	}
	switch {
	case w.acked && lacking >= Quorum(w.formed.size()):
		return "S1: a quorum lacks an acknowledged write"
	case w.formed != 0 && w.service && w.quorate(running) && running != w.formed:
		return "S12: an empty cluster serves in place of one that had data"
	default:
		return ""
	}
}

// damaged reports whether something was lost that only a person can bring back.
func (w *world) damaged() bool {
	for n, m := range w.members {
		r := w.cluster.status[n]
		if m.mute && m.pod.clears {
			return true // twice is no accident: a person is to look, and to delete the Pod
		}
		if m.claim.foreign || m.claim.replaced || m.disk == alien || m.claim.terminating || m.had != 0 && m.disk == 0 || m.claim.record != 0 && m.claim.record != m.disk || w.cluster.intent && r.named && r.target != m.claim.uid {
			return true
		}
		if f := m.claim.first.first(); m.claim.record == 0 && f.Size > 0 && f.Token != fmt.Sprint(w.cluster.token) {
			return true // an earlier EtcdCluster began a first start, and did not come to its end
		}
	}
	return false
}

// accept is a person's word for what was restored, and consent to have lost what it lacks.
func (w *world) accept(n int) {
	w.members[n].claim.replaced = false
	if w.acked && w.broken() != "" {
		w.acked = false
		for k := range w.members {
			w.members[k].holds = false
		}
	}
}

// acceptable reports whether a quorum has its volumes, if a person accepts those that were
// restored.
func (w *world) acceptable() bool {
	some, n, e := false, 0, w.cluster.latch
	for k := range e.size() {
		if m := w.members[k]; m.claim.uid != 0 && !m.claim.terminating && m.claim.record == e && m.disk == e {
			n, some = n+1, some || m.claim.replaced
		}
	}
	return some && n >= Quorum(e.size())
}

// mixed reports whether a member has had data of a cluster other than that of its data now.
func (w *world) mixed() bool {
	for _, m := range w.members {
		if m.disk != 0 && m.had != m.disk.bit() {
			return true
		}
	}
	return false
}

func (w *world) String() string {
	var b strings.Builder
	c := w.cluster
	fmt.Fprintf(&b, "size %d, UID %d, clusterID %s", c.size, c.token, c.latch)
	if w.newest != 0 {
		fmt.Fprintf(&b, ", newest snapshot %d, found %d, chosen %d", w.newest, w.search.found, c.chosen)
	}
	if c.suspended {
		b.WriteString(", suspended")
	}
	if c.badImage {
		b.WriteString(", bad image")
	}
	for n, m := range w.members {
		if m == (instance{}) && c.status[n] == (remembered{}) {
			continue
		}
		fmt.Fprintf(&b, "; m-%d: volume %d", n, m.claim.uid)
		for _, flag := range []struct {
			text string
			on   bool
		}{
			{"terminating", m.claim.terminating}, {"foreign", m.claim.foreign}, {"restored", m.claim.replaced},
			{fmt.Sprintf("first start %s", m.claim.first), m.claim.first != 0},
			{fmt.Sprintf("recorded %s", m.claim.record), m.claim.record != 0},
			{fmt.Sprintf("data %s", m.disk), m.disk != 0}, {"that has not voted", m.mute}, {"with the write", m.holds},
			{fmt.Sprintf("intended volume %d", c.status[n].target), c.status[n].named},
			{"Pod " + [...]string{"", "pending", "starting", "up", "exited", "ended"}[m.pod.phase], m.pod.phase != absent},
			{fmt.Sprintf("from snapshot %d", m.from), m.from != 0}, {fmt.Sprintf("for snapshot %d", m.claim.snapshot), m.claim.snapshot != 0},
			{fmt.Sprintf("told to restore snapshot %d", m.pod.snapshot), m.pod.snapshot != 0}, {"told new", m.pod.blank}, {"Pod terminating", m.pod.terminating}, {"of a bad image", m.pod.badImage},
		} {
			if flag.on {
				b.WriteString(" " + flag.text)
			}
		}
	}
	return b.String()
}

func (e epoch) String() string {
	if e == 0 {
		return "none"
	}
	return fmt.Sprintf("%d/%d", e>>4, e&15)
}
