package membership

import (
	"fmt"
	"slices"
)

// recordLaterMinor: a member may have served with a later minor of etcd unseen, because the
// operator or the kubelet was away, and its Pod is gone since. That looks the same as a later minor
// that never ran, and is rolled back. Then etcd itself says what happened: if the cluster version
// has risen, the earlier etcd ends at once, serves nothing, and its message says why
// (MustDetectDowngrade in server/etcdserver/version, schema.Validate in server/storage/schema). The
// cluster version rises only when no voter runs the earlier minor, so this is the last member to be
// updated, or the only one. If the storage version of other members has risen, that is proof
// enough, and no rollback is tried.
//
// If any member answers with the earlier minor, the cluster version has not risen, and etcd's
// message is wrong: nothing is recorded, and the member is replaced like any other that is down.
//
// The recorded minor stays: the member is never rolled back to an earlier one again. With
// spec.storage.medium Memory the volume is the Pod, so that it gets the later minor in place.
func recordLaterMinor(d Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		v := i.Volume
		if i.Endpoint.Member() != 0 || i.Pod.Terminating || i.Pod.Foreign || !v.Recorded() || v.Terminating || v.Replaced {
			continue
		}
		step, data := Step{Action: Raise, Members: []string{i.Name}, Reason: Recording}, "the volume"
		if d.Ephemeral { // no volume says what comes next: the image of the Pod does
			v.Next, data = i.Pod.Version, "the data"
		}
		switch {
		case i.changing() && i.inVain() && v.Next.Minor > v.Version.Minor && o.risen(v.Next.Minor):
			step.Version = v.Next
			step.Message = fmt.Sprintf("recording that etcd %s has run on %s of %s: the data of other members is of that minor. Quorate does not roll %s back to %s", v.Next, data, i.Name, i.Name, v.Version)
		case i.Pod.Outgrown == v.Version.Minor+1 && !v.Changes() && i.Pod.Version == v.Version && !o.below(i.Pod.Outgrown):
			g, ok := gate(i.Pod.Outgrown)
			if !ok {
				continue
			}
			step.Version = g.newest()
			if d.Version.Minor == g.Minor {
				step.Version = d.Version
			}
			step.Message = fmt.Sprintf("recording that a later etcd than %s has run on %s of %s, as etcd itself says. Quorate starts %s with etcd %s", v.Version, data, i.Name, i.Name, step.Version)
		default:
			continue
		}
		return step, true
	}
	return Step{}, false
}

// risen reports whether some voter has the storage version of that minor. Then every voter has run
// it.
func (o Observed) risen(minor int) bool {
	return slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Endpoint.Storage.Minor >= minor })
}

// below reports whether a member answers with an earlier minor. Then the cluster version is not
// later than that.
func (o Observed) below(minor int) bool {
	return slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return i.Endpoint.Answered() && i.Endpoint.Version.Minor < minor
	})
}
