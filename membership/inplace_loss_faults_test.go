package membership

// What happens beside the operator while a majority is lost, or seems to be.

// time passes.
func (x *swapExplorer) time(change swapChanger) {
	if !x.bound.onLoss {
		return
	}
	change("quorumLossAfter has passed", -1, func(s *swapState) (string, bool) {
		return "", s.world.clock.wait(s.world.status.loss)
	})
	for n := range swapMost {
		change("its volume has been empty for long", n, func(s *swapState) (string, bool) {
			p := &s.world.members[n].pod
			possible := p.empty() && !p.emptyLong && !p.off
			p.emptyLong = true
			return "", possible
		})
	}
}

// nodes go off and come back, and what is on them seems to be gone.
func (x *swapExplorer) nodes(n int, change swapChanger) {
	change("its node goes off", n, func(s *swapState) (string, bool) {
		p := &s.world.members[n].pod
		if s.budget.offs == 0 || p.phase == absent || p.off {
			return "", false
		}
		s.budget.offs--
		p.off = true
		return "", true
	})
	change("its node is there again", n, func(s *swapState) (string, bool) { return "", s.world.wake(n) })
	change("its volume comes up empty, and its node starts again", n, func(s *swapState) (string, bool) {
		m := &s.world.members[n]
		if s.budget.empties == 0 || m.disk == 0 || !m.pod.runs() {
			return "", false
		}
		s.budget.empties--
		s.world.hurt = true
		m.hidden, m.disk, m.pod.phase, m.pod.restored = m.disk, 0, pending, false
		if s.world.mounts(n) {
			s.world.endCopy() // it ran there
		}
		return "", true
	})
	change("the data on its volume is there again", n, func(s *swapState) (string, bool) {
		m := &s.world.members[n]
		if m.hidden == 0 || m.disk != 0 || m.pod.off {
			return "", false
		}
		m.disk, m.hidden = m.hidden, 0
		if m.pod.phase == exited { // its kubelet starts it again
			m.pod.phase, m.pod.restored, m.pod.emptyLong = pending, false, false
		}
		return "", true
	})
}

// wake brings the node of a member back. Its containers start again.
func (w *swap) wake(n int) (possible bool) {
	p := &w.members[n].pod
	if !p.off {
		return false
	}
	p.off, p.phase, p.restored, p.emptyLong = false, pending, false, false
	if p.terminating {
		w.vanish(n)
	}
	return true
}
