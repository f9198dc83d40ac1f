package membership

import "testing"

// TestHashMutants shows that the exploration would find members that are wrong trusted, and those
// that are right accused.
func TestHashMutants(t *testing.T) {
	three := ringBound{sizes: []uint8{3}, first: 3, hashes: true, leads: true, still: true, calls: 1, states: 300_000, budget: ringBudget{corruptions: 1}}
	killed, resized, safely, growing := three, three, three, three
	killed.budget.kills = 1
	resized.sizes, resized.budget.specs = []uint8{1, 3}, 1
	safely.safety = true
	growing.sizes, growing.size, growing.safety, growing.beyond = []uint8{4}, 4, true, true
	// compared is what a rule sees that takes all voters for compared, and for equal.
	compared := func(r decide) decide {
		return func(d Desired, o Observed) (Step, bool) {
			return r(d, each(o, func(i *Instance) { i.Hash = Hash{Revision: 1} }))
		}
	}
	testRingMutants(t, map[string]ringMutant{
		"WithoutCorruptMember": {
			reason: "A member whose data is wrong stays",
			bound:  three, mutant: ringWithout("corruptMember"), want: "it says that all is well",
		},
		"TrustsTheAlarm": {
			reason: "The member goes that etcd names",
			bound:  safely,
			mutant: ringReplace("corruptMember", func(d Desired, o Observed) (Step, bool) {
				if alarms := o.corruptAlarms(); len(alarms) == 1 && alarms[0] != 0 && o.Member(alarms[0]) != nil {
					for _, i := range o.voters() {
						if i.ID == alarms[0] && o.mayRemove(i) {
							return Step{Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: CorruptMember, Message: "as etcd says"}, true
						}
					}
				}
				return corruptMember(d, o)
			}),
			want: "S19: a member whose data is right",
		},
		"TrustsTheExit": {
			reason: "A member that etcd's check has ended is taken for one whose data is damaged",
			bound:  killed,
			mutant: sees(func(i *Instance) {
				if i.Pod.Problem == inconsistency {
					i.Pod.Damaged, i.Pod.Forsaken = true, true
				}
			}),
			want: "S19: a member whose data is right",
		},
		"ChecksAlways": {
			reason: "A member that etcd's check has ended is ended by it again and again, and cannot be compared",
			bound:  killed, mutant: ringPlanner{phases: Phases, operator: ringCareless{checksAlways: true}}, want: "L",
		},
		"LeadershipStays": {
			reason: "The member that is wrong leads until it goes",
			bound:  three,
			mutant: ringReplace("corruptMember", func(d Desired, o Observed) (Step, bool) { return corruptMember(d, each(o, leadless)) }),
			want:   "S15: the leader is removed",
		},
		"LearnerStays": {
			reason: "A learner that was fed by the one that is wrong gets its vote when that is gone",
			bound:  growing,
			mutant: ringReplace("corruptMember", func(d Desired, o Observed) (Step, bool) {
				step, ok := corruptMember(d, o)
				if m := o.Member(step.ID); ok && step.Action == Remove && m != nil && m.Learner {
					groups, _ := o.compared()
					if len(groups) > 1 && o.right() != nil {
						i := groups[1][0]
						return Step{Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: CorruptMember, Message: "before the learner"}, o.mayRemove(i) && !i.Leads()
					}
				}
				return step, ok
			}),
			want: "S20: a learner stays",
		},
		"AddedUncompared": {
			reason: "A learner is added whatever feeds it",
			bound:  growing, mutant: ringReplace("addLearner", compared(addLearner)), want: "S20: a learner is to be fed",
		},
		"PromotedUncompared": {
			reason: "A learner that was fed by one that has gone wrong since it was added gets its vote",
			bound:  growing, mutant: ringReplace("promoteLearner", compared(promoteLearner)), want: "S20: a learner that was fed",
		},
		"ShrunkUncompared": {
			reason: "A member goes that would be needed to tell which of the others is right",
			bound:  resized, mutant: ringReplace("removeSurplusVoter", compared(removeSurplusVoter)), want: "S15: so little is left",
		},
		"StaleComparison": {
			reason: "A comparison is gone by that was made before a member has started, or is fed",
			bound:  growing, mutant: ringPlanner{phases: Phases, operator: ringCareless{ignoresStarts: true}}, want: "S20: a learner that was fed",
		},
		"DisarmedUncompared": {
			reason: "Writes are let in again before it is known that the voters are equal",
			bound:  three,
			mutant: ringReplace("corruptMember", func(d Desired, o Observed) (Step, bool) {
				step, ok := corruptMember(d, o)
				if step.Reason == AlarmRaised {
					return Step{Action: Disarm, ID: o.corruptAlarms()[0], Reason: CorruptMember, Message: "unheard"}, true
				}
				return step, ok
			}),
			want: "S19: an alarm is taken back",
		},
		"NeverDisarmed": {
			reason: "The alarm outlives what it was about",
			bound:  three,
			mutant: ringReplace("corruptMember", func(d Desired, o Observed) (Step, bool) {
				step, ok := corruptMember(d, o)
				return step, ok && step.Action != Disarm
			}),
			want: "L",
		},
	})
}
