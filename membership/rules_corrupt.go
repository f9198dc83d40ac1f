package membership

import (
	"fmt"
	"slices"
)

// The rules of members whose data differs. The alarm CORRUPT alone does not say which member is
// wrong: etcd's initial check ends a member that differs from any other one, and its periodic check
// names a follower that differs from the leader, which may be wrong itself. So Quorate compares the
// hashes of all voters at one revision. If a quorum of voters is equal, the others are wrong.

// corruptMember removes a member whose data differs from that of a quorum of equal members. If no
// quorum is equal, only an administrator can decide which data is right, and nothing is done.
func corruptMember(d Desired, o Observed) (Step, bool) {
	groups, rest := o.compared()
	right, alarms := o.right(), o.corruptAlarms()
	switch {
	case len(groups) > 1 && right != nil:
		return expelled(o, right, slices.Concat(groups[1:]...)), true
	case len(groups) > 1:
		return undecided(d, groups, rest), true
	case len(alarms) > 0:
		return accused(d, o, alarms[0], right, rest), true
	default:
		return Step{}, false
	}
}

// expelled is the next step to remove the wrong members. A learner goes first: it may have got its
// data from a wrong member, and etcd does not hash learners. Then a wrong leader hands over its
// leadership. Then the wrong members go one by one, while the right ones are a quorum of the rest.
func expelled(o Observed, right, wrong []Instance) Step {
	learners := o.learners()
	if len(learners) > 0 {
		i := learners[0]
		return Step{
			Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: CorruptMember,
			Message: "removing the learner " + i.Name + ", which may have got its data from a member whose data differs; another one takes its place",
		}
	}
	i := wrong[len(wrong)-1]
	heir, ok := mostAdvanced(right)
	if n := slices.IndexFunc(wrong, Instance.Leads); n >= 0 && ok {
		return handsOver(wrong[n].Name+" (its data differs from that of a quorum)", heir, CorruptMember)
	}
	if others := slices.DeleteFunc(slices.Clone(right), func(i Instance) bool { return !i.Serves() }); len(others) < Quorum(len(o.voters())-1) {
		return Step{
			Action: Wait, Reason: CorruptMember,
			Message: fmt.Sprintf("waiting to remove %s, whose data differs from that of a quorum: without it those that serve would be no quorum; %s", i.Name, problems(notServing(o.voters()))),
		}
	}
	return Step{
		Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: CorruptMember,
		Message: fmt.Sprintf("removing %s, whose data differs from that of a quorum (%s); a new member takes its place", i.Name, list(names(right, func(Instance) bool { return true }))),
	}
}

// undecided: no quorum is equal. Members that do not answer yet may still decide it.
func undecided(d Desired, groups [][]Instance, rest []Instance) Step {
	of := groups[0][0].Hash
	step := Step{
		Action: Stall, Reason: DataDiffers,
		Message: fmt.Sprintf("the data of the members differs, and no quorum of them is equal: at revision %d, compacted at %d, %s", of.Revision, of.Compacted, camps(groups, rest)),
	}
	if len(rest) > 0 && !slices.ContainsFunc(rest, func(i Instance) bool { return i.Pod.Overdue }) {
		step.Action = Wait
		step.Message += ". Waiting for those to be compared"
		return step
	}
	right := Instance{Name: "POD_OF_A_RIGHT_MEMBER"}
	step.Message += ". Quorate cannot tell which data is right, and adds and removes no member. " +
		"1. Set spec.storage.retention.whenScaled to Retain: the volume of a member that you remove is deleted otherwise. " +
		"2. Look at the data of each member: " + d.etcdctlEach(slices.Concat(groups...), "get KEY --consistency=s") + ". " +
		"3. Remove the members whose data is wrong, one after the other: " + d.etcdctl(right, "member remove ID") + ", where ID is " + ids(slices.Concat(groups...)) + ". " +
		"4. Disarm the alarm, if there is one: " + d.etcdctl(right, "alarm disarm")
	return step
}

// ids names each member after its ID, as etcdctl takes it.
func ids(members []Instance) string {
	each := make([]string, 0, len(members))
	for _, i := range members {
		each = append(each, i.ID.String()+" for "+i.Name)
	}
	return list(each)
}

// accused handles the alarm CORRUPT, under which etcd refuses writes. The alarm is disarmed if its
// member is removed, or a quorum is equal and no voter differs. A learner with the alarm is
// removed: it cannot be compared, and has no vote.
func accused(d Desired, o Observed, id ID, right, rest []Instance) Step {
	if id != 0 && o.Member(id) == nil {
		return Step{Action: Disarm, Alarm: AlarmCorrupt, ID: id, Reason: CorruptMember, Message: "taking back the alarm of " + id.String() + ", which is no member any more"}
	}
	n := slices.IndexFunc(o.learners(), func(i Instance) bool { return i.ID == id })
	if id != 0 && n >= 0 {
		i := o.learners()[n]
		return Step{
			Action: Remove, Members: []string{i.Name}, ID: id, Reason: CorruptMember,
			Message: "removing the learner " + i.Name + ", whose data differs from the leader's (alarm CORRUPT); another one takes its place",
		}
	}
	if right == nil || len(o.voters()) == 1 {
		return unheard(d, o, rest)
	}
	whose := "the alarm CORRUPT, which names no member"
	if id != 0 {
		whose = "the alarm CORRUPT of " + id.String()
	}
	return Step{
		Action: Disarm, Alarm: AlarmCorrupt, ID: id, Reason: CorruptMember,
		Message: "taking back " + whose + ": the data of a quorum is equal (" + list(names(right, func(Instance) bool { return true })) + "), and no voter differs",
	}
}

// unheard: not enough members have been compared yet to judge the alarm, or there is only one
// member.
func unheard(d Desired, o Observed, rest []Instance) Step {
	const alarm = "etcd has raised the alarm CORRUPT, and refuses writes: members disagree about the data. "
	if len(o.voters()) == 1 {
		return Step{
			Action: Stall, Reason: AlarmRaised,
			Message: alarm + "Only one is left, and there is no other to compare it with: look at its data, and then take back the alarm (" + d.etcdctl(o.anyVoter(), "alarm disarm") + "), or restore a snapshot (EtcdRestore)",
		}
	}
	step := Step{Action: Wait, Reason: AlarmRaised, Message: alarm + "Waiting until a quorum has been compared"}
	if away := notServing(rest); len(away) > 0 {
		step.Message += ": " + problems(away)
	}
	return needsPerson(d, step, rest)
}
