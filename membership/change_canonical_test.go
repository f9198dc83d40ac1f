package membership

import "testing"

// rollKey is a state, packed: a word for each seat, and one for the rest.
type rollKey [rollSeats + 1]uint64

// canonical forgets what cannot matter any more.
func (s *rollState) canonical() {
	for i := range s.roll.seats {
		m := &s.roll.seats[i]
		if m.previous == rollNone && m.next == rollNone {
			m.served = false
			m.before = m.before && m.runs != rollNone
		}
		if m.next == rollNone {
			m.trying = rollFirst
		}
	}
	if s.late.action == actNone {
		s.late = rollFlight{}
	}
}

// pack and unpack are each other's inverse on canonical states.
func (s *rollState) pack() rollKey {
	w := &s.roll
	var k rollKey
	for i := range w.seats {
		k[i] = w.seats[i].bits()
	}
	k[0] |= w.guard() // the word for the rest is full
	k[1] |= uint64(w.refused) << guardBits
	k[2] |= uint64(s.budget.silences)<<guardBits | uint64(one(w.unstarted))<<63
	k[3] |= uint64(one(w.unseen)|one(w.patient)<<1|one(w.onOne)<<2) << guardBits
	if w.unpulled {
		k[4] |= 1 << guardBits
	}
	k[4] |= uint64(s.late.action>>3)<<(guardBits+1) | uint64(one(w.memory))<<63 // its word has three bits for the act
	var g ringBits
	g.put(3, w.size)
	g.put(3, uint8(w.spec))
	g.put(2, uint8(w.template))
	g.put(3, w.wrong)
	g.flag(w.passing != 0) // of the wrong options alone
	g.flag(w.mute)
	g.flag(w.givenUp)
	g.put(6, w.broken)
	g.flag(w.lies)
	g.flag(w.alarm)
	g.flag(w.corrupt)
	g.flag(w.sized)
	g.put(2, uint8(w.db))
	g.put(3, w.leader)
	g.put(3, uint8(w.cluster))
	g.put(3, uint8(w.down))
	g.put(2, s.budget.specs)
	g.put(2, s.budget.crashes)
	g.put(1, s.budget.losses)
	g.put(1, s.budget.delays)
	g.put(1, s.budget.moves)
	g.put(2, s.budget.alarms)
	g.put(3, uint8(s.late.action&7))
	g.put(2, uint8(s.late.change))
	g.put(3, s.late.seat)
	g.put(3, uint8(s.late.to))
	g.put(2, uint8(s.late.made))
	g.put(2, uint8(s.late.replays))
	g.flag(s.late.none)
	g.flag(s.late.pod)
	g.flag(s.late.podVersion)
	g.flag(s.late.claim)
	g.flag(s.late.spec)
	k[rollSeats] = uint64(g)
	return k
}

func (k rollKey) unpack() rollState {
	var s rollState
	w := &s.roll
	g := ringBits(k[rollSeats])
	on := func() bool { return g.take(1) == 1 }
	s.late.spec, s.late.claim, s.late.podVersion, s.late.pod, s.late.none = on(), on(), on(), on(), on()
	s.late.replays = rollMark(g.take(2))
	s.late.made = rollOptions(g.take(2))
	s.late.to = rollVersion(g.take(3))
	s.late.seat = g.take(3)
	s.late.change = rollChange(g.take(2))
	s.late.action = rollAct(g.take(3))
	s.budget.alarms = g.take(2)
	s.budget.moves = g.take(1)
	s.budget.delays = g.take(1)
	s.budget.losses = g.take(1)
	s.budget.crashes = g.take(2)
	s.budget.specs = g.take(2)
	w.down = rollMinor(g.take(3))
	w.cluster = rollMinor(g.take(3))
	w.leader = g.take(3)
	w.db = rollSize(g.take(2))
	w.sized, w.corrupt, w.alarm = on(), on(), on()
	w.lies = on()
	w.broken = g.take(6)
	w.givenUp = on()
	w.mute = on()
	w.passing = g.take(1) << rollWrong
	w.wrong = g.take(3)
	w.template = rollOptions(g.take(2))
	w.spec = rollVersion(g.take(3))
	w.size = g.take(3)
	w.unguard(k[0])
	k[0] &= 1<<guardBits - 1
	w.refused = rollWrite(k[1] >> guardBits)
	k[1] &= 1<<guardBits - 1
	s.budget.silences, w.unstarted = uint8(k[2]>>guardBits)&3, k[2]>>63 == 1
	k[2] &= 1<<guardBits - 1
	w.unseen, w.patient, w.onOne = k[3]>>guardBits&1 == 1, k[3]>>(guardBits+1)&1 == 1, k[3]>>(guardBits+2)&1 == 1
	k[3] &= 1<<guardBits - 1
	w.unpulled = k[4]>>guardBits&1 == 1
	s.late.action |= rollAct(k[4]>>(guardBits+1)&1) << 3
	w.memory = k[4]>>63 == 1
	k[4] &= 1<<guardBits - 1
	for i := range w.seats {
		w.seats[i] = rollSeatOf(k[i])
	}
	return s
}

