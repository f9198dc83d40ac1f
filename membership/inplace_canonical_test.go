package membership

import "slices"

func (b *swapBound) canonical(s swapState) swapState {
	if b.size == 1 || b.survivor || b.mixed { // whose data was taken, snapshots tell
		return s
	}
	var seats [swapMost]swapSeat
	for n := range seats {
		seats[n] = swapSeat{s.world.members[n], s.old.members[n], s.world.status.targets[n], s.old.status.targets[n], s.world.marks[n], s.same[n], s.flight.action != "" && s.flight.n == n}
	}
	for from := 0; from < swapMost; from += b.size {
		slices.SortFunc(seats[from:min(from+b.size, swapMost)], swapSeat.compare)
	}
	for n, t := range seats {
		s.world.members[n], s.old.members[n], s.world.status.targets[n], s.old.status.targets[n], s.world.marks[n], s.same[n] = t.member, t.old, t.target, t.oldTarget, t.mark, t.same
		if t.flight {
			s.flight.n = n
		}
	}
	return s
}

// swapSeat is all that a state says about one ordinal.
type swapSeat struct {
	member            swapMember
	old               swapGlimpse
	target, oldTarget uint8
	mark              uint8
	same, flight      bool
}

func (a swapSeat) compare(b swapSeat) int {
	x, y := a.words(), b.words()
	return slices.Compare(x[:], y[:])
}

func (a swapSeat) words() [4]uint64 {
	claim := func(c swapClaim) uint64 {
		return word{}.number(4, uint64(c.uid)).flag(c.terminating).number(8, uint64(c.record)).number(8, uint64(c.first)).number(4, uint64(c.snapshot)).number(4, uint64(c.aside)).number(4, uint64(c.patched)).bits
	}
	pod := func(p swapPod) word {
		return word{}.number(4, uint64(p.phase)).flag(p.terminating).number(8, uint64(p.told)).flag(p.late).flag(p.restores).flag(p.restored).number(4, uint64(p.snapshot)).flag(p.off).flag(p.emptyLong)
	}
	return [4]uint64{
		claim(a.member.claim)<<16 | uint64(a.member.made)<<8 | uint64(a.member.from), pod(a.member.pod).number(8, uint64(a.member.hidden)).number(8, uint64(a.member.disk)).number(8, uint64(a.target)).number(8, uint64(a.oldTarget)).flag(a.same).flag(a.flight).bits,
		claim(a.old.claim)<<8 | uint64(a.mark), pod(a.old.pod).number(8, uint64(a.old.answer)).flag(a.old.led).bits,
	}
}
