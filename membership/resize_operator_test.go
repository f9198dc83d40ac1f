package membership

// The model of the operator around Plan: the effects of a step, one by one, as package reconcile
// has them. Between any two of them it may crash, and of effects on several members any may be
// missing.

// ringPlanner is what is explored: the rules, and the operator that carries out what they decide.
type ringPlanner struct {
	phases   []Phase
	see      func(Observed) Observed // nil: what there is
	operator ringCareless
}

// ringCareless are ways in which package reconcile could go wrong around a Plan that is right. The
// zero value is as it must be.
type ringCareless struct {
	startsUnfenced  bool // tells a member that comes back that it may start empty
	neverFences     bool // leaves a Pod that joined as it is
	ignoresVersions bool // writes to volumes and Pods, and deletes them, though they have changed since its look or are others
	reusesNames     bool // lets the volume of a learner that goes before it has started be that of the next
	spendsGoing     bool // does not remove a learner whose volume is being deleted, since that cannot be given to it any more
	joinsUnchecked  bool // starts learners without a look at the volume, whatever Pod is there
	ignoresStarts   bool // goes by a comparison that was made before a member has started, or another one votes
	checksAlways    bool // leaves etcd's check at the start on with a member that was ended by it
	startsUnchecked bool // starts members without another look at the volume
	makesUnchecked  bool // makes the Pods of members to come without a look at the volume
}

// ringDecision is a Step in the terms of the model.
type ringDecision struct {
	step   Step
	who    uint8 // the seats that it names
	target int   // the seat of its ID
}

func (p *ringPlanner) decide(g ringGlance, retain bool) ringDecision {
	d, o := g.facts(retain)
	if p.see != nil {
		o = p.see(o)
	}
	t := ringDecision{step: plan(p.phases, d, o)}
	if t.step.Acts() {
		for _, name := range t.step.Members {
			if name == "" { // no member
				continue
			}
			t.target = int(name[len(name)-1] - '0')
			t.who |= 1 << t.target
		}
	}
	if t.step.ID != 0 {
		t.target = int(t.step.ID - ringID(0))
	} else if t.step.Action == Disarm {
		t.target = ringNobody - 1
	}
	return t
}

// pass is an operator at work: what it saw, and what it may still rely on.
type pass struct {
	operator ringCareless
	retain   bool
	kind     uint8 // of volumes that it makes
	seen     *[ringSeats]ringSeat
	same     uint8 // the Pods that are still those that it saw
	used     uint8 // the seats that were taken since
}

// unchanged reports whether a volume is as it was seen: the API server refuses to write to any
// other version of it.
func (p *pass) unchanged(w *ring, i int) bool {
	a, b := &p.seen[i], &w.seats[i]
	if a.claim == claimNone {
		return b.claim == claimNone && p.used>>i&1 == 0
	}
	return p.operator.ignoresVersions || a.claim == b.claim && a.spare == b.spare && (a.joins == joinsNobody) == (b.joins == joinsNobody) && a.recorded == b.recorded && a.retired == b.retired
}

func (p *pass) samePod(i int) bool { return p.operator.ignoresVersions || p.same>>i&1 == 1 }

// effects of the step on one seat, the first so many of them; done tells that there are no more.
// renewed tells that its Pod is another one now.
func (p *pass) effects(w *ring, a Action, i, stages int) (violation string, renewed bool) {
	s, seen := &w.seats[i], &p.seen[i]
	if stages == 0 {
		return "", false
	}
	if s.claim == claimCopied && a != Stop && (p.unchanged(w, i) || a == Start && s.pod == podNone && p.operator.startsUnchecked) {
		return "S18: a volume that was restored is started, written on, or deleted", false
	}
	switch a {
	case Provision:
		if !p.unchanged(w, i) && (seen.claim == claimNone || !p.operator.makesUnchecked) {
			return "", false
		}
		if seen.claim == claimNone {
			if s.raft != raftNone {
				return "S9: a volume is made again for a name that was a member", false
			}
			s.claim, s.spare, s.disk = claimKept, true, diskBlank
			w.kinds = w.kinds&^(1<<i) | p.kind<<i
		}
		if stages > 1 && s.pod == podNone {
			s.pod = podMaking
			renewed = true
		}
	case Join:
		if !p.unchanged(w, i) && (seen.spare || !p.operator.joinsUnchecked) || s.claim == claimNone {
			return "", false
		}
		if s.spare {
			s.spare, s.joins = false, joinsNow
			if !s.member() {
				s.joins = joinsBefore
			}
		}
		gated := s.pod == podMaking || s.pod == podReady
		switch {
		case stages < 2:
		case gated && seen.pod != podNone && p.samePod(i) && !s.terminating:
			s.pod, s.unfenced = podWaiting, true
		case s.pod == podNone && seen.pod == podNone:
			s.pod, s.unfenced = podWaiting, true
			renewed = true
		case p.operator.joinsUnchecked && s.pod >= podWaiting && !s.terminating:
			s.unfenced = true // it is an apply, and changes what a Pod that is there is told
		}
	case Start:
		if s.pod == podNone && (p.unchanged(w, i) || p.operator.startsUnchecked) {
			s.pod, s.unfenced = podWaiting, p.operator.startsUnfenced
			renewed = true
		}
	case Record:
		if p.unchanged(w, i) && p.samePod(i) && s.claim != claimNone && s.runs() {
			s.recorded = true
		}
	case Stop:
		gated := seen.pod == podMaking || seen.pod == podReady
		// The delete of a Pod that waits names its version, too.
		waits := seen.pod == podCrashed && s.pod != podCrashed && s.member()
		if waits && !p.operator.ignoresVersions {
			return "", false
		}
		if s.pod == podNone || !p.samePod(i) || gated && s.pod >= podWaiting && !p.operator.ignoresVersions {
			return "", false
		}
		if s.runs() && s.member() {
			violation = "S15: it stops a member that serves"
		}
		w.kill(i)
	case Discard:
		if s.claim == claimNone || !p.unchanged(w, i) {
			return "", false
		}
		if s.raft == raftVoter || s.raft == raftLearner && s.disk == diskData {
			violation = "S10: it deletes the volume of a member"
		}
		if p.retain && !s.spare {
			s.retired = true
		} else {
			s.claim = claimDoomed
		}
	default:
		violation = "the step has an action that is not known: " + string(a)
	}
	return violation, renewed
}

