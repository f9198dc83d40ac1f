package membership

import "slices"

// rollBound is how far an exploration goes.
type rollBound struct {
	size      uint8
	from      rollVersion   // that all members run at first
	specs     []rollVersion // that the spec may have
	options   bool          // spec.options may change
	wrong     bool          // and to such with which etcd does not start
	mute      bool          // what does not come up runs on, and never serves
	patient   bool          // and waiting for it helps for longer than anything takes here
	unstarted bool          // or its kubelet starts no etcd with them, and does not say why
	passing   bool          // or to such with which it answers, and ends a moment later
	spoils    bool          // those that all have at first may stop to come up
	unmarked  bool          // no volume says with what its member has served, as before there was such a mark
	recreates bool          // from minor to minor a Pod is recreated
	broken    []rollVersion // of which the images do not come up
	onOne     bool          // on the node of m-0 alone, whose member is changed last
	mends     bool          // they come up later
	unpulled  bool          // they cannot be pulled
	memory    bool          // data is in memory, and a Pod is deleted with its data
	fades     []rollVersion // of which the images do not come up any more, from any moment on
	lies      bool          // what is called 3.5.35 is 3.6.16
	putsOff   bool          // kubelets wait before they start a container that was changed
	lags      bool          // a started member has to catch up
	kills     bool          // of crashes: a user deletes a Pod
	safety    bool          // look for safety only, and not how it goes on
	led       bool          // it matters whether the leader ends as such
	guarded   bool          // a snapshot is to be verified before the version changes, and people may turn that off and on
	sized     bool          // the database may reach its quota, which is higher with the other options
	refuses   bool          // the API server may refuse any kind of write
	states    int
	budget    rollBudget
}

// rollBudget bounds what would make the states infinite.
type rollBudget struct{ specs, crashes, losses, delays, moves, alarms, silences uint8 }

type rollState struct {
	roll   roll
	budget rollBudget
	late   rollFlight
}

// rollEdge is something that happens.
type rollEdge struct {
	what      string
	to        rollState
	violation string
}

type rollVisit func(what string, to rollState, violation string)

// environment is what Kubernetes, etcd, people and misfortune may do next.
func (b *rollBound) environment(s *rollState, visit rollVisit) {
	for i := range s.roll.seats {
		if s.roll.seats[i].role != rollNobody {
			b.kubelet(s, i, visit)
			b.proof(s, i, visit)
			b.misfortune(s, i, visit)
			b.silence(s, i, visit)
		}
	}
	b.etcd(s, visit)
	b.backups(s, visit)
	b.refusals(s, visit)
	b.people(s, visit)
}

func (b *rollBound) kubelet(s *rollState, i int, visit rollVisit) {
	m := &s.roll.seats[i]
	to := *s
	w := &to.roll
	switch {
	case m.silent != rollHears:
	case m.going:
		w.vanish(i)
		visit(seatName(i)+"'s Pod is gone", to, b.judgeEnd(s, i))
	case m.image == rollNone || m.role < rollLearner:
	case m.before && m.runs != rollNone:
		w.end(i)
		w.seats[i].proof = rollProved
		visit(seatName(i)+" ends, for its image has changed", to, b.judgeEnd(s, i))
	case m.runs == rollNone:
		if b.putsOff && m.previous != rollNone && !m.failing && !m.putOff {
			late := *s
			late.roll.seats[i].before, late.roll.seats[i].putOff = false, true
			visit(seatName(i)+"'s container is put off", late, "")
		}
		violation := w.launch(i, b.lags)
		visit(seatName(i)+"'s container starts", to, violation)
	case m.lags && s.roll.quorate():
		w.seats[i].lags = false
		visit(seatName(i)+" catches up", to, "")
	}
}

// proof comes with time, or does not.
func (b *rollBound) proof(s *rollState, i int, visit rollVisit) {
	m := &s.roll.seats[i]
	switch {
	case m.runs == rollNone || m.proof == rollProved || m.before || m.going || m.silent != rollHears:
	case s.roll.passes(m):
		for _, putOff := range []bool{false, true} {
			to := *s
			to.roll.crash(i, putOff)
			visit(seatName(i)+" has answered, and ends", to, "")
		}
	default:
		to := *s
		to.roll.seats[i].proof = rollProved
		visit(seatName(i)+" has stayed ready for long enough", to, "")
	}
}

func (b *rollBound) judgeEnd(s *rollState, i int) string {
	if b.led && s.roll.seats[i].ours && int(s.roll.leader) == i+1 && s.roll.voters() > 1 {
		return "S15: the leader is ended, and not its leadership first"
	}
	return ""
}

func (b *rollBound) misfortune(s *rollState, i int, visit rollVisit) {
	m := &s.roll.seats[i]
	if s.budget.crashes > 0 && m.member() && m.runs != rollNone {
		to := *s
		to.budget.crashes--
		to.roll.crash(i, false)
		visit(seatName(i)+" crashes", to, "")
	}
	if b.kills && s.budget.crashes > 0 && m.role >= rollLearner && m.image != rollNone && !m.going {
		to := *s
		to.budget.crashes--
		to.roll.seats[i].going = true
		if m.runs == rollNone && m.silent == rollHears {
			to.roll.vanish(i)
		}
		visit(seatName(i)+"'s Pod is deleted by a user", to, "")
	}
	if s.budget.losses > 0 && m.voter() && !m.lost && s.roll.voters() > 2 {
		to := *s
		to.budget.losses--
		to.roll.vanish(i)
		to.roll.seats[i] = rollSeat{role: rollVoter, lost: true, ours: m.ours}
		visit(seatName(i)+"'s volume and Pod are gone", to, "")
	}
	if s.budget.moves > 0 && m.voter() && m.runs != rollNone && !m.lags && s.roll.leader != 0 && int(s.roll.leader) != i+1 {
		to := *s
		to.budget.moves--
		to.roll.leader = uint8(i) + 1
		visit(seatName(i)+" becomes the leader", to, "")
	}
}

