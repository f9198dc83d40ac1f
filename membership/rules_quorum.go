package membership

import "slices"

// The rules of a cluster without a quorum whose members have their data: how the quorum comes back
// sooner, and what may keep it away.

// recreateBackedOffPod: a kubelet waits longer before each restart of a container
// (CrashLoopBackOff). The wait belongs to the Pod, so a new Pod starts etcd at once, as the same
// member on its volume. This is done only without a quorum, and for all Pods that wait, except
// those whose etcd ended by itself and those that were created a moment ago.
func recreateBackedOffPod(d Desired, o Observed) (Step, bool) {
	// A learner has no vote. And no member is ready without a quorum, which the operator may not
	// reach.
	members := o.knownVoters()
	unseen := o.Reach == ReachNone && slices.ContainsFunc(members, func(i Instance) bool { return i.Pod.Ready })
	enough := len(names(members, func(i Instance) bool { return i.Endpoint.Answered() })) >= Quorum(len(members))
	if d.Ephemeral || unseen || enough { // in memory, data goes with the Pod
		return Step{}, false
	}
	waits := func(i Instance) bool {
		return i.Pod.BackOff && !i.Pod.Young && !i.Pod.Terminating && !i.changing() && o.holds(i) && !i.Volume.Terminating && i.Endpoint.Member() == 0
	}
	comes := func(i Instance) bool { // or is there
		return o.holds(i) && (i.Endpoint.Answered() || i.Pod.Exists() && !i.Pod.Terminating && (i.Pod.Problem == "" || i.Pod.BackOff || !i.Pod.Overdue))
	}
	waiting := names(members, waits)
	return Step{
		Action: Stop, Members: waiting, Reason: BackOff,
		Message: "recreating the Pods of " + list(waiting) + ": there is no quorum, and their kubelets wait before they start etcd again (CrashLoopBackOff)",
	}, len(waiting) > 0 && len(names(members, comes)) >= Quorum(len(members))
}

// disconnected turns a wait into a stall where etcd runs and the network is all that can keep it
// away: members serve, as their kubelets find, and none of them answers; or so many run without
// serving that they would be a quorum if they reached each other. The only member needs no network
// for that: its log tells.
func (o Observed) disconnected(d Desired, step Step, members []Instance) (Step, bool) {
	serve := names(members, func(i Instance) bool { return i.Pod.Ready && !i.Pod.Terminating })
	lasts := slices.ContainsFunc(members, func(i Instance) bool { return i.Pod.ReadyLong && !i.Pod.Terminating })
	apart := names(members, func(i Instance) bool { return i.Pod.UnreadyLong && i.Pod.Problem == "" && !i.Pod.Terminating })
	switch {
	case o.Reach == ReachNone && lasts:
		step.Action, step.Reason = Stall, Unreachable
		step.Message = "no member answers the operator, and kubelets report that etcd serves in " + list(serve) + ". " +
			"Allow ports 2379 and 2381 from the operator to the members, and 2380 among the members (NetworkPolicy, service mesh)"
	case o.Reach != ReachQuorum && len(apart) == 1 && len(members) == 1:
		step.Action = Stall
		step.Message += ". etcd runs in " + list(apart) + ", the only member, and does not serve: its log says why (" + d.kubectl("logs", members, "") + ")"
	case o.Reach != ReachQuorum && len(apart) >= Quorum(len(members)):
		step.Action = Stall
		step.Message += ". etcd runs in " + list(apart) + ", enough for a quorum, and does not serve: the members may not reach each other. " +
			"Allow port 2380 among the members (NetworkPolicy, service mesh)"
	default:
		return step, false
	}
	return step, true
}
