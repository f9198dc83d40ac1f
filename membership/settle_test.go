package membership

import (
	"cmp"
	"slices"
	"strings"
)

// end is how a world goes on when nothing more goes wrong: an empty string where it comes to rest
// as wanted, or at a stall that is justified and that tells a person what to do.
func (x *explorer) end(w world) string {
	if x.bound.safety {
		return ""
	}
	var path []packed
	verdict := ""
	for {
		w = calm(w)
		p := x.bound.pack(&state{world: w})
		known, ok := x.ends[p]
		if ok {
			verdict = known
			break
		}
		x.ends[p] = "L1: it goes round in a circle" // unless it proves otherwise
		path = append(path, p)
		if verdict = x.unheard(w); verdict != "" {
			break
		}
		next, done := x.step(w)
		if done {
			verdict = x.rest(w)
			break
		}
		w = next
	}
	for _, p := range path {
		x.ends[p] = verdict
	}
	return verdict
}

// step is one complete pass of a fresh operator, done when it changes nothing.
func (x *explorer) step(w world) (next world, done bool) {
	l := w.look()
	x.operator.pass(w, l, x.decide(l), every, func(o outcome) { next = o.world }) // the last one is complete
	return next, next == w
}

// unheard judges what is decided where the network between the operator and the members is closed,
// and kubelets have found for long that members serve: a person has to be told, before the cluster
// has formed as well.
func (x *explorer) unheard(w world) string {
	l := w.look()
	l.overdue, l.list = true, 0
	serve := false
	for n := range l.members {
		g := &l.members[n]
		l.ready[n] = g.led && !g.pod.terminating
		serve = serve || l.ready[n]
		g.answer, g.led = 0, false
	}
	if t := x.decide(l).step; serve && t.Action == Wait {
		return "L4: members serve, none of them can be reached, and no condition says so: " + t.String()
	}
	return ""
}

// rest judges a world in which nothing happens any more.
func (x *explorer) rest(w world) string {
	l := w.look()
	l.overdue = true
	t := x.decide(l).step
	switch {
	case goesOnElsewhere(t) && w.cluster.latch != 0 && (w.damaged() || w.wellServed() && w.resizes()):
		return ""
	case t.Acts():
		return "L5: it does the same over and over, and nothing comes of it: " + t.String()
	case t.Action == Wait:
		return "L3: it waits for nothing: " + t.String()
	case t.Action == None && t.Reason == Healthy && int(w.cluster.size) == w.cluster.latch.size() && w.wellServed(), t.Action == None && t.Reason == Hibernated && w.hibernates():
		return ""
	case t.Action == None:
		return "it says that all is well: " + t.String()
	case t.Reason == VolumeReplaced && !slices.ContainsFunc(w.members[:], func(m instance) bool { return m.claim.replaced }):
		return "it stalls for a volume that was not replaced: " + t.String()
	case t.Reason == DataLost && w.acceptable():
		return "it calls lost what a person can accept: " + t.String()
	case !w.damaged() && (t.Reason != ClusterIDMismatch || !w.mixed()):
		return "L1: it stalls though nothing was lost: " + t.String()
	case !strings.ContainsAny(t.Message, ";.") || !tellsWhatToDo(t.Message):
		return "its message does not tell what to do: " + t.String()
	default:
		return ""
	}
}

func tellsWhatToDo(message string) bool {
	for _, verb := range []string{"delete ", "remove ", "restore ", "rename ", "set it ", "revert spec.replicas ", "set spec.replicas ", "Bring ", "until only one is left", "make another one"} {
		if strings.Contains(message, verb) {
			return true
		}
	}
	return false
}

// wellServed: there is one cluster, all of its members run, and clients reach it.
func (w *world) wellServed() bool {
	e := w.cluster.latch
	for n := range e.size() {
		m := w.members[n]
		if m.disk != e || m.claim.record != e || m.pod.phase != up || m.pod.terminating || m.pod.blank || m.pod.snapshot != 0 {
			return false
		}
	}
	return e != 0 && w.service
}

// resizes: the size is another one than that of the first start, or something is left of an earlier
// size.
func (w *world) resizes() bool {
	size := w.cluster.latch.size()
	return int(w.cluster.size) != size || slices.ContainsFunc(w.members[size:], func(m instance) bool { return m.claim.uid != 0 || m.pod.phase != absent })
}

func (w *world) hibernates() bool {
	for _, m := range w.members {
		if m.pod.phase != absent {
			return false
		}
	}
	return w.cluster.size == 0
}

// calm is the world after kubelets and etcd have done what they do by themselves, and people have
// mended the spec.
func calm(w world) world {
	w.cluster.suspended, w.cluster.badImage = false, false
	if w.search.begun {
		w.search.found = cmp.Or(w.search.found, w.newest)
	}
	for n := range w.members {
		m := &w.members[n]
		if m.pod.terminating {
			w.vanish(n)
		}
		ready := true
		if m.pod.phase == pending && m.pod.restores && !m.pod.restored && m.claim.uid != 0 && !m.claim.foreign && !m.claim.terminating {
			_, ready = w.restore(n) // so is this
		}
		if ready && m.pod.phase == pending && !m.pod.badImage && m.claim.uid != 0 && !m.claim.foreign && !m.claim.terminating {
			w.launch(n, false) // what must not happen here is found by the search
		}
		if m.pod.phase == starting && !m.mute {
			m.pod.phase = up
		}
		if m.pod.phase == exited && m.disk != 0 {
			m.pod.phase = up
		}
	}
	for n := range w.members {
		m := &w.members[n]
		if w.answers(n) {
			m.pod.phase, m.mute = up, false
		}
		m.holds = m.holds || w.acked && m.pod.phase == up && m.disk == w.formed && w.quorate(m.disk)
	}
	w.consent()
	return w
}

// ending tells how it goes on from a world.
func (x *explorer) ending(w world) []string {
	lines := []string{"nothing more goes wrong"}
	for range 12 {
		w = calm(w)
		l := w.look()
		lines = append(lines, x.decide(l).step.String()+"\n       "+w.String())
		next, done := x.step(w)
		if done {
			break
		}
		w = next
	}
	return lines
}
