package membership

import (
	"fmt"
	"slices"
)

// The model of a majority that is lost, and of the EtcdRestore that is created for that by itself
// (spec.recovery.quorumLoss).
//
// The look past the cache and the creation are one here: what happens between them is the life of a
// request. What was created begins after another look only, and only while the majority is lost,
// and that is judged as well.

// swapLoss is status.quorumLoss.
type swapLoss struct {
	of    lineage // clusterID
	since uint8   // 0: no majority is lost. A later time is a greater number
	made  bool    // restore is set
}

// swapClock is the time, and what has been done for a loss.
type swapClock struct {
	now    uint8 // the last since that was written
	waited uint8 // the last since that was quorumLossAfter ago
	passed bool  // that time is over for the loss that lasts: no quorum was seen since
	made   bool  // an EtcdRestore was created by itself, and a majority has not had its data since
	once   bool  // the same, and no quorum was seen since
}

// told is the part of it that an operator knows.
func (c swapClock) told() swapClock { return swapClock{now: c.now, waited: c.waited} }

// wait until a loss has lasted for quorumLossAfter.
func (c *swapClock) wait(loss swapLoss) (possible bool) {
	if loss.since <= c.waited {
		return false
	}
	c.waited, c.passed = loss.since, true
	return true
}

// over: a quorum was seen, and written down.
func (c *swapClock) over() { c.passed, c.once = false, false }

// uid of the next EtcdRestore.
func (w *swap) uid() uint8 {
	if w.uids++; w.uids+1 >= swapRestores {
		panic("the model has too few EtcdRestores")
	}
	return w.uids + 1
}

// left is how many volumes have the data of a member of the cluster, whatever an operator sees of
// them. One on which etcd finds nothing has none, while that is so.
func (w *swap) left(size int, e lineage) int {
	n := 0
	for at, m := range w.members {
		if e.has(size, at) && m.disk == e {
			n++
		}
	}
	return n
}

// keeps reports whether volumes of a quorum have their data.
func (w *swap) keeps(size int) bool {
	e := w.status.latch
	if e == 0 {
		e = w.served
	}
	return w.left(size, e) >= Quorum(e.size(size))
}

// swapLossCareless are ways in which package reconcile could go wrong about a majority that is
// lost.
type swapLossCareless struct {
	hurries         bool // quorumLossAfter is not waited for
	fromCache       bool // the EtcdRestore is created without another look
	forgetsMade     bool // that it was created is not written down
	forgetsUnproved bool // it is forgotten where a majority may have its data again, and no quorum has answered
	keepsLoss       bool // the loss is not over when a quorum answers
	oneName         bool // the EtcdRestores of all losses have one name
	knowsNoOther    bool // an EtcdRestore counts only when status.restore has it
	begins          bool // what was created begins whether a majority is lost or not
	awayIsGone      bool // the data of a member whose node is off counts as gone
}

// name of the EtcdRestore for a loss. Persons call theirs 0 to 3.
func (op swapLossCareless) name(loss swapLoss) uint8 {
	if op.oneName {
		return 4
	}
	if loss.since > 4 {
		panic("the model has too few names for so many losses")
	}
	return 3 + loss.since
}

// lossFacts are those of package reconcile (lossFacts, observeRestores).
func (l *swapLook) lossFacts(b *swapBound, op swapCareless, d *Desired, o *Observed) {
	d.FromSurvivor, d.FromBackup, d.LossPatience = b.survivor, !b.survivor, "10m"
	st := l.status
	if loss := st.loss; loss.since != 0 && loss.of == st.latch {
		called := op.loss.name(loss)
		is := func(r swapRestore) bool { return r.there && r.bySelf && r.name == called }
		o.Loss = Loss{
			Long: loss.since <= l.clock.waited || op.loss.hurries, Restore: fmt.Sprint(called), Made: loss.made || slices.ContainsFunc(l.asked[:], is),
		}
	}
	if l.asked[st.restore].bySelf {
		o.InPlace.OnLoss, o.InPlace.Anyway = o.InPlace.Name != "" && !op.loss.begins, false
	}
}

// setLoss is setQuorumLoss.
func (x *swapExplorer) setLoss(s *swapStatus, l swapLook, t swapDecision) {
	op := x.operator.loss
	switch {
	case !t.formed:
	case !t.lost:
		unproved := t.list == 0 && (s.loss.made || t.made) && !op.forgetsUnproved
		switch {
		case s.loss.since == 0 || op.keepsLoss:
		case unproved:
			s.loss.made = !op.forgetsMade
		default:
			s.loss = swapLoss{}
		}
	case s.loss.since == 0 || s.loss.of != s.latch:
		s.loss = swapLoss{of: s.latch, since: l.clock.now + 1}
	case t.made && !op.forgetsMade:
		s.loss.made = true
	}
}

