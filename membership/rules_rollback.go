package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// The rules of an update that fails. Quorate updates one member at a time. If that member does not
// come up, it is rolled back to what it last served with, and no further member is updated.

// rollback: a member that was updated and does not come up, or ends again soon, gets its earlier
// image and options back. Members that were updated before it stay so. The version that runs on a
// member's data is recorded at its first answer. From then on the version stays, and only what does
// not change the data is rolled back.
func rollback(_ Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		if !i.changing() || !i.inVain() || i.Endpoint.Answered() || i.Endpoint.Member() != 0 && !i.idle() || i.Pod.Terminating || i.Pod.Foreign || i.Volume.Terminating || i.Volume.Replaced {
			continue
		}
		return Step{
			Action: PutBack, Members: []string{i.Name}, Version: i.Volume.Version, Alone: len(o.known()) == 1, Reason: ChangeFailed,
			Message: fmt.Sprintf("rolling %s back: with %s it %s", i.Name, i.news(), problem(i)),
		}, true
	}
	return Step{}, false
}

// cancelUpdate: the image of a Pod was changed while its node was silent, and the earlier etcd
// still answers. The kubelet would carry the change out when it is back. If the spec asks for
// something else by then, the change of the Pod is reverted first.
func cancelUpdate(_ Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		armed := i.Pod.Away && i.Pod.Changing && !i.Pod.Resizing && i.Endpoint.Answered() && i.Endpoint.Version == i.Volume.Version
		if !armed || i.Pod.Change == ChangeNone || i.Pod.Terminating || i.Pod.Foreign || i.Volume.Terminating || i.Volume.Replaced {
			continue
		}
		return Step{
			Action: PutBack, Members: []string{i.Name}, Version: i.Volume.Version, Alone: len(o.known()) == 1, Reason: Changing,
			Message: fmt.Sprintf("taking back the change of %s to %s: its node has not heard of it, and the spec does not ask for it any more", i.Name, i.news()),
		}, true
	}
	return Step{}, false
}

// changing reports whether the member was changed and has not answered since.
func (i Instance) changing() bool {
	return i.Pod.Changing || len(i.Pod.Untried) > 0 || i.Volume.Changes()
}

// Changes reports whether another version is to run on the volume than ran last.
func (v Volume) Changes() bool { return v.Next != (Version{}) && v.Next != v.Version }

// inVain reports whether waiting for an updated Pod does not help: its container has failed more
// than once; it was OOM-killed with its new memory limit; etcd runs and does not serve; no node
// fits it for long; or its kubelet has ended it, or starts no etcd, and the spec has been corrected
// since.
func (i Instance) inVain() bool {
	tried := len(i.Pod.Untried) > 0 || i.Volume.Changes() && !i.Pod.Exists()
	unplaced := tried && i.Pod.NeverRan && !i.Pod.Ended && i.Pod.Problem != ""
	starved := i.Pod.Starved && slices.Contains(i.Pod.Untried, "resources")
	return i.Pod.Failing || starved || i.idle() || unplaced && i.Pod.Overdue ||
		(unplaced || tried && i.Pod.Ended) && i.Pod.Outdated
}

// idle reports whether etcd runs after an update and does not serve: for long, or the spec has been
// corrected since. Another version may have changed the data already. Then the earlier etcd ends at
// once, and recordLaterMinor follows.
func (i Instance) idle() bool {
	return i.changing() && (i.Pod.IdleLong || i.Pod.Idle && i.unwanted())
}

// unwanted reports whether the Pod has something to roll back for which the spec does not ask any
// more, be it the version or anything else. A version that is asked for still is wanted, whatever
// the spec has come to ask for beside it; but from another image it may serve.
func (i Instance) unwanted() bool {
	rolledBack := i.Pod.Version == i.Volume.Version && len(i.Pod.Untried) == 0
	onlyVersion := i.Volume.Changes() && len(i.Pod.Untried) == 0
	otherImage := slices.Contains(i.Pod.Parts, "version") || slices.Contains(i.Pod.Parts, "image")
	return !i.StillWanted() && !rolledBack && (!onlyVersion || i.Pod.Change != ChangePod || otherImage)
}

// StillWanted reports whether what a member was changed to is what the spec asks for still: all of
// it but for resources that were not changed and would come while it runs, or what it asks for
// beside the version. A Pod that still runs what ran before, or does so again, has not tried the
// version that comes next.
func (i Instance) StillWanted() bool {
	if i.Volume.Changes() && i.Pod.Version == i.Volume.Version {
		return false
	}
	switch i.Pod.Change {
	case ChangeNone:
		return true
	case ChangeResources:
		return !slices.Contains(i.Pod.Untried, "resources")
	default:
		return len(i.Pod.Untried) > 0 && !i.Pod.Outdated && !i.Volume.Changes()
	}
}

// news names what the member was updated to, for messages.
func (i Instance) news() string {
	version, others := "etcd "+cmp.Or(i.Volume.Next, i.Pod.Version).String(), "the new "+fieldPaths(i.Pod.Untried)
	switch {
	case len(i.Pod.Untried) == 0:
		return version
	case i.Pod.Version != (Version{}) && i.Pod.Version != i.Volume.Version:
		return version + " and " + others
	default:
		return others
	}
}

// updateFailed: the update that the spec asks for was tried and rolled back. It is tried again when
// the spec changes.
func updateFailed(d Desired, o Observed) (Step, bool) {
	rolledBack := "It was rolled back, and all members run what they ran before"
	if updated := names(o.voters(), func(i Instance) bool { return i.Pod.Change == ChangeNone }); len(updated) > 0 {
		rolledBack = "It was rolled back. Only " + list(updated) + " has what the spec asks for, and the others run what they ran before"
	}
	step := Step{
		Action: Stall, Reason: ChangeFailed,
		Message: d.GivenUp + ". " + rolledBack + ". Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false",
	}
	if o.downgrade() != (Version{}) {
		step.Action, step.Message = CancelDowngrade, "taking back the downgrade: "+d.GivenUp
	}
	return step, d.GivenUp != "" && slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Pod.Change != ChangeNone })
}
