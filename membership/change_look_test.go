package membership

// rollGlance is a world without what no operator sees, and whether members could be asked:
// decisions are remembered by it.
type rollGlance struct {
	roll
	blind bool
}

func (w *roll) glance(blind bool) rollGlance {
	g := rollGlance{roll: *w, blind: blind}
	if g.refused != writeCreate { // nothing tells of the others
		g.refused = writeNone
	}
	g.broken, g.wrong, g.passing, g.cluster = 0, 0, 0, 0 // but it is known whether a container is the one of before
	if blind {
		g.leader, g.down, g.alarm, g.corrupt, g.db = 0, 0, false, false, 0
	}
	for i := range g.seats {
		s := &g.seats[i]
		s.old, s.served, s.ours, s.tried, s.stray, s.trial = false, false, false, 0, false, false
		if s.silent != rollMarked {
			s.silent = rollHears
		}
		if blind {
			s.runs, s.lags = rollNone, false
		}
		if s.going { // a member that is being stopped is not asked
			s.runs, s.lags = rollNone, false
		}
		if s.runs.minor() < 6 {
			s.storage = 0
		}
	}
	return g
}

func rollUID(i int) string { return "Pod of " + seatName(i) }

// facts is the glance in the terms of Plan, as package reconcile has them.
func (g *rollGlance) facts(recreates bool, c rollCareless) (Desired, Observed) {
	d := Desired{Size: int(g.size), Version: rollVersions[g.spec], Token: "token"}
	d.BackUp, d.Ephemeral = g.guarded, g.memory
	if g.givenUp {
		d.GivenUp = "it was tried in vain"
	}
	o := Observed{ClusterID: ringClusterID, Remembered: true}
	if g.guarded {
		o.Backup = g.backup.facts()
	}
	quorate := g.leader != 0 && g.seats[g.leader-1].runs != rollNone
	down := Version{}
	for i := range g.seats {
		s := &g.seats[i]
		if s.runs != rollNone {
			o.Reach = max(o.Reach, ReachSome)
			if quorate {
				o.Reach = ReachQuorum
			}
			if s.runs.minor() >= 6 && g.down != 0 {
				down = Version{3, int(g.down), 0}
			}
		}
	}
	for i := range g.seats {
		s := &g.seats[i]
		if s.role == rollNobody {
			if i < int(g.size) {
				o.Fresh = append(o.Fresh, seatName(i))
			}
			continue
		}
		in := Instance{Name: seatName(i), Ordinal: i}
		if s.member() {
			in.ID = ringID(i)
			if o.Reach == ReachQuorum {
				m := Member{ID: in.ID, PeerURLs: []string{"http://" + in.Name}, Learner: !s.voter()}
				if s.role != rollListed {
					m.Name = in.Name
				}
				o.Members = append(o.Members, m)
			}
		}
		in.Volume = g.volume(i)
		in.Pod = s.pod(i, g.mute, g.patient)
		if g.startsNothing(i) {
			in.Pod.Failing, in.Pod.NeverRan, in.Pod.Unstarted = false, true, true
		}
		in.Pod.Crashes = in.Pod.Failing && !s.early && !g.unpulled
		in.Pod.Overdue = in.Pod.Crashes
		in.Pod.ImageUnavailable = g.unpulled && in.Pod.Failing && !s.early
		in.Pod.Away = in.Pod.Exists() && s.silent == rollMarked && !s.going
		in.Pod.AwayLong = in.Pod.Away
		in.Pod.Unproved = in.Pod.Exists() && s.runs != rollNone && (s.proof == rollYoung || s.proof == rollCrashed && !c.forgetsCrashes)
		in.Pod.Crashed = in.Pod.Unproved && s.proof == rollCrashed
		in.Pod.Changing = in.Pod.Exists() && !in.Pod.Provisions && !s.settled()
		if s.runs != rollNone {
			in.Endpoint = g.answer(s, in.ID, quorate, down)
			in.Hash = Hash{Revision: 1} // all data is right here
			if g.corrupt {
				in.Hash = Hash{} // and has yet to be compared again
			}
		}
		o.Instances = append(o.Instances, in)
	}
	g.compare(d, &o, recreates, c)
	g.refusedPods(&o)
	return d, o
}

