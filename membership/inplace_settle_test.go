package membership

import (
	"cmp"
	"strings"
)

// end is how a world goes on when nothing more goes wrong: an empty string where it comes to rest
// as wanted, or at a stall that is justified and that tells a person what to do.
func (x *swapExplorer) end(w swap) string {
	if x.bound.safety {
		return ""
	}
	var path []swap
	verdict := ""
	for {
		w, verdict = x.calm(w)
		key := x.bound.canonical(swapState{world: w}).world
		if known, ok := x.ends[key]; ok && verdict == "" {
			verdict = known
			break
		}
		x.ends[key] = "L1: it goes round in a circle" // unless it proves otherwise
		path = append(path, key)
		if verdict != "" {
			break
		}
		next, done, violation := x.turn(w)
		if done {
			verdict = cmpOr(violation, x.rest(w))
			break
		}
		w = next
	}
	for _, p := range path {
		x.ends[p] = verdict
	}
	return verdict
}

// turn is one complete pass of a fresh operator, done when it changes nothing.
func (x *swapExplorer) turn(w swap) (next swap, done bool, violation string) {
	l := w.look(x.bound.size)
	l.overdue = x.bound.onLoss // then a loss may be certain
	next = w
	x.pass(w, l, x.decide(l), swapAll, func(o swapOutcome) {
		if o.flight.action == "" {
			next, violation = o.world, o.violation // the last one is complete
		}
	})
	return next, next == w, violation
}

// calm is the world after kubelets and etcd have done what they do by themselves.
func (x *swapExplorer) calm(w swap) (swap, string) {
	if w.search.of != 0 {
		w.search.found = cmp.Or(w.search.found, w.search.named, 1)
	}
	violation := w.calmCopy()
	w.clock.wait(w.status.loss)
	for n := range w.members {
		m := &w.members[n]
		w.wake(n)
		if m.pod.terminating {
			w.vanish(n)
		}
		if m.mounted() && m.pod.restores && !m.pod.restored {
			v, _ := w.fetch(n, x.operator)
			violation = cmpOr(violation, v)
		}
		if m.mounted() && (!m.pod.restores || m.pod.restored) {
			violation = cmpOr(violation, w.launch(n))
		}
		if m.pod.phase == starting {
			m.pod.phase = up
		}
		m.pod.emptyLong = m.pod.emptyLong || x.bound.onLoss && m.pod.empty()
	}
	return w, cmpOr(violation, cmpOr(w.faulty(), w.serve(x.bound.size)))
}

// rest judges a world in which nothing happens any more.
func (x *swapExplorer) rest(w swap) string {
	l := w.look(x.bound.size)
	l.overdue = true
	t := x.decide(l).step
	st := w.status
	unread := w.broken && st.phase == swapRestoring // a person must take the restore back
	switch {
	case swapGoesOnElsewhere(t) && (w.hurt || st.phase != swapPending && st.latch.size(x.bound.size) < x.bound.size): // and the others join
		return ""
	case st.phase == swapPending && l.asked[st.restore].held && !t.Acts():
		return x.heldWell(l, t)
	case t.Acts():
		return "L5: it does the same over and over, and nothing comes of it: " + t.String()
	case t.Action == Wait:
		return "L3: it waits for nothing: " + t.String()
	case t.Action == None && (st.phase == swapRestoring || st.phase == swapReverting || st.phase == swapPending):
		return "L2: the restore does not come to its end: " + t.String()
	case t.Action == None && !x.wellServed(&w):
		return "it says that all is well: " + t.String()
	case t.Action == None && w.copy.of != 0 && !w.copy.done && !w.copy.late:
		return "L4: a Job is left, for which there is nothing to do"
	case t.Action == None && l.next() != 0:
		return "L2: an EtcdRestore is not carried out"
	case t.Action == None:
		return w.leftovers(x.bound)
	case x.bound.onLoss && t.Action == Stall && w.recoverable(x.bound):
		return "L6: a majority is lost, and it is not restored: " + t.String()
	case unread && strings.Contains(t.Message, "delete EtcdRestore"):
		return ""
	case !w.hurt && (!w.wiped || t.Reason != DataLost) && (x.bound.lost == 0 || st.latch != original):
		return "L1: it stalls though nothing was lost: " + t.String()
	case !tellsWhatToDo(t.Message):
		return "its message does not tell what to do: " + t.String()
	default:
		return ""
	}
}

// wellServed: all members of the cluster of the status run on their data, and clients reach them.
func (x *swapExplorer) wellServed(w *swap) bool {
	e := w.status.latch
	for n := e.base(); n < e.base()+e.size(x.bound.size); n++ {
		m := w.members[n]
		if m.disk != e || m.claim.record != e || m.pod.phase != up || m.pod.terminating || m.pod.snapshot != 0 {
			return false
		}
	}
	return e != 0 && w.service && w.served == e
}

// leftovers judges what is there beside the members: volumes that were set aside, where that is
// wanted, and nothing else.
func (w *swap) leftovers(b *swapBound) string {
	for n, m := range w.members {
		switch {
		case w.status.latch.has(b.size, n):
			if m.claim.aside != 0 && !w.wiped {
				return "R8: a volume of a member is set aside"
			}
		case m.pod.phase != absent:
			return "L1: a Pod is left that belongs to no member"
		case m.claim.uid != 0 && m.claim.aside == 0 && !w.wiped:
			return "R8: a volume is left that belongs to no member, and was not set aside"
		case m.claim.aside != 0 && w.status.phase == swapCompleted && m.claim.aside == w.status.restore && b.discards&(1<<m.claim.aside) != 0 && !w.wiped:
			return "L2: a volume is left that was to be deleted"
		}
	}
	return ""
}

// ending tells how it goes on from a world.
func (x *swapExplorer) ending(w swap) []string {
	lines := []string{"nothing more goes wrong"}
	for range 24 {
		w, _ = x.calm(w)
		l := w.look(x.bound.size)
		l.overdue = x.bound.onLoss
		lines = append(lines, x.decide(l).step.String()+"\n       "+w.String())
		next, done, _ := x.turn(w)
		if done {
			break
		}
		w = next
	}
	return lines
}
