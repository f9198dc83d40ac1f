package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rules of updates: another version, other flags, other resources. They come last, so that no
// member is updated while a member is missing, is a learner, is down or has raised an alarm. One
// member is updated at a time, the leader last, and the next one only when the one before serves
// and has caught up.

// waitForUpdate: one answer does not prove an update. etcd may answer with the new image or
// options, and end a moment later.
func waitForUpdate(d Desired, o Observed) (Step, bool) {
	step := Step{Action: Wait, Reason: Changing}
	var waiting []Instance
	var parts []string
	more := d.GivenUp == "" && slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Pod.Change != ChangeNone })
	for _, i := range o.voters() {
		switch {
		case i.Pod.Resizing && !i.superseded():
			waiting = append(waiting, i)
			parts = append(parts, "waiting for "+i.Name+" to be given the cpu and memory that it was changed to")
		case i.Pod.Changing && !i.Pod.Resizing: // one whose Pod is to be recreated and that serves all the same is updated again
			waiting = append(waiting, i)
			parts = append(parts, "waiting for "+i.Name+" to answer from what it was changed to")
		case o.behind(i) > catchUp:
			waiting = append(waiting, i)
			parts = append(parts, "waiting for "+i.Name+" to catch up with the leader")
		case i.Pod.Away && more: // nothing there would carry out the change, and its Pod could not be seen to end
			waiting = append(waiting, i)
			parts = append(parts, "waiting for the node of "+i.Name+", of which nothing is heard")
		case i.Pod.Unproved && !i.mended() && (more || i.OnTrial()):
			waiting = append(waiting, i)
			parts = append(parts, "waiting for "+i.Name+" to stay ready"+i.with()+", which takes up to 30s")
		}
	}
	step.Message = strings.Join(parts, "; ")
	for _, i := range waiting {
		if i.Pod.Resizing && i.Pod.Deferred != "" {
			step.Action = Stall
			step.Message += ". The node of " + i.Name + " cannot give it these now (" + i.Pod.Deferred + "): make room there, or revert spec.resources"
		}
	}
	if away := names(waiting, func(i Instance) bool { return i.Pod.AwayLong }); len(away) > 0 {
		step.Action = Stall
		step.Message += ". The Pods of " + list(away) + " stay there, and are not deleted: bring the node back, or, once it is off for good, delete the node: " + deleteNode
	}
	unready := slices.DeleteFunc(slices.Clone(waiting), func(i Instance) bool { return !i.Pod.Unproved || !i.Pod.IdleLong })
	if len(unready) > 0 {
		step.Action = Stall
		step.Message += ". etcd answers in " + list(names(unready, func(Instance) bool { return true })) + ", and the kubelet does not find it ready: look at the events of the Pod (" + d.kubectl("describe pod", unready, "") + ")"
	}
	return needsPerson(d, step, waiting), len(waiting) > 0
}

// UpdatedNext is the member that is updated when those that were updated last have proved that they
// run well. It is empty where a member is away, and where only members that have yet to prove
// themselves would serve beside it.
func UpdatedNext(d Desired, o Observed) []string {
	away := func(i Instance) bool {
		return !i.Serves() || !i.Pod.Ready || i.Pod.Changing || i.Pod.Resizing || i.Pod.Away || o.behind(i) > catchUp
	}
	if d.GivenUp != "" || slices.ContainsFunc(o.voters(), away) || !slices.ContainsFunc(o.voters(), Instance.OnTrial) {
		return nil
	}
	next, _ := updateMember(d, o)
	leaves := func(i Instance) bool { return slices.Contains(next.Members, i.Name) }
	proved := func(i Instance) bool { return !i.Pod.Unproved && !i.OnTrial() }
	stays := func(i Instance) bool { return proved(i) && !leaves(i) }
	if next.Action != Update || next.Change == ChangeResources || !slices.ContainsFunc(o.voters(), stays) {
		return nil
	}
	if slices.ContainsFunc(o.voters(), func(i Instance) bool { return leaves(i) && !proved(i) }) {
		return nil
	}
	return next.Members
}

// mended reports whether the spec has been corrected for a member that does not run well. The next
// update does not wait until that member runs well.
func (i Instance) mended() bool {
	return i.superseded() || i.Pod.Unproved && i.Pod.Change != ChangeNone && (i.Pod.Crashed || len(i.Pod.Untried) > 0 && i.Pod.Outdated)
}

// superseded reports whether the member is still to be resized to cpu and memory that the spec does
// not ask for any more. Its node may never have room for them.
func (i Instance) superseded() bool { return i.Pod.Resizing && i.Pod.Change != ChangeNone }

// Proving reports whether the member answers with the next version that its volume records, and has
// not run well for long enough yet. Until then the volume keeps the record of that next version. A
// record of any other next version is removed at the first answer, because that version may not be
// able to read the data any more.
func (i Instance) Proving() bool {
	return i.Pod.Unproved && i.Endpoint.Answered() && i.Volume.Next == i.Endpoint.Version
}

// OnTrial reports whether the member was updated, and its volume does not record yet that it serves
// with that.
func (i Instance) OnTrial() bool { return len(i.Pod.Untried) > 0 || i.Volume.Next != (Version{}) }

// with names the new version and options of a member on trial, as the end of a message; empty: the
// member is not on trial.
func (i Instance) with() string {
	if !i.OnTrial() {
		return ""
	}
	return " with " + i.news()
}

