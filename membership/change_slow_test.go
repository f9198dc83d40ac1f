package membership

import "fmt"

// slow is the operator that carries out what it decided a while ago, or never does.
func (x *rollExplorer) slow(s *rollState, yield rollVisit) {
	if s.late.action == actNone {
		return
	}
	to := *s
	to.late = rollFlight{}
	yield("the slow operator gives up", to, "")
	x.carry(s.roll, s.late, func(w roll, _ bool) {
		to := *s
		to.roll, to.late = w, rollFlight{}
		violation := ""
		if m := &s.roll.seats[s.late.seat]; s.late.action == actPutBack && m.runs == m.image && m.runs != rollNone && w.seats[s.late.seat] != *m {
			violation = "a member that runs what it was changed to is rolled back"
		}
		yield(fmt.Sprintf("the slow operator acts on %s", seatName(int(s.late.seat))), to, violation)
	})
}

// done reports whether the effect of a slow operator's act is there, as can be seen, so that others
// may begin.
func (x *rollExplorer) done(s *rollState, t *rollDecision) bool {
	m := &s.roll.seats[s.late.seat]
	switch s.late.action {
	case actStop:
		return !s.late.pod || m.going
	case actDowngrade:
		return s.roll.down != 0
	case actCancel:
		return s.roll.down == 0
	default:
	}
	return !s.late.pod || m.going || !m.settled() || (s.late.spec || x.operator.forgetsSpec) && t.same>>s.late.seat&1 == 1
}

func (t *rollDecision) changesMembers() bool {
	switch t.step.Action {
	case Remove, Provision, AddLearner, Join, Promote, MoveLeader:
		return true
	default:
		return false
	}
}

// invalidate tells of what an operator that is slow relies on whether it still is so.
func (s *rollState) invalidate(before *rollState) {
	f := &s.late
	if f.action == actNone || before.late.action == actNone {
		return
	}
	was, is := before.roll.seats[f.seat], s.roll.seats[f.seat]
	f.pod = f.pod && (was.image == rollNone || is.image != rollNone)
	f.podVersion = f.podVersion && f.pod && was.image == is.image && was.previous == is.previous && was.runs == is.runs && was.failing == is.failing && was.going == is.going && was.undone == is.undone
	f.spec = f.spec && s.roll.spec == before.roll.spec && s.roll.template == before.roll.template
	f.claim = f.claim && was.volume == is.volume && was.next == is.next && was.good == is.good && was.trying == is.trying && was.replays == is.replays && was.lost == is.lost && was.role == is.role
}
