package membership

import "slices"

// ringGlance is everything that an operator sees of a world at one time, packed: decisions are
// remembered by it.
type ringGlance struct {
	seats [ringSeats]uint32
	rest  ringBits
}

// glance at a world in which the seats of taken are no fresh names, though nothing is left of them.
func (w *ring) glance(taken uint8, asked, overdue, leads bool) ringGlance {
	var g ringGlance
	reach := ReachNone
	for i := range w.seats {
		s := w.seats[i]
		switch {
		case s.serves() && s.member() && asked:
			reach = max(reach, ReachSome)
		case s.runs() && s.terminating: // it is not asked
			s.pod = podUp
		case s.runs() && s.member() && w.backOff: // it is not asked, and its kubelet is not away
			s.pod = podMute
		case s.runs() && (!s.member() || !asked):
			s.pod = podCrashed
		}
		empty, accused := s.pod == podExited && s.member() && s.disk != diskData && !s.unfenced, s.accused()
		s.disk = diskNone
		switch {
		case s.fetches() && !s.terminating:
			s.disk = diskBlank // to tell it from one that has its data
		case empty:
			s.disk = diskWiped // etcd says so
		case accused:
			s.disk = diskData // and so it does here
		}
		s.matched = false
		s.holds = leads && s.holds && s.serves()
		g.seats[i] = uint32(s.bits())
	}
	if reach == ReachSome && w.quorate() {
		reach = ReachQuorum
	}
	unfit := uint8(0)
	for i := range w.seats {
		if w.unfit(i) {
			unfit |= 1 << i
		}
	}
	alarm, leader, stranger := w.alarm, w.leader, w.stranger
	if reach == ReachNone {
		alarm, leader, stranger = 0, 0, raftNone
	}
	for _, f := range w.flights {
		if f.action != flightNone {
			taken |= 1 << f.seat
		}
	}
	compared, sums := w.known(asked)
	g.rest.put(7, compared)
	g.rest = g.rest<<14 | ringBits(sums)
	g.rest.put(7, unfit)
	g.rest.put(7, taken)
	g.rest.put(3, w.size)
	g.rest.put(4, alarm)
	g.rest.put(3, leader)
	g.rest.put(2, uint8(stranger))
	young, ready := uint8(0), w.quorate() && w.serving(-1) > 0
	if w.backOff {
		young = w.young
	}
	g.rest.flag(w.backOff)
	g.rest.put(7, young)
	g.rest.flag(w.backOff && ready)
	g.rest.put(2, uint8(reach))
	g.rest.flag(overdue)
	return g
}

// believes is the glance of the operator that is behind.
func (s *ringState) believes() ringGlance {
	if s.behind == behindAll {
		return s.old.glance(0, true, false, false)
	}
	mixed := s.ring
	mixed.kinds = s.old.kinds
	for i := range mixed.seats {
		m, o := &mixed.seats[i], s.old.seats[i]
		now := m.pod
		heard := m.runs() && s.same>>i&1 == 1 && o.pod >= podWaiting
		o.raft, o.named, o.matched, o.holds = m.raft, m.named, m.matched, m.holds
		*m = o
		switch {
		case heard:
			m.pod = now
		case m.runs():
			m.pod = podCrashed
		}
	}
	g := mixed.glance(0, true, false, false) // with the names that were fresh then
	if g.rest&reachBits != 0 {               // a member that is heard speaks for all
		reach := ReachSome
		if s.ring.quorate() {
			reach = ReachQuorum
		}
		g.rest = g.rest&^reachBits | ringBits(reach)<<1
	}
	return g
}

// reachBits are where a glance has its Reach.
const reachBits ringBits = 3 << 1

func ringID(i int) ID { return ID(0x10 + i) }

// ringClusterID is that of the only cluster there is.
const ringClusterID ID = 0xc

