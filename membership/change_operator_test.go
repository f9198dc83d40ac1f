package membership

import "slices"

// The model of the operator around Plan: what package reconcile does for a step, effect by effect.
// Between any two of them it may crash, and where it is slow the world goes on meanwhile.

// rollPlanner is what is explored: the rules, and the operator that carries out what they decide.
type rollPlanner struct {
	phases   []Phase
	see      func(Desired, Observed) (Desired, Observed) // nil: what there is
	operator rollCareless
}

// rollCareless are ways in which package reconcile could go wrong around a Plan that is right. The
// zero value is as it must be.
type rollCareless struct {
	forgetsNext     bool // recreates a Pod without a word on its volume of what is to run in it
	forgetsVersion  bool // writes nothing on the volume when it changes an image in place
	ignoresVersions bool // writes to volumes and Pods though they have changed since its look
	ignoresUIDs     bool // deletes whichever Pod has the name
	ignoresIntents  bool // begins though another operator's act is under way
	forgetsCalls    bool // begins though a downgrade, or its end, was asked for and not answered
	startsOver      bool // applies a Pod that is to be started to one that is there
	forgetsFailure  bool // does not remember what it has rolled back
	keepsLeader     bool // hands no leadership over
	forgetsSpec     bool // takes an act for done because the spec does not ask for it any more
	ignoresServed   bool // recreates every Pod of what the spec says
	servesEarly     bool // takes what it starts a member with for what that has served with
	believesAnswers bool // takes what a member answers with for what that has served with
	forgetsTrial    bool // takes off a volume at the first answer what its member is being changed to
	forgetsCrashes  bool // takes an answer for proof though etcd has crashed since the change
	servesAnyhow    bool // takes what the spec says for what a member serves with
	forgetsMended   bool // recreates a Pod that is stuck from what it was made of, though the spec was mended
	forgetsInstead  bool // recreates a Pod whose image cannot be pulled from the version that it had
	triesAgain      bool // takes a Pod for outdated that was rolled back
	putsBackFirst   bool // deletes a Pod to put its member back before it knows whether the volume can be written on
	announcesFirst  bool // writes on a volume what is to run there before it knows whether it can be
	forgetsLog      bool // writes that 3.6 has run where 3.5 ran before, and nothing of the log of that
	raisesNext      bool // writes what has run as what comes next, and not as what has run
	countsAnswers   bool // goes on to the next version when all members that answer run this one
	triesSpec       bool // recreates the Pod of a member that is being changed from what the spec says by then
}

// rollDecision is a Step in the terms of the model.
type rollDecision struct {
	step   Step
	who    uint8       // the seats that it names
	target int         // the first of them
	to     rollVersion // its version
	same   uint8       // the seats of which nothing needs to change
	asked  uint8       // the seats whose Pod is what the spec asks for, as far as that goes in one step
	stuck  uint8       // the seats whose Pod is outdated, for a spec that was not given up
	blind  bool        // no member could be asked

	instead [rollSeats]rollVersion // with which they are to be started whose image cannot be pulled

	replays [rollSeats]rollMark // what is to be recorded of their logs
}

func (p *rollPlanner) decide(g *rollGlance, recreates bool) rollDecision {
	d, o := g.facts(recreates, p.operator)
	if p.see != nil {
		d, o = p.see(d, o)
	}
	t := rollDecision{step: plan(p.phases, d, o), blind: g.blind}
	for _, i := range o.Instances {
		if i.Pod.Change == ChangeNone {
			t.same |= 1 << i.Ordinal
		}
		if i.StillWanted() {
			t.asked |= 1 << i.Ordinal
		}
		if i.Pod.Outdated && d.GivenUp == "" {
			t.stuck |= 1 << i.Ordinal
		}
		t.instead[i.Ordinal] = rollOf(SubstitutePatch(d, o, i))
	}
	if !t.step.Acts() {
		return t
	}
	for _, name := range slices.Backward(t.step.Members) {
		t.target = int(name[len(name)-1] - '0')
		t.who |= 1 << t.target
	}
	for _, i := range o.Instances {
		t.replays[i.Ordinal] = map[string]rollMark{"": marksNobody, ReplaysAny: marksAny, ReplaysRisen: marksRisen, ReplaysPast: marksPast}[Replays(d, o, i)]
	}
	switch t.step.Action {
	case Update, PutBack, Start, Provision, Join, Raise, Repair:
		t.to = rollOf(t.step.Version)
	case Downgrade:
		t.to = map[int]rollVersion{5: roll35, 6: roll36}[t.step.Version.Minor]
	default: // no version
	}
	return t
}

