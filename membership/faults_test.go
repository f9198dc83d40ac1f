package membership

import "slices"

type changer func(what string, who int, do func(*state) (violation string, possible bool))

// machines are kubelets, controllers and etcd itself, at their own pace.
func (x *explorer) machines(n int, change changer) {
	change("its container starts", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if m.pod.phase != pending || m.pod.restores && !m.pod.restored || m.pod.terminating || m.pod.badImage || m.claim.uid == 0 || m.claim.foreign || m.claim.terminating {
			return "", false
		}
		return s.world.launch(n, false), true
	})
	change("its container starts, and ends before etcd has voted, and starts again", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.mutes == 0 || m.disk != 0 || !m.pod.blank || m.pod.phase != pending || m.pod.terminating || m.pod.badImage || m.claim.uid == 0 || m.claim.foreign || m.claim.terminating {
			return "", false
		}
		s.budget.mutes--
		had := m.had
		violation := s.world.launch(n, false)
		m.mute, m.had = true, had
		return violation, true
	})
	change("its init container runs", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if m.pod.phase != pending || !m.pod.restores || m.pod.restored || m.pod.terminating || m.claim.uid == 0 || m.claim.foreign || m.claim.terminating {
			return "", false
		}
		return s.world.restore(n)
	})
	change("its container starts again", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		return s.world.launch(n, false), m.pod.phase == exited && (m.disk != 0 || m.pod.blank)
	})
	change("etcd answers", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		possible := s.world.answers(n)
		m.pod.phase, m.mute = up, false
		return "", possible
	})
	change("its Pod is gone", n, func(s *state) (string, bool) {
		possible := s.world.members[n].pod.terminating
		if possible {
			s.world.vanish(n)
		}
		return "", possible
	})
	change("catches up", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		possible := s.world.acked && m.pod.phase == up && m.disk == s.world.formed && !m.holds && s.world.quorate(m.disk)
		m.holds = true
		return "", possible
	})
}

// misfortune is what happens to one member by accident or by a user.
func (x *explorer) misfortune(n int, change changer) {
	change("its Pod is deleted by a user", n, func(s *state) (string, bool) {
		if p := s.world.members[n].pod; p.phase == absent || p.terminating || x.bound.kills && s.budget.kills == 0 {
			return "", false
		}
		if x.bound.kills {
			s.budget.kills--
		}
		s.world.kill(n)
		return "", true
	})
	change("its Pod is evicted", n, func(s *state) (string, bool) {
		p := &s.world.members[n].pod
		possible := x.bound.stalls && p.runs() && !p.terminating
		p.phase = ended
		return "", possible
	})
	change("its volume is deleted by a user", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.losses == 0 || m.claim.uid == 0 || m.claim.terminating || m.claim.foreign || !s.world.mayLose(n) {
			return "", false
		}
		s.budget.losses--
		m.claim.terminating = true
		if m.pod.phase == absent {
			s.world.vanish(n)
		}
		return "", true
	})
	change("its disk is wiped and its container starts again", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.wipes == 0 || m.disk == 0 || !m.pod.runs() {
			return "", false
		}
		s.budget.wipes--
		m.disk, m.from, m.holds, m.wiped, m.mute = 0, 0, false, !s.world.acked, false
		return s.world.launch(n, true), true
	})
	change("its disk is wiped and its node starts again", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.wipes == 0 || m.disk == 0 || !m.pod.runs() || !m.pod.restores {
			return "", false
		}
		s.budget.wipes--
		m.disk, m.from, m.holds, m.wiped = 0, 0, false, !s.world.acked
		m.pod.phase, m.pod.restored = pending, false
		return "", true
	})
	change("its node starts again", n, func(s *state) (string, bool) {
		p := &s.world.members[n].pod
		if !p.runs() || !p.restores || x.bound.kills && s.budget.kills == 0 {
			return "", false
		}
		if x.bound.kills {
			s.budget.kills--
		}
		p.phase, p.restored = pending, false
		return "", true
	})
	change("its volume is replaced by one of another cluster", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.restores == 0 || m.claim.uid == 0 || m.pod.phase != absent || m.claim.foreign || !s.world.mayLose(n) {
			return "", false
		}
		s.budget.restores--
		m.made++
		m.claim = claim{uid: m.made, record: alien, first: alien}
		m.disk, m.from, m.holds, m.had = alien, 0, false, m.had|alien.bit()
		return "", true
	})
	change("its volume comes back as another object, annotations and all, with the data of an earlier day", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.copies == 0 || m.claim.record == 0 || m.claim.record != m.disk || m.claim.foreign || m.claim.terminating || m.pod.phase != absent {
			return "", false
		}
		s.budget.copies--
		m.made++
		m.claim.uid, m.claim.replaced, m.holds = m.made, true, false
		return "", true
	})
	change("a user accepts what was restored", n, func(s *state) (string, bool) {
		possible := s.world.members[n].claim.replaced
		if possible {
			s.world.accept(n)
		}
		return "", possible
	})
	change("a user makes a volume of its name", n, func(s *state) (string, bool) {
		m := &s.world.members[n]
		if s.budget.foreign == 0 || m.claim.uid != 0 || n >= int(x.bound.first) {
			return "", false
		}
		s.budget.foreign--
		m.made++
		m.claim = claim{uid: m.made, foreign: true}
		return "", true
	})
	change("the foreign volume is removed", n, func(s *state) (string, bool) {
		possible := s.world.members[n].claim.foreign
		s.world.members[n].claim = claim{}
		return "", possible
	})
}

