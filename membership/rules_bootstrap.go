package membership

import (
	"fmt"
	"slices"
)

// The rules of a cluster that has never formed. They start members with "initial cluster state:
// new", which is a phase of a cluster and never a property of a member: two members that
// bootstrapped with it while one had lost its data have cost people their clusters (etcd#12227).

// first is the first start that is under way, or is to begin: what was written down before, or else
// what the spec says.
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

// volumeLostWhileForming: a first member may have started and voted on the volume that is gone.
// Started again on an empty one, under the same ID, it could elect a leader that lacks what was
// written (etcd#10254). Nothing was served yet.
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

// bootstrap: all first members at once, each told of all the others.
func bootstrap(d Desired, o Observed) (Step, bool) {
	f := first(d, o)
	missing := names(firstMembers(f, o), func(i Instance) bool { return !i.Pod.Exists() })
	return Step{
		Action: Bootstrap, Members: missing, First: f, Version: d.Version, Reason: Bootstrapping,
		Message: "starting the first members " + list(missing) + o.from(f),
	}, len(missing) > 0
}

// recordFormed: every first member answers with its ID, and etcd's own list has these members and
// no other. A majority would be enough for etcd, but then the last one could not be told from one
// that lost its data.
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

// stuckBootstrap is the first member that is to begin again where etcd of all of them runs for long
// and none serves. They may have ended in their first second before, and take themselves for
// members of nothing since; a new Pod removes what was left then (Pod.Cleared). One that votes for
// itself is enough: the others have a vote for it, and are sent all.
func stuckBootstrap(d Desired, o Observed) []Instance {
	members := idle(d, o)
	if slices.ContainsFunc(members, cleared) {
		return nil
	}
	return members[:min(1, len(members))]
}

// endedAgain tells a person of members whose etcd may have ended before it had voted, though
// nothing was left of an earlier one. That has a reason, which another Pod does not remove.
func endedAgain(d Desired, o Observed) string {
	members := slices.DeleteFunc(idle(d, o), func(i Instance) bool { return !cleared(i) })
	if len(members) == 0 {
		return ""
	}
	return ". If etcd of " + list(names(members, cleared)) + " ended in its first second (" + d.kubectl("logs --previous", members[:1], "") + "), remove the cause, and then " +
		d.kubectl("delete pod", members, "")
}

func cleared(i Instance) bool { return i.Pod.Cleared }

// idle are the first members where etcd of all of them runs for long and none serves.
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
		step.Message += ". Waiting has not helped: remove the cause, or set the spec right. Nothing was served yet: it is also safe to " + o.startOver()
	}
	return step, true
}