// facts is the glance in the terms of Plan.
func (g ringGlance) facts(retain bool) (Desired, Observed) {
	rest := g.rest
	overdue := rest.take(1) == 1
	reach := Reach(rest.take(2))
	ready, young, backOff := rest.take(1) == 1, rest.take(7), rest.take(1) == 1
	stranger := ringRole(rest.take(2))
	leader, alarm, size, taken := rest.take(3), rest.take(4), rest.take(3), rest.take(7)
	unfit := rest.take(7)
	sums := ringData(rest & 0x3fff)
	rest >>= 14
	compared := rest.take(7)
	d := Desired{Size: int(size), Version: Version{3, 7, 1}, Token: "token", Retain: retain}
	o := Observed{ClusterID: ringClusterID, Reach: reach, Remembered: true}
	e := Endpoint{ClusterID: ringClusterID, Version: d.Version}
	if reach == ReachQuorum {
		e.Leader = 0xff
		if leader > 0 {
			e.Leader = ringID(int(leader) - 1)
		}
	}
	switch {
	case alarm == ringNobody:
		e.Alarms = []Alarm{{Kind: AlarmCorrupt}}
	case alarm > 0:
		e.Alarms = []Alarm{{Kind: AlarmCorrupt, Member: ringID(int(alarm) - 1)}}
	}
	for n := range g.seats {
		s := seatOf(uint64(g.seats[n]))
		if s.member() && reach == ReachQuorum {
			m := Member{ID: ringID(n), PeerURLs: []string{"http://" + seatName(n)}, Learner: s.raft == raftLearner}
			if s.named {
				m.Name = seatName(n)
			}
			o.Members = append(o.Members, m)
		}
		if s.claim == claimNone && s.pod == podNone && !s.member() {
			if s.raft == raftNone && taken>>n&1 == 0 {
				o.Fresh = append(o.Fresh, seatName(n))
			}
			continue
		}
		i := Instance{Name: seatName(n), Ordinal: n, Volume: s.volume(n), Pod: s.podFacts(overdue)}
		if i.Pod.BackOff = backOff && s.pod == podCrashed && !s.cutOff; i.Pod.BackOff {
			i.Pod.Young = young>>n&1 == 1
		}
		if i.Pod.Ready = backOff && ready && s.runs() && s.raft == raftVoter; i.Pod.Ready {
			i.Pod.ReadyLong = overdue
		}
		if unfit>>n&1 == 1 {
			i.Volume.Unfit = "is of another kind"
		}
		if s.member() || s.recorded && reach == ReachQuorum { // what only a volume says is not remembered
			i.ID = ringID(n)
		}
		if s.pod == podMute && !s.terminating && reach == ReachQuorum { // it is not known it otherwise
			i.Endpoint = Endpoint{ClusterID: ringClusterID, Version: d.Version, Publishing: ringID(n)}
			if s.disk == diskBlank {
				i.Endpoint.Publishing, i.Endpoint.Fetching = 0, ringID(n)
			}
		}
		if s.serves() && compared>>n&1 == 1 {
			i.Hash = Hash{Revision: 1, Sum: uint32(sums.of(n))}
		}
		if s.serves() {
			i.Endpoint = e
			i.Endpoint.MemberID, i.Endpoint.Learner = ringID(n), s.raft == raftLearner
			if s.holds {
				i.Endpoint.RaftIndex = 1
			}
		}
		o.Instances = append(o.Instances, i)
	}
	if stranger != raftNone && reach == ReachQuorum {
		o.Members = append(o.Members, Member{ID: 0xfe, PeerURLs: []string{"http://elsewhere"}, Learner: stranger == raftLearner})
	}
	slices.SortFunc(o.Members, func(a, b Member) int { return int(b.ID) - int(a.ID) })
	return d, o
}

func (s *ringSeat) volume(n int) Volume {
	if s.claim == claimNone {
		return Volume{}
	}
	v := Volume{UID: "volume of " + seatName(n), Terminating: s.claim == claimDoomed, Replaced: s.claim == claimCopied, Spare: s.spare, Retired: s.retired}
	switch s.joins {
	case joinsNobody:
	case joinsNow:
		v.Joins = ringID(n)
	case joinsBefore:
		v.Joins = ringID(n) << 8
	}
	if s.recorded {
		v.ClusterID, v.MemberID, v.Version = ringClusterID, ringID(n), Version{3, 7, 1}
	}
	return v
}

func (s *ringSeat) podFacts(overdue bool) Pod {
	if s.pod == podNone {
		return Pod{}
	}
	p := Pod{
		UID: "pod", Terminating: s.terminating, Unfenced: s.unfenced, Forsaken: s.forsaken,
		Provisions: s.pod == podMaking || s.pod == podReady, Provisioned: s.pod == podReady, NeverRan: s.pod <= podWaiting,
	}
	switch {
	case s.cutOff:
		p.Problem, p.Damaged = "is on a node that is lost", true
	case s.pod == podMaking, s.pod == podWaiting:
		p.Problem = "cannot be scheduled"
	case s.pod == podCrashed:
		p.Problem, p.Damaged = "has crashed", true
	case s.accused():
		p.Problem = inconsistency
	case s.pod == podExited:
		p.Problem, p.Damaged = "exited with code 1", true
	case s.runs() && s.forsaken:
		p.Problem, p.Damaged = "is on a node that does not answer", true
	}
	// Patience is another one then, with a voter that is known to have had data.
	if s.pod == podExited && s.disk == diskWiped {
		p.Empty, p.EmptyLong, p.Forsaken = true, s.forsaken, s.forsaken && (!s.recorded || s.raft != raftVoter)
	}
	p.Overdue = p.Problem != "" && overdue
	return p
}