// carry yields the world after each effect of a step, and tells of the last one.
func (p *rollPlanner) carry(w roll, f rollFlight, yield func(to roll, complete bool)) {
	s := &w.seats[f.seat]
	c := p.operator
	if w.memory { // what a volume would say is said by the Pod
		p.carryInMemory(w, f, yield)
		return
	}
	podSame, podVersion, claim := s.image != rollNone && (f.pod || c.ignoresUIDs), s.image != rollNone && f.pod && (f.podVersion || c.ignoresVersions), !s.lost && (f.claim || c.ignoresVersions)
	// A pass ends at a write that is refused.
	refused := func(kind rollWrite) bool {
		if w.refused == kind {
			yield(w, true)
		}
		return w.refused == kind
	}
	switch f.action {
	case actDowngrade, actCancel:
		w.askEtcd(f)
	case actStart:
		// One that is slow for as long as another one takes to change the member, and a Pod to go
		// again, is beyond this.
		if s.lost || s.role < rollLearner || s.going || (s.image != rollNone || !f.claim) && !c.startsOver {
			return
		}
		if refused(writeCreate) {
			return
		}
		s.image, s.previous, s.failing, s.undone, s.template = f.to, rollNone, false, false, w.made(s)
		if c.ignoresServed {
			s.template = w.template
		}
		if s.next == rollNone && s.template != s.good && w.wronglyMade(s) { // it was not changed
			s.tried = max(s.tried, 1)
		}
		if c.servesEarly {
			s.good = s.template
		}
	case actRecord:
		if !claim || refused(writeClaim) {
			return
		}
		s.replays = f.replays
		w.serves(s, c)
		if s.volume = f.to; s.proof == rollProved || s.next != f.to || c.forgetsTrial {
			s.next = rollNone
		}
		yield(w, false)
		if podVersion && s.settled() && s.previous != rollNone {
			if refused(writePod) {
				return
			}
			s.previous = rollNone
		}
	case actRaise:
		if !claim || refused(writeClaim) {
			return
		}
		s.trial = s.image != rollNone && s.image.minor() < f.to.minor()
		if s.volume.minor() == 5 && !c.forgetsLog {
			s.replays = marksAny
		}
		switch {
		case c.raisesNext:
			s.next = f.to
		case s.next == f.to:
			s.volume = f.to
		default:
			s.volume, s.next = f.to, rollNone
		}
	case actStop:
		to := s.is()
		if f.to != rollNone && !c.forgetsInstead {
			to = f.to
		}
		if f.change == rollAnew && (s.next != to || s.trying != f.trying(s)) && !c.forgetsMended {
			if !claim || refused(writeClaim) {
				return
			}
			s.next, s.trying, s.stray = to, f.trying(s), s.stray || !f.pod
			yield(w, false)
		}
		if podVersion {
			if refused(writeDelete) {
				return
			}
			p.remove(&w, f.seat)
		}
	case actUpdate:
		if !c.announcesFirst && !w.rehearsed(f, c.marks(f, s)) {
			return
		}
		if s.voter() && int(w.leader) == int(f.seat)+1 && !c.keepsLeader {
			w.handOver()
			yield(w, false)
		}
		if c.marks(f, s) && refused(writeClaim) || !p.mark(&w, f, claim) {
			return
		}
		yield(w, false)
		if refused(map[rollChange]rollWrite{rollInPlace: writePod, rollAnew: writeDelete}[f.change]) {
			return
		}
		switch {
		case f.change != rollInPlace && podSame:
			p.remove(&w, f.seat)
			s.ours = true
			s.change(f)
		case f.change == rollInPlace && podVersion && !s.going:
			s.previous, s.image, s.before, s.putOff = s.image, f.to, true, false
			s.failing, s.undone, s.served, s.ours, s.early = false, false, false, true, false
			s.change(f)
		}
	case actPutBack:
		if s.next != rollNone && claim && !c.putsBackFirst && refused(writeClaim) {
			return
		}
		over := w.unseen && s.changesMinor()
		if f.none && f.spec && !c.forgetsFailure { // of a spec that has changed since nothing can be written
			w.givenUp = true
			yield(w, false)
		}
		switch { // the kubelet still says that the container failed
		case s.image == rollNone && w.refused == writeCreate && claim: // there is none
		case !s.settled() && podVersion && !s.going && refused(writePod), s.settled() && podSame && refused(writeDelete):
			return
		case !s.settled() && podVersion && !s.going:
			s.image, s.previous, s.before, s.putOff = s.previous, rollNone, true, false
			s.undone, s.served, s.ours, s.early = true, false, true, false
		case s.settled() && podSame && (podVersion || c.ignoresUIDs):
			s.ours = s.ours || s.runs != rollNone // one that is down by itself is not away by this
			p.remove(&w, f.seat)
		default:
			return
		}
		s.trial = s.trial || over
		if s.next != rollNone && claim {
			yield(w, false)
			if refused(writeClaim) {
				return
			}
			s.next = rollNone
		}
	default:
	}
	yield(w, true)
}

