package membership

import (
	"fmt"
	"slices"
)

// The rules of a cluster that has never formed. Only these start members with
// --initial-cluster-state=new. A member that has lost its data must never get it: clusters were
// lost that way (etcd#12227).

// first is the first start that is under way, as the volumes record it, or else the one that the
// spec asks for.
func first(d Desired, o Observed) First {
	f := First{Token: d.Token, Size: d.Size, Base: d.Base, Snapshot: o.Snapshot.ID()}
	for _, i := range o.Instances {
		if !i.Volume.Stays() || i.Volume.First.Size == 0 || o.exchanged(i) {
			continue
		}
		if i.Volume.First.Token != d.Token {
			return i.Volume.First // begun by an earlier incarnation of the cluster: it may have started etcd already
		}
		if s := i.Volume.First.Snapshot; s != "" {
			f.Snapshot = s // it may have been restored from that already, and the status be lost
		}
	}
	if ParseSnapshot(f.Snapshot).member() != "" {
		f.Size = min(f.Size, 1) // there is one copy of the data; the others join, and get it from etcd
	}
	if len(o.Bootstrapping) > 0 {
		f.Size = len(o.Bootstrapping)
	}
	return f
}

// firstMembers are the instances of the first start.
func firstMembers(f First, o Observed) []Instance {
	var members []Instance
	for _, i := range o.Instances {
		if f.Has(i.Ordinal) {
			members = append(members, i)
		}
	}
	return members
}

// volumeLostWhileForming: a first member may have started and voted on a volume that is gone. On an
// empty volume, with the same member ID, it could vote again, for a leader that lacks committed
// entries (etcd#10254). No client was served yet.
func volumeLostWhileForming(d Desired, o Observed) (Step, bool) {
	if d.Ephemeral {
		return Step{}, false
	}
	f := first(d, o)
	anyRecorded := len(names(o.Instances, func(i Instance) bool { return i.Volume.Recorded() && i.Volume.Stays() })) > 0
	mayHaveBegun := anyRecorded || f.Token != d.Token // an earlier EtcdCluster may have started etcd on volumes of this first start
	lost := names(firstMembers(f, o), func(i Instance) bool {
		doomed := i.Volume.Terminating && (o.Bootstrapping != nil || i.Pod.Exists() && !i.Pod.Terminating)
		return o.exchanged(i) || doomed || mayHaveBegun && !i.Volume.Stays()
	})
	return Step{
		Action: Stall, Reason: DataLost, Members: lost,
		Message: "the volumes of " + list(lost) + " were lost while the cluster was forming, before it served clients; " + o.startOver(),
	}, len(lost) > 0
}

func provisionVolumes(d Desired, o Observed) (Step, bool) {
	if d.Ephemeral {
		return Step{}, false
	}
	f := first(d, o)
	members := firstMembers(f, o)
	if going := names(members, func(i Instance) bool { return i.Volume.Terminating }); len(going) > 0 {
		return Step{Action: Wait, Reason: Terminating, Message: "waiting for the earlier volumes of " + list(going) + " to be gone"}, true
	}
	missing := names(members, func(i Instance) bool { return !i.Volume.Exists() || i.Volume.First != f && !i.Volume.Recorded() })
	return Step{
		Action: Provision, Members: missing, First: f, Version: d.Version, Reason: Provisioning,
		Message: "creating the volumes of " + list(missing),
	}, len(missing) > 0
}

// bootstrap creates the Pods of all first members at once. Each has all of them as its initial
// cluster.
func bootstrap(d Desired, o Observed) (Step, bool) {
	f := first(d, o)
	missing := names(firstMembers(f, o), func(i Instance) bool { return !i.Pod.Exists() })
	return Step{
		Action: Bootstrap, Members: missing, First: f, Version: d.Version, Reason: Bootstrapping,
		Message: "starting the first members " + list(missing) + o.from(f),
	}, len(missing) > 0
}

// recordFormed: every first member answers with its ID, and the member list has exactly these
// members. A majority is enough for etcd. But a last member that has not started yet would look the
// same as one that has lost its data.
func recordFormed(d Desired, o Observed) (Step, bool) {
	if o.Reach != ReachQuorum {
		return Step{}, false
	}
	f := first(d, o)
	agreed := names(firstMembers(f, o), func(i Instance) bool {
		m := o.Member(i.Endpoint.MemberID)
		return m != nil && m.Name == i.Name && i.Volume.Stays()
	})
	return Step{
		Action: Record, Members: agreed, Reason: Formed,
		Message: fmt.Sprintf("the cluster has formed with %s", plural(len(agreed), "member")) + o.from(f),
	}, len(agreed) == f.Size && len(o.Members) == f.Size
}

// stuckBootstrap is the first member whose Pod is to be recreated because etcd of all first members
// runs for long and none serves. etcd may have ended in its first second, before it wrote its
// members to the WAL, and has no members since. A new Pod removes such a data directory
// (Pod.Cleared). One member that votes for itself is enough: the others vote for it, and get the
// log from it.
func stuckBootstrap(d Desired, o Observed) []Instance {
	members := idle(d, o)
	if slices.ContainsFunc(members, cleared) {
		return nil
	}
	return members[:min(1, len(members))]
}

// endedAgain is the end of the message about members whose data directory was removed once, and
// whose etcd may have ended in its first second again. Another new Pod would not help.
func endedAgain(d Desired, o Observed) string {
	members := slices.DeleteFunc(idle(d, o), func(i Instance) bool { return !cleared(i) })
	if len(members) == 0 {
		return ""
	}
	return ". If etcd of " + list(names(members, cleared)) + " ended in its first second (" + d.kubectl("logs --previous", members[:1], "") + "), remove the cause, and then " +
		d.kubectl("delete pod", members, "")
}

func cleared(i Instance) bool { return i.Pod.Cleared }

// idle are the first members, if etcd of all of them runs for long and none serves.
func idle(d Desired, o Observed) []Instance {
	f := first(d, o)
	members := firstMembers(f, o)
	runs := names(members, func(i Instance) bool { return i.Pod.IdleLong && i.Pod.Unfenced })
	if o.Formed() || d.Ephemeral || f.Snapshot != "" || len(runs) < len(members) {
		return nil
	}
	return members
}

func waitForForming(d Desired, o Observed) (Step, bool) {
	var waiting []Instance
	overdue := false
	f := first(d, o)
	for _, i := range firstMembers(f, o) {
		if i.Endpoint.Leader == 0 {
			waiting = append(waiting, i)
			overdue = overdue || i.Pod.Overdue
		}
	}
	step := Step{Action: Wait, Reason: Bootstrapping, Message: "waiting for the first members to form a cluster" + o.from(f)}
	if f.Snapshot != "" {
		step.Reason = Restoring
	}
	if len(waiting) > 0 {
		step.Message += ": " + problems(waiting)
	}
	if f.Size != d.Size && ParseSnapshot(f.Snapshot).member() == "" {
		step.Message += fmt.Sprintf("; this first start has %s, as the spec said when it began: if it cannot succeed, %s", plural(f.Size, "member"), o.startOver())
	}
	if stalled, ok := o.disconnected(d, step, firstMembers(f, o)); ok {
		stalled.Message += endedAgain(d, o)
		return stalled, true
	}
	if overdue { // waiting has not helped: this needs a person
		step.Action, step.Reason = Stall, PodPending
		step.Message += ". Waiting has not helped: remove the cause, or correct the spec. Nothing was served yet: it is also safe to " + o.startOver()
	}
	return step, true
}