// spend is done before a learner is removed that has yet to start: its volume becomes its own, so
// that the next member has another name. One that is being deleted is used by no other member, and
// not written to.
func (s *ringSeat) spend(f ringFlight, careless ringCareless) {
	if f.action == flightRemove && s.raft == raftLearner && s.spare && s.claim == claimKept && !careless.reusesNames {
		s.spare, s.joins = false, joinsNow
	}
}

// refuses reports whether an operator that is careless cannot make the call.
func (c ringCareless) refuses(s *ringSeat, f ringFlight) bool {
	return c.spendsGoing && f.action == flightRemove && s.raft == raftLearner && s.spare && s.claim == claimDoomed
}

func stagesOf(a Action) int {
	switch a {
	case Provision, Join:
		return 2
	default:
		return 1
	}
}

// carryOut yields every way in which the effects of a step may go: any of them missing, the
// complete one last.
func (p *pass) carryOut(w *ring, t *ringDecision, yield func(who uint8, to ring, renewed uint8, violation string)) {
	var who [ringSeats]int
	n, ways, stages := 0, 1, stagesOf(t.step.Action)
	for i := range ringSeats {
		if t.who>>i&1 == 1 {
			who[n] = i
			n++
			ways *= stages + 1
		}
	}
	for way := range ways {
		to := *w
		violation := ""
		var done, renewed uint8
		rest := way
		for _, i := range who[:n] {
			v, r := p.effects(&to, t.step.Action, i, rest%(stages+1))
			if rest%(stages+1) > 0 {
				done |= 1 << i
			}
			if r {
				renewed |= 1 << i
			}
			violation = max(violation, v)
			rest /= stages + 1
		}
		if way == ways-1 || to != *w || violation != "" {
			yield(done, to, renewed, violation)
		}
	}
}

// fence tells Pods of recorded members what they must do at their next start. It is done in every
// pass after the step, but not after a Record.
func (p *pass) fence(w *ring, t *ringDecision) uint8 {
	if t.step.Action == Record || t.step.Reason == ForeignObject || p.operator.neverFences {
		return 0
	}
	var unfenced uint8
	for i := range w.seats {
		s := &w.seats[i]
		if seen := &p.seen[i]; seen.recorded && seen.pod >= podWaiting && seen.unfenced && s.pod != podNone && s.unfenced && !s.terminating && p.samePod(i) {
			unfenced |= 1 << i
		}
	}
	return unfenced
}