// mayLose: when the status was wiped by hand, and there was no look since, the last volume that
// says that the cluster has formed is all that is known of it. A user that takes both away has
// deleted the cluster.
func (w *world) mayLose(n int) bool {
	if w.cluster.latch != 0 || w.cluster.token > 1 || w.members[n].claim.record == 0 {
		return true
	}
	others := 0
	for k, m := range w.members {
		if k != n && m.claim.record != 0 && !m.claim.terminating {
			others++
		}
	}
	return others > 0
}

// people change the EtcdCluster, and the operator that is behind stops being told.
func (x *explorer) people(change changer) {
	for _, size := range x.bound.sizes {
		change("spec.replicas changes", -1, func(s *state) (string, bool) {
			possible := s.world.cluster.size != size
			s.world.cluster.size = size
			return "", possible
		})
	}
	if x.bound.stalls {
		change("spec.suspend changes", -1, func(s *state) (string, bool) {
			s.world.cluster.suspended = !s.world.cluster.suspended
			return "", true
		})
		change("spec.image changes", -1, func(s *state) (string, bool) {
			s.world.cluster.badImage = !s.world.cluster.badImage
			return "", true
		})
	}
	change("the EtcdCluster is deleted and applied again", -1, func(s *state) (string, bool) {
		if s.budget.deletions == 0 {
			return "", false
		}
		s.budget.deletions--
		c := &s.world.cluster
		*c = cluster{size: c.size, suspended: c.suspended, badImage: c.badImage, token: c.token + 1}
		s.world.service, s.world.search = false, search{}
		for n := range s.world.members {
			s.world.kill(n)
		}
		s.world.consent()
		return "", true
	})
	change("the search finds the newest snapshot", -1, func(s *state) (string, bool) {
		w := &s.world
		possible := w.search.begun && w.search.found == 0
		w.search.found = w.newest
		return "", possible
	})
	change("the Job of the search is deleted", -1, func(s *state) (string, bool) {
		possible := s.world.search.begun
		s.world.search = search{}
		return "", possible
	})
	change("a newer snapshot is stored", -1, func(s *state) (string, bool) {
		possible := s.world.newest == 1
		s.world.newest++
		return "", possible
	})
	change("the status is wiped", -1, func(s *state) (string, bool) {
		c := &s.world.cluster
		if s.budget.statusWipes == 0 || c.token > 1 || c.latch == 0 || !slices.ContainsFunc(s.world.members[:], func(m instance) bool { return m.claim.record == c.latch && !m.claim.terminating }) {
			return "", false
		}
		s.budget.statusWipes--
		c.latch, c.intent, c.status = 0, false, [most]remembered{}
		return "", true
	})
	for stale := oldCluster; stale < stalenesses; stale++ {
		change("an operator is not told any more ("+[...]string{"", "EtcdCluster", "Pods", "PersistentVolumeClaims", "all objects", "it pauses in its pass"}[stale]+")", -1, func(s *state) (string, bool) {
			if s.budget.delays == 0 || s.stale != upToDate {
				return "", false
			}
			s.budget.delays--
			s.stale, s.old, s.same = stale, s.world.look(), every
			return "", true
		})
	}
}

// clients write. A write is acknowledged when a quorum has it, led by a member with every
// acknowledged write.
func (x *explorer) clients(s state, yield func(edge)) {
	if !s.world.service {
		return
	}
	for _, m := range s.world.members {
		if m.pod.phase == up && s.world.quorate(m.disk) {
			x.write(s, m.disk, yield)
			return
		}
	}
}

func (x *explorer) write(s state, e epoch, yield func(edge)) {
	var running [most]bool
	for n, m := range s.world.members {
		running[n] = m.pod.phase == up && m.disk == e
	}
	subsets(running, func(quorum [most]bool, _ bool) {
		size, led := 0, !s.world.acked
		for n, in := range quorum {
			if in {
				size++
				led = led || s.world.members[n].holds
			}
		}
		if size != Quorum(e.size()) || !led {
			return
		}
		to := s
		to.world.acked, to.world.formed = true, e
		for n := range to.world.members {
			to.world.members[n].holds = quorum[n]
		}
		if to != s {
			yield(edge{what: "a write is acknowledged by", who: quorum, to: to})
		}
	})
}
