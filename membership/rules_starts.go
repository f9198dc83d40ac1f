package membership

import (
	"cmp"
	"slices"
)

// The rules that start members of a cluster that has formed. No member starts empty.

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