// answer of a member that runs.
func (g *rollGlance) answer(s *rollSeat, id ID, quorate bool, down Version) Endpoint {
	e := Endpoint{ClusterID: ringClusterID, MemberID: id, Version: rollVersions[s.runs], Learner: !s.voter(), RaftIndex: 2 * catchUp, Applied: 2 * catchUp}
	if s.lags {
		e.Applied = 0
	}
	if quorate {
		e.Leader = ringID(int(g.leader) - 1)
	}
	if s.storage != 0 {
		e.Storage = Version{3, int(s.storage), 0}
	}
	if s.runs.minor() >= 6 {
		e.Downgrade = down
	}
	if g.corrupt {
		e.Alarms = append(e.Alarms, Alarm{Kind: AlarmCorrupt})
	}
	if g.alarm {
		e.Alarms = append(e.Alarms, Alarm{Kind: AlarmNoSpace})
	}
	if g.sized {
		e.DBSize, e.InUse = g.db.bytes(), g.db.bytes()
	}
	return e
}

func (s *rollSeat) claim(i int) Volume {
	if s.lost {
		return Volume{}
	}
	v := Volume{UID: "volume of " + seatName(i), Version: rollVersions[s.volume], Next: rollVersions[s.next]}
	switch s.role {
	case rollSpare, rollListed:
		v.Spare = true
	default:
		v.ClusterID, v.MemberID = ringClusterID, ringID(i)
	}
	switch s.replays {
	case marksNobody:
	case marksAny:
		v.Replays = ReplaysAny
	case marksRisen:
		v.Replays = ReplaysRisen
	case marksPast:
		v.Replays = ReplaysPast
	}
	return v
}

func (s *rollSeat) pod(i int, mute, patient bool) Pod {
	if s.role == rollSpare || s.role == rollListed {
		return Pod{UID: rollUID(i), Provisions: true, Provisioned: true, NeverRan: true}
	}
	if s.image == rollNone {
		return Pod{}
	}
	p := Pod{UID: rollUID(i), Terminating: s.going, Version: rollVersions[s.image], Failing: s.failing, PutOff: s.putOff}
	if s.early {
		p.Outgrown = int(s.image.minor()) + 1
	}
	if s.failing && mute && !s.early {
		p.Failing, p.Idle, p.IdleLong = false, true, !patient
		return p
	}
	if s.failing {
		p.Problem = "exited with code 1"
	}
	if s.putOff {
		p.Problem = "is put off"
	}
	return p
}

// compare is as package reconcile compares Pods with the spec.
func (g *rollGlance) compare(d Desired, o *Observed, recreates bool, c rollCareless) {
	counted := *o
	if c.countsAnswers && o.Reach == ReachQuorum {
		counted = each(*o, func(i *Instance) {
			if !i.Endpoint.Answered() {
				i.Volume.Version = Version{}
			}
		})
	}
	hop := rollOf(Hop(d, counted))
	for n := range o.Instances {
		i := &o.Instances[n]
		s := &g.seats[i.Ordinal]
		if s.image == rollNone || s.role < rollLearner {
			continue
		}
		asked, is := g.template, *s
		if g.givenUp && !c.triesAgain {
			asked, is.undone = g.made(s), s.undone && s.good == rollUnknown
		}
		change, _ := is.needs(s.is(), asked, recreates)
		i.Pod.Outdated = change != ChangeNone
		i.Pod.Change, i.Pod.Parts = s.needs(hop, g.template, recreates)
		if g.sized {
			i.Pod.Quota, i.Pod.QuotaToBe = s.template.quota(), g.template.quota()
		}
		if s.good != rollUnknown && s.good != s.template {
			i.Pod.Untried = []string{"options"}
		}
		i.Pod.Outdated = i.Pod.Outdated || SubstitutePatch(d, *o, *i) != (Version{})
		if patch := SubstitutePatch(d, *o, *i); g.memory {
			is := s.is()
			if patch != (Version{}) {
				is = rollOf(patch)
			}
			if change, _ := s.needs(is, g.template, recreates); change == ChangeImage {
				i.Pod.InPlace = []Change{ChangeImage}
			}
		}
	}
}

// needs is what it takes to make a Pod that of a version, as package render has it. Where the
// options have other names in another minor, the Pod is recreated.
func (s *rollSeat) needs(v rollVersion, template rollOptions, recreates bool) (Change, []string) {
	var parts []string
	change := ChangeNone
	if s.image != v {
		change, parts = ChangeImage, append(parts, "version")
		if recreates && s.image.minor() != v.minor() {
			change = ChangePod
		}
	}
	if s.undone {
		change, parts = max(change, ChangeImage), append(parts, "image")
	}
	if s.template != template {
		change, parts = ChangePod, append(parts, "options")
	}
	return change, parts
}