// catchUp is how many entries of its log etcd keeps for followers that are behind
// (DefaultSnapshotCatchUpEntries in server/etcdserver/server.go). One that is further behind needs
// a snapshot, and is not counted on meanwhile.
const catchUp = 5000

// behind is how many entries of the log a member has yet to apply.
func (o Observed) behind(i Instance) uint64 {
	for _, leader := range o.voters() {
		if leader.Leads() && leader.Endpoint.RaftIndex > i.Endpoint.Applied {
			return leader.Endpoint.RaftIndex - i.Endpoint.Applied
		}
	}
	return 0
}

// updateMember: the next member, followers first and the leader last, the earliest version first.
func updateMember(d Desired, o Observed) (Step, bool) {
	voters := slices.DeleteFunc(o.voters(), func(i Instance) bool { return i.Pod.Change == ChangeNone || o.full() && !i.widens() })
	if len(voters) == 0 {
		return Step{}, false
	}
	if slices.ContainsFunc(voters, Instance.mended) { // it is away now and then: no other member is to be
		voters = slices.DeleteFunc(voters, func(i Instance) bool { return !i.mended() })
	}
	if going := names(o.voters(), func(i Instance) bool { return i.Pod.Terminating }); len(going) > 0 {
		return Step{Action: Wait, Reason: Changing, Message: "waiting for " + list(going) + ", which may still answer while its Pod is terminating"}, true
	}
	slices.SortStableFunc(voters, func(a, b Instance) int {
		return cmp.Or(one(a.Leads())-one(b.Leads()), a.Endpoint.Version.Compare(b.Endpoint.Version))
	})
	i, hop := voters[0], Hop(d, o)
	lowest, _ := span(running(o))
	if waiting := o.unraised(); hop.Minor > lowest.Minor && len(waiting) > 0 {
		return Step{Action: Wait, Reason: Changing, Message: fmt.Sprintf("waiting for the storage version to reach %d.%d: %s", i.Endpoint.Version.Major, i.Endpoint.Version.Minor, list(waiting))}, true
	}
	n := len(o.voters())
	switch {
	case i.Pod.Undecided:
		return Step{
			Action: Wait, Reason: Changing,
			Message: "waiting for the API server to tell whether a policy sees the image of " + i.Name + " when it is changed in place",
		}, true
	case i.Pod.Change == ChangePod && d.Ephemeral:
		step := Step{
			Action: Stall, Reason: ChangeNotSupported,
			Message: "with spec.storage.medium Memory a member's data goes with its Pod, and " + fieldPaths(i.Pod.Parts) + " can only be changed by recreating the Pod: revert it, or ",
		}
		if n < 3 {
			step.Message += "set spec.replicas to 3 first, because without one of " + plural(n, "member") + " all data may be lost"
		} else {
			step.Message += "delete one Pod after the other, each when the one before has been replaced"
		}
		return step, true
	case i.Pod.Change != ChangeResources && n == 2:
		return Step{
			Action: Stall, Reason: ChangeNotSupported,
			Message: "cannot restart " + i.Name + " (" + fieldPaths(i.Pod.Parts) + ") without losing the quorum of 2 members: set spec.replicas to 3 for the update, or to 1",
		}, true
	}
	step := Step{
		Action: Update, Members: []string{i.Name}, Version: hop, Change: i.Pod.Change, Alone: n == 1, Reason: Changing,
		Message: described(i, hop) + then(d, o, voters[1:]),
	}
	if i.Endpoint.Version != hop {
		step = o.backedUp(d, step)
	}
	return step, true
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unraised are the members whose storage version is still that of an earlier minor than all members
// run. etcd raises the cluster version and then the storage version when the last member runs the
// new minor. Only after that the next minor, or a downgrade, may begin.
func (o Observed) unraised() []string {
	lowest, _ := span(running(o))
	if lowest.Minor < 6 { // 3.5 does not tell
		return nil
	}
	return names(o.voters(), func(i Instance) bool {
		return i.Endpoint.Version.Minor == lowest.Minor && i.Endpoint.Storage.Minor != lowest.Minor
	})
}

// described is the message of an update of one member.
func described(i Instance, hop Version) string {
	parts := slices.DeleteFunc(slices.Clone(i.Pod.Parts), func(part string) bool { return part == "version" })
	what := ""
	if i.Endpoint.Version != hop {
		what = " from " + i.Endpoint.Version.String() + " to " + hop.String()
	}
	if len(parts) > 0 {
		what += " (" + fieldPaths(parts) + ")"
	}
	switch i.Pod.Change {
	case ChangeResources:
		return "changing cpu and memory of " + i.Name + " while it runs" + what
	case ChangeImage:
		return "changing " + i.Name + " in place" + what
	default:
		return "recreating the Pod of " + i.Name + what
	}
}

// fieldPaths are the paths of the given parts of the spec, for messages.
func fieldPaths(parts []string) string { return "spec." + strings.Join(parts, ", spec.") }

// then is the end of that message: which members and versions follow.
func then(d Desired, o Observed, rest []Instance) string {
	var next string
	if len(rest) > 0 {
		next = ", then " + list(names(rest, func(Instance) bool { return true }))
	}
	if path, err := Path(running(o), d.Version); err == nil && len(path) > 1 {
		after := make([]string, len(path)-1)
		for n, v := range path[1:] {
			after[n] = v.String()
		}
		next += "; after that to " + list(after)
	}
	if len(o.voters()) == 1 {
		next += "; it is the only member: etcd does not serve until it is back"
	}
	return next
}
