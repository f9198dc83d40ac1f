package membership

import (
	"fmt"
	"slices"
)

// recordLaterMinor: etcd of a later minor has served on the data of a member, unseen: the operator
// was away, or the kubelet's word was, and its Pod is gone since. That cannot be told from one that
// has never run, and what does not come up is put back. Then etcd itself is the judge: where the
// cluster's version has risen it ends at once, serves nothing, and says why (MustDetectDowngrade in
// server/etcdserver/version, schema.Validate in server/storage/schema). While any voter runs the
// earlier minor the version does not rise, so it may be the last one that is changed, or the only
// one. Where the data of others has risen, they say so, and nothing is tried.
//
// Where any member answers from the earlier minor the version has not risen, and what is said is
// not so: nothing is written down, and the member is replaced like any other that is down.
//
// What has run is written down then, and stays: it is never put back over that again.
func recordLaterMinor(d Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		v := i.Volume
		if d.Ephemeral || i.Endpoint.Member() != 0 || i.Pod.Terminating || i.Pod.Foreign || !v.Recorded() || v.Terminating || v.Replaced {
			continue
		}
		step := Step{Action: Raise, Members: []string{i.Name}, Reason: Recording}
		switch {
		case i.changing() && i.inVain() && v.Next.Minor > v.Version.Minor && o.risen(v.Next.Minor):
			step.Version = v.Next
			step.Message = fmt.Sprintf("writing down that etcd %s has run on the volume of %s: the data of other members is of that minor, so it is not put back to %s", v.Next, i.Name, v.Version)
		case i.Pod.Outgrown == v.Version.Minor+1 && !v.changes() && i.Pod.Version == v.Version && !o.below(i.Pod.Outgrown):
			g, ok := gate(i.Pod.Outgrown)
			if !ok {
				continue
			}
			step.Version = g.newest()
			if d.Version.Minor == g.Minor {
				step.Version = d.Version
			}
			step.Message = fmt.Sprintf("writing down that a later etcd than %s has run on the volume of %s, as etcd itself says: it is started with %s", v.Version, i.Name, step.Version)
		default:
			continue
		}
		return step, true
	}
	return Step{}, false
}

// risen reports whether the data of some voter is of that minor. Then every voter has run it.
func (o Observed) risen(minor int) bool {
	return slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Endpoint.Storage.Minor >= minor })
}

// below reports whether a member answers from an earlier minor. Then the version of the cluster is
// no later than that.
func (o Observed) below(minor int) bool {
	return slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return i.Endpoint.Answered() && i.Endpoint.Version.Minor < minor
	})
}
