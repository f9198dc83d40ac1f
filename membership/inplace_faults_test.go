package membership

import (
	"cmp"
	"slices"
)

type swapChanger func(what string, who int, do func(*swapState) (violation string, possible bool))

// successors of a state: what an operator, an operator that is behind, Kubernetes, etcd, people and
// misfortune may do next.
func (x *swapExplorer) successors(s swapState, visit func(swapEdge)) {
	yield := func(e swapEdge) {
		w := &e.to.world
		w.clock.made = w.clock.made && !w.keeps(x.bound.size)
		for n, m := range w.members {
			e.to.same[n] = e.to.same[n] && m.pod.phase != absent // the next Pod of this name is another one
		}
		if e.violation == "" {
			e.violation = cmpOr(w.faulty(), w.serve(x.bound.size))
		}
		visit(e)
	}
	operator := func(who string, l swapLook, same [swapMost]bool) {
		x.pass(s.world, l, x.decide(l), same, func(o swapOutcome) {
			to := s
			to.world = o.world
			if o.flight.action != "" {
				if s.budget.flights == 0 || s.flight.action != "" || x.bound.late != "" && o.flight.action != x.bound.late {
					return
				}
				to.flight = o.flight
				to.budget.flights--
			}
			if to != s || o.violation != "" {
				yield(swapEdge{who + o.done, o.who, to, o.violation})
			}
		})
	}
	operator("", s.world.look(x.bound.size), swapAll)
	if s.stale != upToDate {
		operator("with an old view: ", x.believes(&s), s.same)
		to := s
		to.stale, to.old, to.same = upToDate, swapLook{}, [swapMost]bool{}
		yield(swapEdge{what: "the old view is updated", to: to})
	}
	change := func(what string, who int, do func(*swapState) (violation string, possible bool)) {
		to := s
		violation, possible := do(&to)
		if !possible {
			return
		}
		e := swapEdge{what: what, to: to, violation: violation}
		if who >= 0 {
			e.who[who] = true
		}
		yield(e)
	}
	if s.flight.action != "" {
		change("the request arrives at last: "+string(s.flight.action), s.flight.n, func(s *swapState) (string, bool) {
			if !x.bound.prompt || !s.world.begunSince(s.flight.copy) {
				s.flight.arrive(&s.world)
			}
			s.flight = swapFlight{}
			return "", true
		})
	}
	for n := range s.world.members {
		if s.world.members[n] != (swapMember{}) {
			x.machines(n, change)
			x.misfortune(n, change)
			x.nodes(n, change)
		}
	}
	x.jobs(change)
	x.time(change)
	x.people(change)
}

var swapAll = [swapMost]bool{true, true, true, true, true, true}

// machines are kubelets, controllers and etcd itself, at their own pace.
func (x *swapExplorer) machines(n int, change swapChanger) {
	change("its init container runs", n, func(s *swapState) (string, bool) {
		m := &s.world.members[n]
		if !m.mounted() || !m.pod.restores || m.pod.restored {
			return "", false
		}
		return s.world.fetch(n, x.operator)
	})
	change("its container starts", n, func(s *swapState) (string, bool) {
		m := &s.world.members[n]
		if !m.mounted() || m.pod.restores && !m.pod.restored {
			return "", false
		}
		return s.world.launch(n), true
	})
	change("etcd answers", n, func(s *swapState) (string, bool) {
		p := &s.world.members[n].pod
		possible := p.phase == starting && !p.off
		p.phase = up
		return "", possible
	})
	change("its Pod is gone", n, func(s *swapState) (string, bool) {
		possible := s.world.members[n].pod.terminating && !s.world.members[n].pod.off
		if possible {
			s.world.vanish(n)
		}
		return "", possible
	})
}

// mounted reports whether a Pod waits for its container to start, and has its volume.
func (m *swapMember) mounted() bool {
	return m.pod.phase == pending && !m.pod.off && !m.pod.terminating && m.claim.uid != 0 && !m.claim.terminating
}

