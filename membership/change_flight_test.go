package membership

// rollFlight is a step that was decided, and what it relies on.
type rollFlight struct {
	action rollAct
	change rollChange
	seat   uint8
	to     rollVersion
	none   bool        // the Pod was what the spec asked for
	made   rollOptions // that the spec asked for
	// replays is what the volume is to say of the log.
	replays rollMark
	// What has not changed since: the Pod, its resource version, that of the volume, and the spec.
	pod, podVersion, claim, spec bool
}

type rollAct uint8

const (
	actNone rollAct = iota
	actUpdate
	actPutBack
	actStart
	actRecord
	actStop
	actDowngrade
	actCancel
	actRaise
	actRepair
)

type rollChange uint8

const (
	rollInPlace rollChange = iota
	rollAnew
)

// flights are the steps of one decision, one for each seat that it names.
func (t *rollDecision) flights(w *roll) []rollFlight {
	act := map[Action]rollAct{Update: actUpdate, PutBack: actPutBack, Start: actStart, Record: actRecord, Stop: actStop, Downgrade: actDowngrade, CancelDowngrade: actCancel, Raise: actRaise, Repair: actRepair}[t.step.Action]
	if act == actNone {
		return nil
	}
	var flights []rollFlight
	for i := range rollSeats {
		f := rollFlight{action: act, seat: uint8(i), to: t.to, none: t.asked>>i&1 == 1, made: w.template, replays: t.replays[i], pod: true, podVersion: true, claim: true, spec: true}
		switch {
		case act == actDowngrade || act == actCancel:
			f.seat = 0
			return []rollFlight{f}
		case t.who>>i&1 == 0:
			continue
		case act == actUpdate && t.step.Change == ChangePod, act == actStop && t.stuck>>i&1 == 1:
			f.change = rollAnew
		}
		if act == actStop {
			f.to = t.instead[i]
		}
		if act == actRecord {
			f.to = w.seats[i].runs
		}
		flights = append(flights, f)
	}
	return flights
}

// disrupts reports whether an act is written down, and keeps others from beginning.
func (f rollFlight) disrupts() bool {
	switch f.action {
	case actUpdate, actPutBack, actStop, actDowngrade, actCancel:
		return true
	default:
		return false
	}
}

// handOver gives the leadership to another one.
func (w *roll) handOver() {
	for i := range w.seats {
		if s := &w.seats[i]; int(w.leader) != i+1 && s.voter() && s.runs != rollNone && !s.lags && w.quorate() {
			w.leader = uint8(i) + 1
			return
		}
	}
}

// change of the members, which succeeds at once.
func (t *rollDecision) changeMembers(w roll) roll {
	for i := range w.seats {
		s := &w.seats[i]
		if t.who>>i&1 == 0 {
			continue
		}
		switch t.step.Action {
		case Remove:
			w.end(i)
			*s = rollSeat{}
			w.elect()
		case Provision:
			*s = rollSeat{role: rollSpare, volume: t.to, good: rollUnknown}
		case AddLearner:
			s.role = rollListed
		case Join:
			was := w.count(func(s *rollSeat) bool { return s.replays != marksNobody })
			*s = rollSeat{role: rollLearner, volume: t.to, image: t.to, template: w.made(s), good: w.made(s), storage: w.cluster}
			if t.to.minor() == 6 && was > 0 {
				s.old, s.replays = true, marksAny // the leader may send it what it has in its log
			}
		case Promote:
			s.role = rollVoter
		case MoveLeader:
			w.leader = uint8(i) + 1
		default: // it changes no members
		}
	}
	return w
}
