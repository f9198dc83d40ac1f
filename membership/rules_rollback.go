package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// The rules of a change that does not work: it stops at the member on which it was tried, which is
// put back to what it has served with.

// rollback: a member that was changed and does not come up, or not for long, gets back what it had;
// no other was touched. Which version has run on its data is recorded at the first answer, and
// stays: only what etcd can read any time is taken back then.
func rollback(_ Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		if !i.changing() || !i.inVain() || i.Endpoint.Answered() || i.Endpoint.Member() != 0 && !i.idle() || i.Pod.Terminating || i.Pod.Foreign || i.Volume.Terminating || i.Volume.Replaced {
			continue
		}
		return Step{
			Action: PutBack, Members: []string{i.Name}, Version: i.Volume.Version, Alone: len(o.known()) == 1, Reason: ChangeFailed,
			Message: fmt.Sprintf("putting %s back: with %s it %s", i.Name, i.news(), problem(i)),
		}, true
	}
	return Step{}, false
}

// cancelUpdate: nothing is heard of the node of a member whose image was changed, and what ran
// before answers still. The node would carry the change out when it is back. Where the spec asks
// for something else by then, it is taken back before.
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
	return i.Pod.Changing || len(i.Pod.Untried) > 0 || i.Volume.changes()
}

// changes reports whether another version is to run on the volume than ran last.
func (v Volume) changes() bool { return v.Next != (Version{}) && v.Next != v.Version }

// inVain reports whether waiting for a Pod does not help: it was tried more than once; it was
// killed for want of the memory that it was changed to; it runs and does not serve; or nothing fits
// it, for longer than a node may be full for a moment, or the spec has been mended meanwhile.
func (i Instance) inVain() bool {
	unplaced := len(i.Pod.Untried) > 0 && i.Pod.NeverRan && !i.Pod.Ended && i.Pod.Problem != ""
	starved := i.Pod.Starved && slices.Contains(i.Pod.Untried, "resources")
	return i.Pod.Failing || starved || i.idle() || unplaced && (i.Pod.Overdue || i.Pod.Outdated)
}

// idle reports whether etcd runs with what the member was changed to, and does not serve: for
// longer than waiting helps, or the spec has been mended meanwhile. Another version may have made
// the data its own by then: that is not taken back.
func (i Instance) idle() bool {
	return i.changing() && !i.Volume.changes() && (i.Pod.IdleLong || i.Pod.Idle && i.Pod.Outdated)
}

// Asked reports whether what a member was changed to is what the spec asks for still: all of it but
// for what would come while it runs, or what it asks for beside the version. A Pod that still runs
// what ran before, or does so again, has not tried the version that comes next.
func (i Instance) Asked() bool {
	if i.Volume.changes() && i.Pod.Version == i.Volume.Version {
		return false
	}
	return i.Pod.Change == ChangeNone || i.Pod.Change == ChangeResources || len(i.Pod.Untried) > 0 && !i.Pod.Outdated && !i.Volume.changes()
}

// news is what the member was changed to.
func (i Instance) news() string {
	parts := make([]string, len(i.Pod.Untried))
	for n, part := range i.Pod.Untried {
		parts[n] = "spec." + part
	}
	version, others := "etcd "+cmp.Or(i.Volume.Next, i.Pod.Version).String(), "the new "+list(parts)
	switch {
	case len(parts) == 0:
		return version
	case i.Pod.Version != (Version{}) && i.Pod.Version != i.Volume.Version:
		return version + " and " + others
	default:
		return others
	}
}

// updateFailed: the change that is asked for was tried and taken back, and is tried again when the
// spec asks for another one.
func updateFailed(d Desired, o Observed) (Step, bool) {
	step := Step{
		Action: Stall, Reason: ChangeFailed,
		Message: d.GivenUp + ". It was put back, and all members run what they ran before; set the spec right, or back",
	}
	if o.downgrade() != (Version{}) {
		step.Action, step.Message = CancelDowngrade, "taking back the downgrade: "+d.GivenUp
	}
	return step, d.GivenUp != "" && slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Pod.Change != ChangeNone })
}