// etcd does by itself what follows from the versions of its members (Monitor in
// server/etcdserver/version).
func (b *rollBound) etcd(s *rollState, visit rollVisit) {
	w := &s.roll
	if w.decided() != w.cluster {
		to := *s
		to.roll.decide()
		visit("the cluster's version changes", to, "")
	}
	if w.downgraded() {
		to := *s
		to.roll.down = 0
		visit("etcd ends the downgrade", to, "")
	}
	for i := range w.seats {
		if w.takesData(i) {
			to := *s
			to.roll.cluster++
			to.roll.seats[i].storage = to.roll.cluster
			visit(seatName(i)+" never serves, and the cluster's version rises", to, "")
		}
		if w.migrates(i) {
			to := *s
			to.roll.seats[i].storage = w.cluster
			visit(seatName(i)+"'s data follows the cluster's version", to, "")
		}
	}
}

// decided is what the cluster's version is to be.
func (w *roll) decided() rollMinor {
	lowest, _ := w.minors()
	switch {
	case !w.quorate() || !w.complete():
		return w.cluster
	case w.down != 0:
		return w.down
	default:
		return max(w.cluster, min(lowest, w.cluster+1))
	}
}

// decide the cluster's version. Where it falls, a member of 3.6 saves a snapshot.
func (w *roll) decide() {
	version := w.decided()
	for i := range w.seats {
		s := &w.seats[i]
		s.old = s.old && (version >= w.cluster || s.runs.minor() != 6)
	}
	w.cluster = version
}

// downgraded reports whether a downgrade has come to its end.
func (w *roll) downgraded() bool {
	lowest, highest := w.minors()
	return w.down != 0 && w.quorate() && w.complete() && lowest == w.down && highest == w.down
}

// migrates reports whether a member's data has yet to follow the cluster's version. 3.5 leaves it
// as it is.
func (w *roll) migrates(i int) bool {
	s := &w.seats[i]
	return s.runs.minor() >= 6 && s.storage != w.cluster && s.member() && w.quorate()
}

// others are the options that a spec may have next.
func (b *rollBound) others(w *roll) []rollOptions {
	all := []rollOptions{rollFirst, rollOther, rollWrong}
	switch {
	case !b.options:
		return nil
	case !b.wrong && !b.passing:
		all = all[:2]
	}
	return slices.DeleteFunc(all, func(o rollOptions) bool { return o == w.template })
}

// people change the spec, and mend what is broken.
func (b *rollBound) people(s *rollState, visit rollVisit) {
	apply := func(what string, change func(*roll)) {
		to := *s
		to.budget.specs--
		change(&to.roll)
		to.roll.givenUp = false
		if !to.roll.guarded || to.roll.backup != backupRuns { // which serves for this spec as well
			to.roll.backup = backupNone
		}
		for i := range to.roll.seats {
			to.roll.seats[i].tried = 0
		}
		visit(what, to, "")
	}
	if s.budget.specs > 0 {
		for _, v := range b.specs {
			if v == s.roll.spec {
				continue
			}
			apply("the spec asks for "+rollVersions[v].String(), func(w *roll) { w.spec = v })
			for _, o := range b.others(&s.roll) {
				apply("the spec asks for "+rollVersions[v].String()+" and other options", func(w *roll) { w.spec, w.template = v, o })
			}
		}
		if b.guarded {
			apply("the spec asks for a snapshot, or for none any more", func(w *roll) { w.guarded = !w.guarded })
		}
		for _, o := range b.others(&s.roll) {
			apply("the spec asks for other options", func(w *roll) { w.template = o })
		}
	}
	if b.spoils && s.roll.wrong&1 == 0 {
		to := *s
		to.roll.wrong |= 1 << rollFirst
		visit("members do not come up any more with what they had at first", to, "")
	}
	for _, v := range b.fades {
		if s.roll.broken>>v&1 == 1 {
			continue
		}
		to := *s
		to.roll.broken |= 1 << v
		for i := range to.roll.seats { // what came up before was no fault of those that tried it
			to.roll.seats[i].tried = 0
		}
		visit("the image of "+rollVersions[v].String()+" does not come up any more", to, "")
	}
	if b.mends && s.roll.broken != 0 {
		to := *s
		to.roll.broken = 0
		visit("the broken image is mended", to, "")
	}
	switch {
	case b.sized:
		b.writers(s, visit)
	case s.roll.alarm:
		to := *s
		to.roll.alarm = false
		visit("the alarm is taken back", to, "")
	case s.budget.alarms > 0:
		to := *s
		to.budget.alarms--
		to.roll.alarm = true
		visit("an alarm is raised", to, "")
	}
}
