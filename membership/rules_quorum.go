package membership

import (
	"fmt"
	"slices"
)

// The rules of a cluster that has formed, and of which no quorum answers: how the quorum comes back
// sooner, what may keep it away, and what is left when the data of a majority is gone.

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
// for that: its log tells. So may those of others, where etcd has opened no port.
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
		step.Message += ". etcd runs in " + list(apart) + ", enough for a quorum, and does not serve. The members may not reach each other: " +
			"allow port 2380 among them (NetworkPolicy, service mesh). Or a log says why: " + d.kubectl("logs", kept(members, func(i *Instance) bool { return i.Name == apart[0] }), "")
	default:
		return step, false
	}
	return step, true
}

// Loss is what is known of a lost majority. The zero Loss: it was not seen before.
type Loss struct {
	// Long: for as long as the spec wants to wait.
	Long bool
	// Restore is the name of the EtcdRestore that is made for it, and Made that it was.
	Restore string
	Made    bool
	// Another EtcdRestore is there that can be carried out, whether the status of the EtcdCluster
	// has it yet or not.
	Another bool
}

// lostMembers are the members whose data is gone, and the others. A learner that has not started
// has none to lose.
func (o Observed) lostMembers() (lost, left []string) {
	members := o.knownVoters()
	gone := func(i Instance) bool {
		return !o.holds(i) && !i.Volume.InDoubt() && (i.ID == 0 || i.Volume.Joins != i.ID) || i.Pod.EmptyLong
	}
	return names(members, gone), names(members, func(i Instance) bool { return !gone(i) })
}

// MajorityLost reports whether a cluster that has formed has too few members left with their data
// for a quorum, as far as is known without those that have yet to tell.
func MajorityLost(o Observed) bool {
	if !o.Formed() || o.Reach == ReachQuorum || o.guesses(o.knownVoters()) {
		return false
	}
	lost, left := o.lostMembers()
	return len(left) < Quorum(len(lost)+len(left))
}

// recovers reports whether a lost majority is to be restored by itself, and can be: where it is
// certain that it is lost, also if one of the members that do not answer is a learner and has no
// vote; where no kubelet finds that a member serves; and where no EtcdRestore is asked for.
func recovers(d Desired, o Observed) bool {
	lost, left := o.lostMembers()
	if !o.Remembered || len(left) >= Quorum(len(lost)+len(left)-1) || o.mayServe() || o.InPlace.asked() || o.Loss.Another || d.Ephemeral {
		return false
	}
	survivors := names(o.knownVoters(), func(i Instance) bool { return o.holds(i) && !i.Pod.EmptyLong })
	return d.FromBackup || d.FromSurvivor && len(survivors) == 1
}

// lostMajority: nothing is started empty, ever. What is left is restored, by an EtcdRestore that a
// person makes, or, where the spec asks for that, by one that is made when the loss has lasted.
func lostMajority(d Desired, o Observed) (Step, bool) {
	if !MajorityLost(o) {
		return Step{}, false
	}
	lost, left := o.lostMembers()
	all := len(lost) + len(left)
	message, restore := "every volume of the cluster is gone", "a snapshot"
	if len(left) > 0 {
		message = fmt.Sprintf("the data of %s is gone: of %s %d has its data, and a quorum needs %d", list(lost), plural(all, "member"), len(left), Quorum(all))
		restore = "the data of a member (spec.source.survivor), " + list(o.withLogs(left)) + ", or from a snapshot"
	}
	what := "a snapshot"
	if d.FromSurvivor {
		what = "what " + list(left) + " has"
	}
	step := Step{Action: Stall, Reason: DataLost, Members: lost, Message: message + ". No member is started empty under its old name. "}
	switch bySelf := recovers(d, o); {
	case o.Loss.Made && (d.FromSurvivor || d.FromBackup):
		step.Message += "EtcdRestore " + o.Loss.Restore + " was created for that (spec.recovery.quorumLoss): its conditions say how far it is, and where it was deleted, make another one"
	case bySelf && o.Loss.Long:
		step.Action, step.Reason = Recover, Restoring
		step.Message = message + ": creating EtcdRestore " + o.Loss.Restore + " of " + what + ", as spec.recovery.quorumLoss asks for"
	case bySelf:
		step.Message += "Bring the volumes back; when they have been gone for " + d.LossPatience + " (spec.recovery.quorumLossAfter), an EtcdRestore of " + what + " is created"
	case o.InPlace.asked():
		step.Message += "EtcdRestore " + o.InPlace.Name + " is to restore the cluster: its conditions say what it waits for. To do something else, delete it first"
	case d.Ephemeral:
		step.Message += "It was in memory (spec.storage.medium): delete this EtcdCluster, and apply it again, with spec.bootstrap.restore to start from a snapshot, or without it to begin empty. Step by step: docs/backups.md#when-all-is-lost"
	default:
		step.Message += "Bring the volumes back; or create an EtcdRestore from " + restore + "; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back"
	}
	return step, true
}

// withLogs are the named members, each with the last log entry that it knows to be committed. That
// does not change without a quorum, so the message is stable.
func (o Observed) withLogs(members []string) []string {
	said := make([]string, 0, len(members))
	for _, name := range members {
		i, _ := o.Instance(name)
		said = append(said, name+i.Endpoint.Log())
	}
	return said
}

// knownVoters are the known members but for those that have said that they have no vote.
func (o Observed) knownVoters() []Instance {
	return slices.DeleteFunc(o.known(), func(i Instance) bool { return i.Endpoint.Learner })
}

// guesses reports whether it is a guess that these are the members, and some of them have yet to
// tell.
func (o Observed) guesses(members []Instance) bool {
	return !o.Remembered && slices.ContainsFunc(members, func(i Instance) bool { return o.holds(i) && !i.Endpoint.Answered() && !i.Pod.Overdue })
}

func quorumLost(d Desired, o Observed) (Step, bool) {
	step := Step{Action: Wait, Reason: QuorumLost, Message: "no quorum answers: " + problems(o.known())}
	if o.Reach == ReachNone {
		step.Reason, step.Message = Unreachable, "no member answers: "+problems(o.known())
	}
	if stalled, ok := o.disconnected(d, step, o.knownVoters()); ok {
		return stalled, true
	}
	step = needsPerson(d, step, o.known())
	if d.GivenUp == "" && step.Action == Stall && slices.ContainsFunc(o.known(), func(i Instance) bool { return o.allCrash(d, i) }) {
		step.Message += ". If etcd itself is at fault, set spec.version to another patch of the running minor"
	}
	step.Message += o.triedInstead(d, o.known())
	return step, true
}