func (s *rollSeat) bits() uint64 {
	var b ringBits
	b.put(3, uint8(s.role))
	b.put(3, uint8(s.image))
	b.put(3, uint8(s.previous))
	b.put(3, uint8(s.runs))
	b.flag(s.before)
	b.flag(s.failing)
	b.flag(s.going)
	b.flag(s.undone)
	b.put(2, uint8(s.template))
	b.put(2, uint8(s.good))
	b.put(2, uint8(s.trying))
	b.flag(s.lags)
	b.put(3, uint8(s.volume))
	b.put(3, uint8(s.next))
	b.put(2, uint8(s.replays))
	b.flag(s.lost)
	b.flag(s.old)
	storage := uint8(0)
	if s.storage > 0 {
		storage = uint8(s.storage) - 4
	}
	b.put(2, storage)
	b.flag(s.served)
	b.flag(s.ours)
	b.put(2, s.tried)
	b.flag(s.stray)
	b.flag(s.putOff)
	b.put(2, uint8(s.proof))
	b.flag(s.early)
	b.flag(s.trial)
	b.put(2, uint8(s.silent))
	return uint64(b)
}

func rollSeatOf(v uint64) rollSeat {
	b := ringBits(v)
	on := func() bool { return b.take(1) == 1 }
	var s rollSeat
	s.silent = rollSilence(b.take(2))
	s.trial, s.early = on(), on()
	s.proof = rollProof(b.take(2))
	s.putOff, s.stray, s.tried = on(), on(), b.take(2)
	s.ours, s.served = on(), on()
	if storage := b.take(2); storage > 0 {
		s.storage = rollMinor(storage) + 4
	}
	s.old, s.lost = on(), on()
	s.replays = rollMark(b.take(2))
	s.next = rollVersion(b.take(3))
	s.volume = rollVersion(b.take(3))
	s.lags = on()
	s.trying = rollOptions(b.take(2))
	s.good = rollOptions(b.take(2))
	s.template = rollOptions(b.take(2))
	s.undone, s.going, s.failing, s.before = on(), on(), on(), on()
	s.runs = rollVersion(b.take(3))
	s.previous = rollVersion(b.take(3))
	s.image = rollVersion(b.take(3))
	s.role = rollRole(b.take(3))
	return s
}

// TestChangePacks shows that no two states are taken for one by the way in which they are packed.
func TestChangePacks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"OneSlow", "Lost", "Mislabelled", "OneFull", "OnePassing", "OneMute", "Guarded", "OneRefused", "OneFades", "OneSilent", "OneUnpulled", "OneInMemory"} {
		x, bad := exploreRoll(rollBounds[name].bound, rollPlanner{phases: Phases})
		if bad != nil {
			t.Fatal(bad)
		}
		for _, k := range x.states {
			s := k.unpack()
			x.successors(&s, func(e *rollEdge) {
				if got := e.to.pack().unpack(); got != e.to {
					t.Fatalf("%v becomes %v", e.to, got)
				}
			})
		}
	}
}
