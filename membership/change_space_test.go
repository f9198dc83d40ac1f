package membership

import "slices"

// The size of the database, and the alarm of etcd that it has reached its quota: with the other
// options that is higher.

type rollSize uint8

const (
	sizeSmall rollSize = iota
	sizeTight          // below the quota of the first options, but a large request does not fit any more
	sizeFull           // not below that
)

func (z rollSize) bytes() int64 { return [...]int64{16 << 20, 63 << 20, 64 << 20}[z] }

func (o rollOptions) quota() int64 {
	if o == rollOther {
		return 256 << 20
	}
	return 64 << 20
}

// widens reports whether the spec has a higher quota for a member.
func (w *roll) widens(s *rollSeat) bool { return w.sized && w.template.quota() > s.template.quota() }

// narrows reports whether it has a lower one.
func (w *roll) narrows(s *rollSeat) bool { return w.sized && w.template.quota() < s.template.quota() }

// overflows reports whether some write does not fit at a member that runs.
func (w *roll) overflows() bool {
	return w.sized && w.db != sizeSmall && w.quorate() && w.count(func(s *rollSeat) bool {
		return s.member() && s.runs != rollNone && s.template != rollOther
	}) > 0
}

// writers fill the database, and a person compacts and defragments it. They are told that it is
// full when they write more.
func (b *rollBound) writers(s *rollState, visit rollVisit) {
	w := &s.roll
	if w.overflows() && !w.alarm && !w.corrupt {
		to := *s
		to.roll.alarm = true
		visit("a write does not fit", to, "")
	}
	if w.db != sizeSmall {
		to := *s
		to.roll.db = sizeSmall
		visit("the database is made smaller", to, "")
	}
	if w.corrupt {
		to := *s
		to.roll.corrupt = false
		visit("the alarm CORRUPT is taken back", to, "")
	}
	if s.budget.alarms == 0 || w.corrupt {
		return
	}
	to := *s
	to.budget.alarms--
	to.roll.corrupt = true
	visit("the alarm CORRUPT is raised", to, "")
	for _, size := range []rollSize{sizeTight, sizeFull} {
		if size > w.db && !w.alarm && w.quorate() {
			to := *s
			to.budget.alarms--
			to.roll.db = size
			visit("the database is filled", to, "")
		}
	}
}

// disarms is the world in which an alarm is taken back.
func (t *rollDecision) disarms(w roll) roll {
	switch {
	case t.step.Action != Disarm:
	case t.step.Alarm == AlarmNoSpace:
		w.alarm = false
	default:
		w.corrupt = false
	}
	return w
}

func (w *roll) judgeDisarm(t *rollDecision) string {
	if t.step.Alarm == AlarmNoSpace && (w.overflows() || slices.ContainsFunc(w.seats[:], func(s rollSeat) bool { return s.member() && s.runs == rollNone })) {
		return "S21: the alarm NOSPACE is taken back, and some member has no room"
	}
	return ""
}

// spaceMutants are what keeps a database that is full from being told that it is not, and from
// being full for ever.
var spaceMutants = map[string]rollMutant{
	"DisarmedWhileOneIsFull": {
		reason: "The leader has room, and another member does not",
		bound:  "Full", safety: true, mutant: rollReplace("disarmNoSpace", func(d Desired, o Observed) (Step, bool) {
			return disarmNoSpace(d, each(o, func(i *Instance) {
				if !i.Leads() {
					i.Endpoint.DBSize = 1
				}
			}))
		}), want: "S21",
	},
	"DisarmedBeforeGrowth": {
		reason: "The spec asks for room, and no member has it yet",
		bound:  "Full", safety: true, mutant: rollReplace("disarmNoSpace", func(d Desired, o Observed) (Step, bool) {
			return disarmNoSpace(d, each(o, func(i *Instance) { i.Pod.Quota = max(i.Pod.Quota, i.Pod.QuotaToBe) }))
		}), want: "S21",
	},
	"DisarmedUnheard": {
		reason: "A member is away, and may be full",
		bound:  "Full", safety: true, mutant: rollReplace("disarmNoSpace", func(d Desired, o Observed) (Step, bool) {
			o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(m Member) bool {
				return slices.ContainsFunc(o.Instances, func(i Instance) bool { return i.ID == m.ID && !i.Serves() })
			})
			return disarmNoSpace(d, o)
		}), want: "S21",
	},
	"NoSpareRoom": {
		reason: "The alarm comes back with the next large request, and is taken back again and again",
		bound:  "OneFull", mutant: rollReplace("disarmNoSpace", func(d Desired, o Observed) (Step, bool) {
			return disarmNoSpace(d, each(o, func(i *Instance) { i.Endpoint.DBSize = min(i.Endpoint.DBSize, i.Pod.Quota-1) / 2 }))
		}), want: "L1: it goes round",
	},
	"OtherAlarmHarmless": {
		reason: "CORRUPT is among the alarms, and members are changed as if it were not",
		bound:  "Full", safety: true, mutant: rollPlanner{phases: Phases, see: func(d Desired, o Observed) (Desired, Observed) {
			return d, each(o, func(i *Instance) {
				if len(i.Endpoint.Alarms) > 1 {
					i.Endpoint.Alarms = slices.DeleteFunc(slices.Clone(i.Endpoint.Alarms), func(a Alarm) bool { return a.Kind == AlarmCorrupt })
				}
			})
		}}, want: "S7: a member is changed while an alarm",
	},
	"OtherChangesToo": {
		reason: "Where room is being made, a member comes to another version",
		bound:  "FullWhileChanged", safety: true, mutant: rollReplace("updateMember", func(d Desired, o Observed) (Step, bool) {
			return updateMember(d, each(o, func(i *Instance) { i.Endpoint.Alarms = nil }))
		}), want: "S7: a member is changed while an alarm",
	},
	"WithoutQuotaTooSmall": {
		reason: "A quota below the database comes to the first member",
		bound:  "Full", safety: true, mutant: rollWithout("quotaTooSmall"), want: "S22",
	},
	"QuotaTooSmallLater": {
		reason: "It is found out when the first member has got it",
		bound:  "Full", safety: true, mutant: rollReplace("quotaTooSmall", func(d Desired, o Observed) (Step, bool) {
			began := slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Pod.Change == ChangeNone })
			step, ok := quotaTooSmall(d, o)
			return step, ok && began
		}), want: "S22",
	},
	"AlarmedAnyhow": {
		reason: "A higher quota never comes",
		bound:  "Full", mutant: rollReplace("alarmRaised", func(d Desired, o Observed) (Step, bool) {
			return alarmRaised(d, each(o, func(i *Instance) { i.Pod.Quota = 0 }))
		}), want: "L1: it stalls without a reason",
	},
}
