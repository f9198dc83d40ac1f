package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rules of a cluster that has formed. Whatever they do, no member starts empty.

// startMembers: a Pod that is gone is created again at once, as the same member on its volume. This
// is no membership change, so all members start together, also without a quorum: that is how a
// quorum comes back. Each runs the version that ran on its volume last, which can always read the
// data. A new version is an update, with rules of its own.
func startMembers(d Desired, o Observed) (Step, bool) {
	step := Step{Action: Start, Reason: Starting}
	for _, i := range o.Instances {
		if i.Pod.Exists() || i.Volume.Terminating || i.Volume.Aside != "" || o.removed(i) || !o.holds(i) {
			continue
		}
		version := cmp.Or(i.Volume.Next, i.Volume.Version, d.Version)
		if step.Version == (Version{}) {
			step.Version = version
		}
		if step.Version == version { // the others in the next pass
			step.Members = append(step.Members, i.Name)
		}
	}
	step.Message = "starting " + list(step.Members) + " on the volumes that hold their data"
	return step, len(step.Members) > 0
}

// removed reports whether etcd does not list the instance any more: its etcd would exit at every
// start. While the member list cannot be read, the last one counts, as long as one of its members
// may still answer.
func (o Observed) removed(i Instance) bool {
	if o.Reach == ReachQuorum {
		return o.Member(i.ID) == nil
	}
	return o.Remembered && i.ID == 0 && slices.ContainsFunc(o.Instances, func(j Instance) bool {
		return j.ID != 0 && o.holds(j) && !j.Endpoint.Answered() && !j.Pod.Overdue
	})
}

// recordMembers records the member ID and cluster ID that a running etcd reports on its volume. A
// new member may have no name in the member list, and serve no clients, for seven seconds
// (Endpoint.Publishing). Then its peer URL in the list and the IDs in its metrics are enough, even
// before it has got any data (Endpoint.Fetching), so that it continues on this volume when it
// starts again. Metrics prove nothing else: a member that was updated has to serve.
//
// The record of the next version is removed from a volume when the member has answered since, and
// has run well for long enough. If the Pod from before the update may still be the one that
// answers, the API server is read first, not the cache.
func recordMembers(d Desired, o Observed) (Step, bool) {
	unrecorded := names(o.Instances, func(i Instance) bool {
		m := o.Member(i.Endpoint.Member())
		return m != nil && (m.Name == i.Name || m.Name == "" && m.ID == i.ID) && i.Volume.Exists() && !i.Volume.Terminating &&
			!i.Volume.Replaced && !i.Pod.Changing && (i.Endpoint.Answered() || m.Learner && !i.Volume.Recorded()) &&
			(i.Volume.ClusterID != i.Endpoint.ClusterID || i.Volume.MemberID != i.Endpoint.Member() || i.Volume.Version != i.Endpoint.Version || i.Volume.Next != (Version{}) && !i.Proving() || i.Volume.Replays != Replays(d, o, i))
	})
	return Step{
		Action: Record, Members: unrecorded, Reason: Recording,
		Message: "recording the member and cluster ID on the volumes of " + list(unrecorded),
	}, len(unrecorded) > 0
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
	step = needsPerson(step, o.known())
	step.Message += triedInstead(d, o.known())
	return step, true
}

func unmanagedMember(d Desired, o Observed) (Step, bool) {
	var foreign, commands []string
	for _, m := range o.Members {
		known := names(o.Instances, func(i Instance) bool { return i.ID == m.ID })
		if len(known) == 0 {
			foreign = append(foreign, strings.TrimSpace(fmt.Sprintf("%s %s (%s)", shown(m.Name), m.ID, shown(list(m.PeerURLs)))))
			commands = append(commands, d.etcdctl(o.anyVoter(), "member remove "+m.ID.String()))
		}
	}
	slices.Sort(foreign)
	slices.Sort(commands)
	return Step{
		Action: Stall, Reason: ForeignMember,
		Message: "etcd lists members that Quorate did not make: " + strings.Join(foreign, ", ") + ". To remove them, run: " + strings.Join(commands, "; "),
	}, len(foreign) > 0
}

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
	step = needsPerson(step, down)
	step.Message += triedInstead(d, down) + o.leavePods(d)
	return step, len(down) > 0
}

// triedInstead tells that members whose image cannot be had were tried with what the spec asks for
// instead, in vain.
func triedInstead(d Desired, down []Instance) string {
	if d.GivenUp == "" || !slices.ContainsFunc(down, func(i Instance) bool { return i.Pod.ImageUnavailable }) {
		return ""
	}
	return ". The spec was tried, and reverted (" + d.GivenUp + "): set spec.version to a patch of this minor whose image can be pulled, or spec.image.repository to where it can be"
}

// needsPerson turns a wait that has not helped into a stall, unless there is a quorum and the
// member will be replaced. The volume may be there and its content gone: then etcd finds nothing to
// go on with, and exits.
func needsPerson(step Step, down []Instance) Step {
	replaceable := step.Reason != QuorumLost && step.Reason != Unreachable
	if slices.ContainsFunc(down, func(i Instance) bool { return i.Pod.Overdue && !i.Publishes() && (!i.Pod.Damaged || !replaceable) }) {
		step.Action = Stall
		step.Message += ". Waiting has not helped: remove the cause"
		if !replaceable {
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
