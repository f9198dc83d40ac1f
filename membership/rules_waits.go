package membership

import "slices"

// The rules that wait: for members that do not serve, and for Pods that are being deleted. When
// there is nothing to wait for either, the cluster is healthy.

func memberDown(d Desired, o Observed) (Step, bool) {
	step := Step{Action: Wait, Reason: Joining}
	down := notServing(o.voters())
	for _, i := range down {
		switch {
		case i.Publishes():
		case i.Pod.Problem != "":
			step.Reason = PodPending
		case step.Reason == Joining:
			step.Reason = MemberDown
		}
	}
	step.Message = "waiting for members that do not serve: " + problems(down)
	damaged := slices.DeleteFunc(slices.Clone(down), func(i Instance) bool { return !i.Pod.Damaged || !o.mayRemove(i) })
	if d.Patience != "" && slices.ContainsFunc(damaged, func(i Instance) bool { return !i.Pod.Empty }) {
		step.Message += "; a member that is down for " + d.Patience + " is replaced (spec.recovery.replaceAfter)"
	}
	if d.EmptyPatience != "" && slices.ContainsFunc(damaged, func(i Instance) bool { return i.Pod.Empty }) {
		step.Message += "; a member whose volume came back empty is replaced after " + d.EmptyPatience + " (spec.recovery.replaceEmptyAfter)"
	}
	step = needsPerson(d, step, down)
	step.Message += o.triedInstead(d, down) + o.leavePods(d)
	return step, len(down) > 0
}

// triedInstead tells that a member that needs another image was given that of the spec, in vain.
func (o Observed) triedInstead(d Desired, down []Instance) string {
	if d.GivenUp == "" || !slices.ContainsFunc(down, func(i Instance) bool { return o.needsOtherImage(d, i) }) {
		return ""
	}
	return ". Quorate tried the spec, and rolled it back (" + d.GivenUp + "). It tries the next change of the spec: set spec.version to another patch of the running minor, or spec.image.repository to a registry that has the image"
}

// needsPerson turns a wait that has not helped into a stall, unless there is a quorum and the
// member will be replaced. The volume may be there and its content gone: then etcd finds nothing to
// go on with, and exits.
func needsPerson(d Desired, step Step, down []Instance) Step {
	replaceable := step.Reason != QuorumLost && step.Reason != Unreachable
	if slices.ContainsFunc(down, func(i Instance) bool {
		return (i.Pod.Overdue || i.Pod.Unstarted) && !i.Publishes() && (!i.Pod.Damaged || !replaceable)
	}) {
		step.Action = Stall
		step.Message += ". Waiting has not helped: remove the cause"
		if slices.ContainsFunc(down, func(i Instance) bool { return i.Pod.Away }) {
			step.Message += ". Bring the node back; or, if it is off for good, run " + deleteNode + ": Kubernetes then deletes its Pods, and a member starts on another node where its volume can be attached"
		}
		if !replaceable && !d.Ephemeral {
			step.Message += "; where a member's data is gone, bring its volume back, or restore it: docs/restore.md#which-way-back"
		}
	}
	return step
}

// waitForTerminatingPods: a person deleted such a Pod, or an EtcdCluster of the same name has
// left it to the garbage collector.
func waitForTerminatingPods(_ Desired, o Observed) (Step, bool) {
	going := names(o.voters(), func(i Instance) bool { return i.Pod.Terminating })
	return Step{Action: Wait, Reason: Terminating, Message: "waiting for the Pods of " + list(going) + " to be gone; they still answer"}, len(going) > 0
}

func healthy(d Desired, o Observed) (Step, bool) {
	step := Step{Action: None, Reason: Healthy, Message: plural(len(o.Members), "healthy member")}
	if d.Restore && o.Snapshot == (Snapshot{}) && !o.InPlace.asked() {
		step.Message += "; spec.bootstrap.restore has no effect, because the cluster had its own data"
	}
	return step, true
}
