package membership

// ringState is a world, what may still go wrong in it, and what an operator that is behind
// believes.
type ringState struct {
	ring   ring
	budget ringBudget
	behind ringBehind
	old    ring  // what the operator that is behind saw last
	same   uint8 // the Pods, by seat, that are still those of then
	used   uint8 // the seats that were taken since
}

// ringBudget bounds what would make the states infinite. Others happen as often as they like.
type ringBudget struct{ losses, kills, specs, kinds, hands, corruptions, delays uint8 }

// ringBehind is how an operator is behind.
type ringBehind uint8

const (
	behindNot     ringBehind = iota
	behindObjects            // with volumes and Pods; etcd is asked again
	behindAll                // it paused in its pass, and carries out what it decided
)

// ringKey is a state in 448 bits. States that differ only in how often a name was used before are
// one.
type ringKey [7]uint64

// canonical forgets what cannot matter any more, and moves the seats that are free to the end. The
// order of the others stays: Plan goes by it, and a fresh name comes after all others.
func (s *ringState) canonical() {
	w := &s.ring
	if s.behind == behindNot {
		s.old, s.same, s.used = ring{}, 0, 0
	}
	w.tidy()
	s.old.tidy()
	if w.kind == 1 { // which of the two it is does not matter
		w.flip()
		if s.behind != behindNot {
			s.old.flip()
		}
	}
	if w.flights[0].action == flightNone || w.flights[1].action != flightNone && flightLess(w.flights[1], w.flights[0]) {
		w.flights[0], w.flights[1] = w.flights[1], w.flights[0]
	}
	to := 0
	var place [ringSeats + 1]uint8
	for i := range w.seats {
		m := &w.seats[i]
		if m.raft == raftRemoved && m.disk != diskNone && !m.spare {
			m.disk = diskData
		}
		if m.disk != diskData {
			m.holds = false
			w.hashes.data.set(i, dataRight)
		}
		if (m.claim == claimNone || m.retired) && m.pod == podNone && !m.member() && s.unreferenced(i) {
			*m = ringSeat{}
			w.kinds, w.young = w.kinds&^(1<<i), w.young&^(1<<i)
			w.hashes.clear(i)
			continue
		}
		if to != i {
			w.kinds, s.old.kinds = moveBit(w.kinds, i, to), moveBit(s.old.kinds, i, to)
			w.hashes.move(i, to)
			w.young, s.old.young = moveBit(w.young, i, to), moveBit(s.old.young, i, to)
			w.seats[to], *m = *m, ringSeat{}
			s.old.seats[to], s.old.seats[i] = s.old.seats[i], ringSeat{}
			s.same, s.used = moveBit(s.same, i, to), moveBit(s.used, i, to)
		}
		place[i] = uint8(to)
		to++
	}
	move := func(ref *uint8) {
		if *ref > 0 && *ref <= ringSeats {
			*ref = place[*ref-1] + 1
		}
	}
	move(&w.leader)
	move(&w.alarm)
	move(&s.old.alarm)
	for n := range w.flights {
		if w.flights[n].action != flightNone {
			w.flights[n].seat = place[w.flights[n].seat]
		}
	}
}

// tidy forgets of which kind the volumes were that are gone.
func (w *ring) tidy() { w.kinds &= w.claims() }

// flip calls each of the two kinds by the name of the other.
func (w *ring) flip() { w.kind, w.kinds = w.kind^1, w.kinds^w.claims() }

// claims are the seats that have a volume.
func (w *ring) claims() (seats uint8) {
	for i := range w.seats {
		if w.seats[i].claim != claimNone {
			seats |= 1 << i
		}
	}
	return seats
}

// unreferenced reports whether it is not known that the seat was ever taken.
func (s *ringState) unreferenced(i int) bool {
	w := &s.ring
	for _, f := range w.flights {
		if f.action != flightNone && int(f.seat) == i {
			return false
		}
	}
	return int(w.alarm) != i+1 && (s.behind == behindNot || s.old.seats[i] == ringSeat{} && s.used>>i&1 == 0 && int(s.old.alarm) != i+1)
}

func flightLess(a, b ringFlight) bool {
	return a.action < b.action || a.action == b.action && a.seat < b.seat
}

func moveBit(ringBits uint8, from, to int) uint8 {
	on := ringBits >> from & 1
	ringBits &^= 1<<from | 1<<to
	return ringBits | on<<to
}

