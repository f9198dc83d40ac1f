package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// The rules of a cluster's size: which member is removed, and which is added. There is one change
// at a time, from a linearizable member list, and only if the serving members are a quorum
// afterwards. A lost member is removed before its successor is added: etcd adds no member to three
// of which one is down.

// removeLostVoter removes a voter whose data is gone, whatever the size, before its successor is
// added: etcd adds no member to three of which one is down.
func removeLostVoter(_ Desired, o Observed) (Step, bool) {
	goes := slices.DeleteFunc(o.voters(), func(i Instance) bool { return !o.lost(i) || !o.mayRemove(i) })
	if len(goes) == 0 {
		return Step{}, false
	}
	i := goes[len(goes)-1]
	return Step{
		Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: MemberLost,
		Message: "removing " + i.Name + ", whose data is gone; a new member takes its place",
	}, true
}

// replaceFailedVoter removes a voter that has been down for spec.recovery.replaceAfter. The volume
// of its successor is ready first, so that no member is removed where none can be created. Other
// failed voters stay while a new one can be added first.
func replaceFailedVoter(d Desired, o Observed) (Step, bool) {
	i, ok := failed(d, o)
	if !ok || !d.Ephemeral && !slices.ContainsFunc(o.spares(), Instance.ready) {
		return Step{}, false
	}
	return replaces(i), true
}

func replaces(i Instance) Step {
	return Step{
		Action: Remove, Members: []string{i.Name}, ID: i.ID, Reason: MemberFailed,
		Message: "removing " + i.Name + ", which " + problem(i) + "; a new member takes its place",
	}
}

// removeSurplusVoter removes the least healthy voter. If that is the leader, it hands over its
// leadership first. The hashes of the others are compared before: if they differ, the data of the
// surplus voter may be needed.
func removeSurplusVoter(d Desired, o Observed) (Step, bool) {
	voters := o.byValue()
	if len(voters) <= d.Size {
		return Step{}, false
	}
	victim, rest := voters[0], voters[len(voters)-d.Size:]
	if undecided := o.undecided(); len(undecided) > 0 && o.leaves(victim) == "" && (victim.Serves() || victim.Publishes()) {
		return untilDecided(undecided, "one of "+list(names(o.voters(), func(Instance) bool { return true }))+" is removed"), true
	}
	if !o.mayRemove(victim) {
		return needsPerson(d, Step{
			Action: Wait, Reason: ScalingDown,
			Message: fmt.Sprintf("waiting to remove %s: without it those that serve would be no quorum; %s", victim.Name, problems(notServing(voters))),
		}, notServing(voters)), true
	}
	reason, leaving := ScalingDown, victim.Name
	if why := o.leaves(victim); why != "" && len(voters) == d.Size+1 {
		reason, leaving = Moving, victim.Name+" (its volume "+why+")"
	}
	if publishing := slices.DeleteFunc(notServing(voters), func(i Instance) bool { return !i.Publishes() }); victim.Serves() && len(publishing) > 0 {
		return Step{Action: Wait, Reason: reason, Message: fmt.Sprintf("waiting to remove %s: %s", leaving, problems(publishing))}, true
	}
	stay := slices.DeleteFunc(o.voters(), func(i Instance) bool { return i.Name == victim.Name })
	if unproved := o.unproved(stay); unproved != "" {
		return Step{Action: Wait, Reason: reason, Message: fmt.Sprintf("waiting until %s, before %s is removed", unproved, leaving)}, true
	}
	if heir, ok := mostAdvanced(rest); ok && victim.Leads() {
		return handsOver(leaving, heir, reason), true
	}
	return Step{
		Action: Remove, Members: []string{victim.Name}, ID: victim.ID, Reason: reason,
		Message: fmt.Sprintf("removing %s: spec.replicas is %d", leaving, d.Size) + o.thenMoves(rest),
	}, true
}

// handsOver is the step that moves the leadership from a member that is to be removed or stopped.
func handsOver(leaving string, heir Instance, reason Reason) Step {
	return Step{
		Action: MoveLeader, Members: []string{heir.Name}, ID: heir.ID, Reason: reason,
		Message: "moving the leadership from " + leaving + " to " + heir.Name,
	}
}

// byValue are the voters in the order in which they are removed: by value, and then the newest
// first.
func (o Observed) byValue() []Instance {
	voters := o.voters()
	slices.SortStableFunc(voters, func(a, b Instance) int { return cmp.Or(value(o, a)-value(o, b), b.Ordinal-a.Ordinal) })
	return voters
}

// Surplus are the voters that are more than the size, in the order in which they go.
func (o Observed) Surplus(size int) []Instance {
	voters := o.byValue()
	return voters[:max(len(voters)-size, 0)]
}

