package membership

import (
	"fmt"
	"slices"
	"strings"
)

// The rules of members that move to new volumes, for one of two reasons. Their volumes are not as
// the spec asks for, and spec.storage.changePolicy is Replace. Or their volumes are being deleted,
// and go with the Pods that use them. One successor joins and becomes a voter, and then one old
// member is removed (removeSurplusVoter), the least healthy first and the leader last. So there are
// never fewer voters than wanted, and at most one more.

// Doomed reports whether the member loses its data when its Pod ends. Its claim is marked for
// deletion, and the finalizer kubernetes.io/pvc-protection keeps it until the Pod ends; or the
// claim is gone from under the Pod, or is that of a member that was removed, and the process still
// runs. A Pod that has yet to start does not count: kubelet and scheduler refuse a claim that is
// being deleted. Nor does a Pod that cannot start after an update: its rollback may need another
// Pod. A claim that replaced another one is for an administrator to judge first.
func (o Observed) Doomed(i Instance) bool {
	runs := i.ID != 0 && i.Endpoint.Member() == i.ID
	switch {
	case o.holds(i) && !i.Volume.Terminating, i.Volume.InDoubt(), !i.Pod.Exists() || i.Pod.Terminating || i.Pod.Ended:
		return false
	default:
		return runs || o.holds(i) && !i.Pod.NeverRan && (!i.changing() || !i.inVain())
	}
}

// leaves says why a member is to leave its volume, in words that follow "whose volume"; empty where
// it is not.
func (o Observed) leaves(i Instance) string {
	switch {
	case !o.Doomed(i):
		return i.Volume.Unfit
	case i.Volume.Terminating:
		return "is being deleted"
	case !i.Volume.Exists():
		return "is gone"
	default:
		return "is retired"
	}
}

// moving is the voter that goes next because of its volume, once its successor votes. It is begun
// only while all voters serve and none has raised an alarm, but for one of a database that is full
// and has room on the new volumes; what has been made for it stays while one of them does not for a
// moment.
func moving(d Desired, o Observed) (Instance, bool) {
	voters := o.byValue()
	next := slices.IndexFunc(voters, func(i Instance) bool { return o.leaves(i) != "" })
	if next < 0 || d.Ephemeral || len(voters) != d.Size || o.outgrows(d) {
		return Instance{}, false
	}
	begun := len(o.learners()) > 0 || slices.ContainsFunc(o.spares(), func(i Instance) bool { return usable(i) > 0 })
	calm := !slices.ContainsFunc(voters, func(i Instance) bool {
		fine := i.Endpoint.Healthy() || o.full() && i.Serves() && d.roomier(i)
		return !fine
	})
	return voters[next], begun || calm
}

// undecided are the members of which it is not known whether their volumes can grow. Unfit is empty
// then for want of an answer: no reason to take a spare, a learner or a voter on a new volume for
// one too many, which may be a successor.
func (o Observed) undecided() []string {
	return names(o.Instances, func(i Instance) bool { return o.Member(i.ID) != nil && i.Volume.Undecided })
}

// untilDecided is the step that waits for that answer.
func untilDecided(undecided []string, before string) Step {
	return Step{
		Action: Wait, Reason: Moving,
		Message: "waiting for the API server to tell whether the volumes of " + list(undecided) + " can grow, before " + before,
	}
}

// outgrows reports whether some member has a larger database than a new volume has room for. A
// member that came to such a one would refuse writes, and all others with it.
func (o Observed) outgrows(d Desired) bool {
	return d.Room > 0 && slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Endpoint.DBSize >= d.Room })
}

// volumeTooSmall is checked before a first new volume is created.
func volumeTooSmall(d Desired, o Observed) (Step, bool) {
	stay := names(o.voters(), func(i Instance) bool { return o.leaves(i) != "" })
	way := "Revert spec.storage.size, or raise spec.options.quotaBackendSize"
	if !slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Volume.Unfit != "" }) {
		way = "Raise spec.storage.size or spec.options.quotaBackendSize"
	}
	return Step{
		Action: Stall, Reason: VolumeTooSmall,
		Message: fmt.Sprintf("%s stay on their volumes: the database is larger than it may be on new ones (%d MiB). %s, or make the database smaller: %s, then %s", list(stay), d.Room>>20, way, d.compacts(o), d.defragments(o)) + o.leavePods(d),
	}, len(stay) > 0 && o.outgrows(d)
}

// instead says whose place a member to come is to take, why, and which members follow.
func instead(o Observed, i Instance) string {
	rest := slices.DeleteFunc(o.byValue(), func(j Instance) bool { return j.Name == i.Name })
	return "to take the place of " + i.Name + ", whose volume " + o.leaves(i) + o.thenMoves(rest)
}

// thenMoves names the members that go after that because of their volumes.
func (o Observed) thenMoves(rest []Instance) string {
	unfit := names(rest, func(i Instance) bool { return o.leaves(i) != "" })
	if len(unfit) == 0 {
		return ""
	}
	return "; then " + list(unfit)
}

// leavePods tells a person what keeps the data, where nothing goes on before that person has acted;
// empty where no data goes.
func (o Observed) leavePods(d Desired) string {
	doomed := slices.DeleteFunc(o.voters(), func(i Instance) bool { return !o.Doomed(i) })
	if len(doomed) == 0 {
		return ""
	}
	why := strings.TrimPrefix(o.leaves(doomed[0]), "is ")
	if len(doomed) > 1 {
		return ". The volumes of " + list(names(doomed, o.Doomed)) + " are " + why + ", and their data goes with their Pods: leave these Pods until other members have taken their places"
	}
	text := ". The volume of " + doomed[0].Name + " is " + why + ", and its data goes with its Pod: leave this Pod until another member has taken its place"
	if len(o.voters()) == 1 {
		text += ". It has the only copy of the data: save that (in one terminal: " + d.kubectl("port-forward", doomed, " 2379") + "; in another: etcdctl --endpoints localhost:2379 snapshot save FILE, with TLS as in docs/tls.md#connect)"
	}
	return text
}