// judge says what is wrong with a decision that was made on facts as they are.
func (w *ring) judge(t *ringDecision, taken uint8) string {
	if t.step.Action == Disarm {
		return w.judgeDisarm(t.target)
	}
	s, n := &w.seats[t.target], w.voters()
	serves, corrupt := s.serves(), t.step.Reason == CorruptMember
	switch a := t.step.Action; {
	case t.step.Reason == BackOff && a == Stop:
		return w.judgeBackOff(t)
	case !w.quorate() && a != Start && a != Wait && a != Stall:
		return "S11: without a quorum it does more than to start the members that are there: " + t.step.String()
	case t.step.Reason == Healthy && !w.looksWell() && !w.crowded(taken):
		return "it says that all is well: " + t.step.String()
	case a == AddLearner && (w.hasLearner() || w.stranger != raftNone):
		return "S4: a learner is added beside another one, or beside a stranger"
	case a == AddLearner && (!s.spare || s.claim != claimKept || s.retired || s.pod != podReady):
		return "S4: a learner is added for which nothing is prepared"
	case a == Promote && (s.raft != raftLearner || !s.runs()):
		return "S6: a learner that does not take part is promoted"
	case a == Promote && s.fetches():
		return "S6: a learner without data is promoted"
	case a == Promote && n == 1 && !serves:
		return "S6: the second of two is promoted before it serves"
	case a == Promote && n > 1 && w.serving(-1) < Quorum(n+1):
		return "S6: if the promoted learner fails, there is no quorum"
	case a == Remove && !s.member():
		return "S5: what is no member is removed"
	case a == Remove && s.raft == raftVoter && (n == 1 || w.serving(t.target) < Quorum(n-1)):
		return "S5: without the removed voter there is no quorum"
	case a == Remove && s.raft == raftVoter && serves && t.step.Reason != ScalingDown && t.step.Reason != Moving && !corrupt:
		return "S5: a serving voter is removed, and not because it is one too many"
	case a == Remove && s.raft == raftVoter && serves && s.claim != claimCopied && w.serving(-1) < n && !corrupt:
		return "S5: a serving voter is removed while another one does not"
	case a == Remove && s.raft == raftVoter && s.claim == claimCopied && t.step.Reason != ScalingDown && t.step.Reason != Moving && t.step.Reason != CorruptMember:
		return "S18: a member is given up for a volume that a person may accept"
	case a == Remove && s.raft == raftVoter && t.step.Reason == MemberFailed && !w.hasHeir():
		return "S15: a member is taken away before its successor can be made"
	case a == MoveLeader && (s.raft != raftVoter || !serves):
		return "S15: the leadership goes to a member that does not serve"
	case a == Remove && s.raft == raftVoter && int(w.leader) == t.target+1 && !s.terminating && (t.step.Reason == ScalingDown || t.step.Reason == Moving || corrupt):
		return "S15: the leader is removed, and not its leadership first"
	case a == Join && s.raft != raftLearner:
		return "S2: what is no learner joins"
	case a == Start && w.startsRemoved(t):
		return "S9: a removed member is started"
	case a == Discard && t.names(w, func(s *ringSeat) bool { return s.member() }):
		return "S10: the volume of a member is deleted"
	case a == Discard && w.serving(-1) < n && t.names(w, func(s *ringSeat) bool { return !s.spare }):
		return "S10: a former member's volume is deleted while not all voters serve"
	default:
		return max(w.judgeMove(t), w.judgeHash(t))
	}
}

// judgeBackOff judges what is done about back-off: only where there is no quorum, with Pods in
// which nothing runs, that take no volume along and that were not created a moment ago.
func (w *ring) judgeBackOff(t *ringDecision) string {
	switch {
	case w.quorate() && w.serving(-1) > 0:
		return "S18: a Pod is recreated because of its back-off, and there is a quorum"
	case t.who&w.young != 0:
		return "S18: a Pod is recreated again and again"
	case t.names(w, func(s *ringSeat) bool { return s.claim != claimKept }):
		return "S18: a Pod is recreated whose volume goes with it"
	case t.names(w, (*ringSeat).runs):
		return "S18: a Pod is recreated in which etcd runs"
	default:
		return ""
	}
}

// startsRemoved reports whether a removed member is started, though those that are members can
// answer. Where none of these is left it does no harm: etcd knows, or finds no quorum.
func (w *ring) startsRemoved(t *ringDecision) bool {
	return (w.quorate() || w.untended() >= 0) && t.names(w, func(s *ringSeat) bool { return !s.member() })
}

// judgeBlind judges what is decided when etcd cannot be reached.
func (w *ring) judgeBlind(t *ringDecision) string {
	switch {
	case t.step.Action == Start && w.startsRemoved(t):
		return "S9: a removed member is started"
	case t.step.Action == Start || t.step.Action == Wait || t.step.Action == Stall:
		return ""
	case t.step.Reason == BackOff && t.step.Action == Stop:
		return w.judgeBackOff(t)
	default:
		return "S11: nothing is known of the members, and it does more than to start the members that are there: " + t.step.String()
	}
}

func (t *ringDecision) names(w *ring, is func(*ringSeat) bool) bool {
	for i := range w.seats {
		if t.who>>i&1 == 1 && is(&w.seats[i]) {
			return true
		}
	}
	return false
}

// hasHeir reports whether a member can take the place of a member now.
func (w *ring) hasHeir() bool {
	for i := range w.seats {
		if s := &w.seats[i]; s.raft == raftLearner && s.serves() || s.spare && s.claim == claimKept && s.pod == podReady && !s.terminating {
			return true
		}
	}
	return false
}

// looksWell reports whether the cluster is as wanted, as far as can be seen.
func (w *ring) looksWell() bool {
	for i := range w.seats {
		s := &w.seats[i]
		switch {
		case s.raft == raftVoter && s.serves() && s.claim == claimKept && s.recorded && !w.unfit(i):
		case s.raft != raftVoter && s.raft != raftLearner && (s.pod == podNone || s.terminating) && (s.claim != claimKept || s.retired):
		default:
			return false
		}
	}
	return w.voters() == int(w.size) && w.alarm == 0 && w.stranger == raftNone
}