// value of a member: the voter with the lowest value is removed first. A member that serves from a
// doomed volume is worth more than one that does not serve, because it counts for the quorum. A
// member that is about to serve counts as serving: it may be the successor of another one. Of
// members that are to leave their volumes the leader is the last.
func value(o Observed, i Instance) int {
	serves := i.Serves() || i.Publishes()
	switch {
	case !serves && (o.lost(i) || i.Pod.Forsaken || i.emptied()):
		return 0
	case i.Volume.InDoubt(): // it cannot start again
		return 1
	case !serves:
		return 2
	case o.Doomed(i):
		return 3 + one(i.Leads())
	case i.Volume.Unfit != "":
		return 5 + one(i.Leads())
	case i.Pod.Outdated:
		return 7
	default:
		return 8
	}
}

// Heir is the member that is to lead instead of a voter: the most advanced of the others; false
// where none of them serves.
func (o Observed) Heir(of string) (Instance, bool) {
	return mostAdvanced(slices.DeleteFunc(o.voters(), func(i Instance) bool { return i.Name == of }))
}

// mostAdvanced of the members that serve: what has most of the log needs the least time to lead.
func mostAdvanced(members []Instance) (Instance, bool) {
	var best Instance
	for _, i := range members {
		if i.Serves() && (best.Name == "" || i.Endpoint.RaftIndex > best.Endpoint.RaftIndex) {
			best = i
		}
	}
	return best, best.Name != ""
}

func notServing(members []Instance) []Instance {
	return slices.DeleteFunc(slices.Clone(members), Instance.Serves)
}

// prepareVolumes creates the volumes of all new members at once, each with a Pod that runs no etcd,
// before the first one is added: only membership changes have to be made one by one. A size for
// which there is no room is found out here.
func prepareVolumes(d Desired, o Observed) (Step, bool) {
	if d.Ephemeral {
		return Step{}, false
	}
	spares := slices.DeleteFunc(o.spares(), func(i Instance) bool { return usable(i) == 0 })
	wanted := wanting(d, o)
	missing := names(spares[:min(len(spares), wanted)], func(i Instance) bool { return !i.Pod.Exists() })
	for n := range min(max(wanted-len(spares), 0), len(o.Fresh)) {
		missing = append(missing, o.Fresh[n])
	}
	step := Step{
		Action: Provision, Members: missing, Version: runningVersion(d, o), Reason: ScalingUp,
		Message: "preparing the volumes of " + list(missing),
	}
	if i, ok := moving(d, o); ok {
		step.Reason, step.Message = Moving, "preparing the volume of "+list(missing)+", "+instead(o, i)
	}
	return step, len(missing) > 0
}

// addLearner adds the next member as a learner, which gets the data from the leader and has no vote
// until it has caught up.
func addLearner(d Desired, o Observed) (Step, bool) {
	i, moves := moving(d, o)
	if len(o.voters()) >= d.Size && (!moves || !o.allServe()) || len(o.learners()) > 0 || !o.mayGrow() {
		return Step{}, false
	}
	var name string
	if d.Ephemeral && len(o.Fresh) > 0 {
		name = o.Fresh[0]
	} else if spares := o.spares(); len(spares) > 0 && spares[0].ready() {
		name = spares[0].Name
	}
	step := Step{Action: AddLearner, Members: []string{name}, Reason: ScalingUp, Message: "adding " + name + " as a learner"}
	if moves {
		step.Reason, step.Message = Moving, step.Message+", "+instead(o, i)
	}
	if unproved := o.unproved(o.voters()); name != "" && unproved != "" {
		return Step{Action: Wait, Reason: step.Reason, Message: "waiting until " + unproved + ", before " + step.Message}, true
	}
	return step, name != ""
}

func waitForVolumes(d Desired, o Observed) (Step, bool) {
	spares := o.spares()
	if wanting(d, o) == 0 || len(spares) == 0 || slices.ContainsFunc(spares, Instance.ready) {
		return Step{}, false
	}
	back := fmt.Sprintf(", or set spec.replicas to %d", len(o.voters()))
	step := Step{Action: Wait, Reason: ScalingUp, Message: "waiting for the volumes of members to come: " + problems(spares)}
	if i, ok := moving(d, o); ok {
		back = ", or revert spec.storage"
		if o.Doomed(i) { // there is no way back
			back = ""
		}
		step.Reason, step.Message = Moving, step.Message+". It is "+instead(o, i)
	}
	if slices.ContainsFunc(spares, func(i Instance) bool { return i.Pod.Overdue || i.Pod.Unstarted }) {
		step.Action, step.Reason = Stall, PodPending
		step.Message += fmt.Sprintf(". The cluster goes on with the %s it has. Waiting has not helped: remove the cause%s", plural(len(o.voters()), "voter"), back) + o.leavePods(d)
	}
	return step, true
}