// misfortune is what happens to one member by accident or by a user.
func (x *swapExplorer) misfortune(n int, change swapChanger) {
	change("its Pod is deleted by a user", n, func(s *swapState) (string, bool) {
		if p := s.world.members[n].pod; s.budget.kills == 0 || p.phase == absent || p.terminating {
			return "", false
		}
		s.budget.kills--
		s.world.kill(n)
		return "", true
	})
	change("its node starts again", n, func(s *swapState) (string, bool) {
		p := &s.world.members[n].pod
		if s.budget.kills == 0 || !p.runs() {
			return "", false
		}
		s.budget.kills--
		p.phase, p.restored = pending, false
		return "", true
	})
	change("its volume is deleted by a user", n, func(s *swapState) (string, bool) {
		m := &s.world.members[n]
		if s.budget.losses == 0 || m.claim.uid == 0 || m.claim.terminating {
			return "", false
		}
		s.budget.losses--
		s.world.hurt = s.world.hurt || !s.world.unused(n)
		s.world.deleteClaim(n)
		return "", true
	})
	change("its disk is wiped and its node starts again", n, func(s *swapState) (string, bool) {
		m := &s.world.members[n]
		if s.budget.wipes == 0 || m.disk == 0 || !m.pod.runs() {
			return "", false
		}
		s.budget.wipes--
		s.world.hurt = true
		m.disk, m.from, m.pod.phase, m.pod.restored = 0, 0, pending, false
		if s.world.mounts(n) {
			s.world.endCopy() // it ran there
		}
		return "", true
	})
}

// unused reports whether a volume is one of a restore that goes on, and nothing has been started on
// it: it is simply made again.
func (w *swap) unused(n int) bool {
	m, st := w.members[n], w.status
	return st.phase == swapRestoring && n >= int(st.first) && !st.intent && m.pod.phase == absent && m.claim.record == 0
}

// people make EtcdRestores and delete them, and take the status away. The operator that is behind
// stops being told.
func (x *swapExplorer) people(change swapChanger) {
	for _, survivor := range []bool{false, true} {
		change("an EtcdRestore is made, from "+map[bool]string{false: "a snapshot", true: "a survivor"}[survivor], -1, func(s *swapState) (string, bool) {
			if s.budget.restores == 0 || survivor != x.bound.survivor && !x.bound.mixed {
				return "", false
			}
			uid := s.world.uid()
			s.budget.restores--
			r := swapRestore{there: true, name: uid - 2, held: x.bound.held, survivor: survivor}
			if x.bound.again {
				r.name = 0
				for _, other := range s.world.asked {
					if other.there {
						return "", false // the name is taken
					}
				}
			}
			s.world.asked[uid] = r
			return "", true
		})
	}
	for uid := range swapRestores {
		change("the EtcdRestore is deleted", -1, func(s *swapState) (string, bool) {
			possible := s.world.asked[uid].there
			if possible && s.world.unseen(uid) {
				if s.budget.unseen == 0 {
					return "", false
				}
				s.budget.unseen--
				s.world.clock.made, s.world.clock.once = false, false // accepted: nothing tells that it was there
			}
			s.world.asked[uid].there = false
			return "", possible
		})
		change("it is suspended, or not any more", -1, func(s *swapState) (string, bool) {
			r := &s.world.asked[uid]
			r.held = !r.held
			return "", x.bound.held && r.there
		})
	}
	change("the search finds the newest snapshot", -1, func(s *swapState) (string, bool) {
		w := &s.world
		possible := w.search.of != 0 && w.search.found == 0
		w.search.found = cmp.Or(w.search.named, w.newest)
		return "", possible
	})
	change("the Job that has looked is collected", -1, func(s *swapState) (string, bool) {
		possible := x.bound.held && s.world.search.found != 0 // others do not wait for that long
		s.world.search = swapSearch{}
		return "", possible
	})
	change("a newer snapshot is stored", -1, func(s *swapState) (string, bool) {
		possible := x.bound.newer && s.world.newest == 1
		s.world.newest++
		return "", possible
	})
	change("the store breaks", -1, func(s *swapState) (string, bool) {
		possible := x.bound.breaks && !s.world.broken
		s.world.broken = true
		return "", possible
	})
	change("the status is wiped", -1, func(s *swapState) (string, bool) {
		if s.budget.statusWipes == 0 {
			return "", false
		}
		s.budget.statusWipes--
		s.world.status, s.world.wiped = swapStatus{turn: s.world.status.turn + 1}, true
		return "", true
	})
	for stale := oldCluster; stale < stalenesses; stale++ {
		change("an operator is not told any more ("+[...]string{"", "EtcdCluster", "Pods", "PersistentVolumeClaims", "all objects", "it pauses in its pass"}[stale]+")", -1, func(s *swapState) (string, bool) {
			if s.budget.delays == 0 || s.stale != upToDate || x.bound.behind != nil && !slices.Contains(x.bound.behind, stale) {
				return "", false
			}
			if x.bound.late != "" && x.decide(s.world.look(x.bound.size)).step.Action != x.bound.late {
				return "", false
			}
			s.budget.delays--
			s.stale, s.old, s.same = stale, s.world.look(x.bound.size), swapAll
			return "", true
		})
	}
}