// askEtcd for a downgrade, or to take it back.
func (w *roll) askEtcd(f rollFlight) {
	switch {
	case f.action == actCancel && w.quorate():
		w.cancel()
	case f.action == actDowngrade && w.down == 0 && w.quorate() && f.to.minor() == w.cluster-1:
		w.down = f.to.minor()
	}
}

// cancel a downgrade. For some seconds it could not be known whether the data of those that run are
// about to follow the cluster's version down, or to stay, for it rises again: that is over at once
// here.
func (w *roll) cancel() {
	w.down = 0
	w.decide()
	for i := range w.seats {
		if w.migrates(i) {
			w.seats[i].storage = w.cluster
		}
	}
}

// changesMinor reports whether etcd of another minor may have run than the volume says.
func (s *rollSeat) changesMinor() bool {
	return s.image != rollNone && s.image.minor() != s.volume.minor() || s.next != rollNone && s.next.minor() != s.volume.minor()
}

// change is remembered, where it was decided for the spec of now.
func (s *rollSeat) change(f rollFlight) {
	if f.spec {
		s.tried = max(s.tried, 1)
	}
}

// marks reports whether a change is announced on the volume.
func (c rollCareless) marks(f rollFlight, s *rollSeat) bool {
	return f.change == rollAnew && !c.forgetsNext || f.change == rollInPlace && f.to != s.volume && !c.forgetsVersion
}

// mark writes on the volume what is to run on it.
func (p *rollPlanner) mark(w *roll, f rollFlight, claim bool) bool {
	s := &w.seats[f.seat]
	c := p.operator
	if !c.marks(f, s) {
		return true
	}
	if claim {
		s.next, s.trying, s.stray = f.to, f.trying(s), s.stray || !f.pod
		if c.triesSpec {
			s.trying = rollUnknown
		}
	}
	return claim
}

// remove deletes a Pod, which takes its time if it runs.
func (p *rollPlanner) remove(w *roll, i uint8) {
	if w.seats[i].runs == rollNone {
		w.vanish(int(i))
	} else {
		w.seats[i].going = true
	}
}