// noted: that status was written. A time of which nothing tells any more, not even the name of an
// EtcdRestore, comes again: an operator may be behind, and forget a loss as often as it likes that
// the other one sees.
func (w *swap) noted(s swapStatus) {
	w.clock.now = max(w.clock.now, s.loss.since)
	if s.loss.since == 0 {
		w.clock.now = 0
		for _, r := range w.asked {
			if r.bySelf {
				w.clock.now = max(w.clock.now, r.since)
			}
		}
		w.clock.waited = min(w.clock.waited, w.clock.now)
	}
	for uid := range w.asked {
		r := &w.asked[uid]
		r.noted = r.noted || r.bySelf && r.there && (s.loss.made || s.restore == uint8(uid))
	}
}

// unseen reports whether an EtcdRestore was created by itself, and no operator has written down yet
// that it is there.
func (w *swap) unseen(uid int) bool { return w.asked[uid].bySelf && !w.asked[uid].noted }

// recover creates the EtcdRestore, only if there is none of that name.
func (x *swapExplorer) recover(w swap, l swapLook, t swapDecision, same [swapMost]bool, yield func(swapOutcome)) {
	op := x.operator.loss
	r := swapRestore{there: true, bySelf: true, survivor: x.bound.survivor, since: l.status.loss.since, name: op.name(l.status.loss)}
	is := func(other swapRestore) bool { return other.there && other.name == r.name }
	if !op.fromCache && !x.confirmed(&w, l, t) || slices.ContainsFunc(w.asked[:], is) {
		return
	}
	if violation := w.recovered(x.bound.size); violation != "" {
		yield(swapOutcome{done: "Recover", world: w, violation: violation})
		return
	}
	w.asked[w.uid()] = r
	w.clock.made, w.clock.once = true, true
	yield(swapOutcome{done: "Recover, then the operator crashes", world: w})
	x.maintain(w, l, t, same, yield)
}

// recovered judges the creation of an EtcdRestore by itself.
func (w *swap) recovered(size int) string {
	l := swapLook{status: w.status, asked: w.asked}
	switch {
	case w.keeps(size):
		return "R11: an EtcdRestore is created by itself, and volumes of a quorum have their data"
	case w.clock.made:
		return "R13: another EtcdRestore is created by itself for the same loss"
	case !w.clock.passed:
		return "R12: an EtcdRestore is created by itself earlier than was asked for"
	case l.next() != 0:
		return "R14: an EtcdRestore is created by itself where another one is asked for"
	default:
		return ""
	}
}

// begunBySelf judges the begin of one that was created by itself.
func (w *swap) begunBySelf(size int) string {
	if w.asked[w.status.restore].bySelf && w.keeps(size) {
		return "R11: an EtcdRestore that was created by itself begins, and volumes of a quorum have their data"
	}
	return ""
}

// recoverable reports whether a majority is lost, and that is to be ended without a person: with
// certainty, from what is there, and no person has deleted what was created for it.
func (w *swap) recoverable(b *swapBound) bool {
	st := w.status
	size := st.latch.size(b.size)
	left := w.left(b.size, st.latch)
	if st.latch == 0 || st.remembered != st.latch || w.wiped || w.broken {
		return false
	}
	if w.keeps(b.size) || left >= Quorum(size-1) || b.survivor && left != 1 {
		return false
	}
	if slices.ContainsFunc(w.members[:], func(m swapMember) bool { return m.claim.terminating }) {
		return false // its Pod holds it: it is going, and not gone
	}
	created, others := false, false
	for _, r := range w.asked {
		if waits := r.there && !r.done && st.carried&(1<<r.name) == 0; waits {
			created, others = created || r.bySelf, others || !r.bySelf
		}
	}
	return !others && (created || !w.clock.once)
}

func (w *swap) lossWords() string {
	text := ""
	if loss := w.status.loss; loss.since != 0 {
		text = fmt.Sprintf(", %s lost since %d (waited for %d), EtcdRestore made %v", loss.of, loss.since, w.clock.waited, loss.made)
	}
	for uid, r := range w.asked {
		if r.there && r.bySelf {
			text += fmt.Sprintf(", EtcdRestore %d was created by itself", uid)
		}
	}
	return text
}