// pack and unpack are each other's inverse on canonical states.
func (s *ringState) pack() ringKey {
	var k ringKey
	for i := range 3 {
		k[0] = k[0]<<21 | s.ring.seats[i].bits()
		k[1] = k[1]<<21 | s.ring.seats[i+3].bits()
	}
	kinds := ringBits(s.budget.kinds)
	kinds.put(7, s.ring.kinds)
	kinds.put(1, s.old.kind)
	kinds.put(7, s.old.kinds)
	k[2] = uint64(kinds)<<42 | s.ring.seats[6].bits()
	w := &s.ring
	var g ringBits
	g.put(3, w.size)
	g.put(3, w.leader)
	g.put(4, w.alarm)
	g.put(2, uint8(w.stranger))
	for _, f := range w.flights {
		g.put(3, uint8(f.action))
		g.put(3, f.seat)
	}
	g.put(2, s.budget.losses)
	g.put(2, s.budget.kills)
	g.put(3, s.budget.specs)
	g.put(2, s.budget.hands)
	g.put(1, s.budget.delays)
	if s.behind != behindNot {
		g.put(7, s.same)
		g.put(7, s.used)
		g.put(3, s.old.size)
		g.put(4, s.old.alarm)
		g.put(2, uint8(s.old.stranger))
		for i := range 3 {
			k[4] = k[4]<<21 | s.old.seats[i].bits()
			k[5] = k[5]<<21 | s.old.seats[i+3].bits()
		}
		k[2] |= s.old.seats[6].bits() << 21
	}
	g.put(2, uint8(s.behind))
	k[3] = uint64(g)
	var b ringBits
	b.flag(w.backOff)
	b.put(7, w.young)
	b.flag(s.old.backOff)
	b.put(7, s.old.young)
	k[6] = uint64(b)<<45 | w.hashes.bits()<<2 | uint64(s.budget.corruptions)
	return k
}

func (k ringKey) unpack() ringState {
	var s ringState
	w := &s.ring
	s.budget.corruptions = uint8(k[6] & 3)
	w.hashes = hashesOf(k[6] >> 2)
	b := ringBits(k[6] >> 45)
	s.old.young = b.take(7)
	s.old.backOff = b.take(1) == 1
	w.young = b.take(7)
	w.backOff = b.take(1) == 1
	g := ringBits(k[3])
	if s.behind = ringBehind(g.take(2)); s.behind != behindNot {
		s.old.stranger = ringRole(g.take(2))
		s.old.alarm = g.take(4)
		s.old.size = g.take(3)
		s.used = g.take(7)
		s.same = g.take(7)
		for i := range 3 {
			s.old.seats[i] = seatOf(k[4] >> (21 * (2 - i)))
			s.old.seats[i+3] = seatOf(k[5] >> (21 * (2 - i)))
		}
		s.old.seats[6] = seatOf(k[2] >> 21)
	}
	s.budget.delays = g.take(1)
	s.budget.hands = g.take(2)
	s.budget.specs = g.take(3)
	s.budget.kills = g.take(2)
	s.budget.losses = g.take(2)
	for n := 1; n >= 0; n-- {
		w.flights[n].seat = g.take(3)
		w.flights[n].action = ringCall(g.take(3))
	}
	w.stranger = ringRole(g.take(2))
	w.alarm = g.take(4)
	w.leader = g.take(3)
	w.size = g.take(3)
	for i := range 3 {
		w.seats[i] = seatOf(k[0] >> (21 * (2 - i)))
		w.seats[i+3] = seatOf(k[1] >> (21 * (2 - i)))
	}
	w.seats[6] = seatOf(k[2])
	kinds := ringBits(k[2] >> 42)
	s.old.kinds = kinds.take(7)
	s.old.kind = kinds.take(1)
	w.kinds = kinds.take(7)
	s.budget.kinds = kinds.take(2)
	return s
}

// ringBits are small values, one behind the other.
type ringBits uint64

func (b *ringBits) put(width int, v uint8) { *b = *b<<width | ringBits(v) }

func (b *ringBits) flag(on bool) {
	*b <<= 1
	if on {
		*b |= 1
	}
}

func (b *ringBits) take(width int) uint8 {
	v := uint8(*b & (1<<width - 1))
	*b >>= width
	return v
}

func (s *ringSeat) bits() uint64 {
	var b ringBits
	b.put(2, uint8(s.raft))
	b.flag(s.named)
	b.flag(s.matched)
	b.flag(s.holds)
	b.put(2, uint8(s.claim))
	b.flag(s.spare)
	b.put(2, uint8(s.joins))
	b.flag(s.recorded)
	b.flag(s.retired)
	b.put(2, uint8(s.disk))
	b.put(3, uint8(s.pod))
	b.flag(s.terminating)
	b.flag(s.unfenced)
	b.flag(s.cutOff)
	b.flag(s.forsaken)
	return uint64(b)
}

func seatOf(v uint64) ringSeat {
	b := ringBits(v)
	on := func() bool { return b.take(1) == 1 }
	var s ringSeat
	s.forsaken, s.cutOff, s.unfenced, s.terminating = on(), on(), on(), on()
	s.pod = ringPod(b.take(3))
	s.disk = ringDisk(b.take(2))
	s.retired, s.recorded = on(), on()
	s.joins = ringMark(b.take(2))
	s.spare = on()
	s.claim = ringClaim(b.take(2))
	s.holds, s.matched, s.named = on(), on(), on()
	s.raft = ringRole(b.take(2))
	return s
}
