package membership

import (
	"fmt"
	"slices"
)

// The rules of volumes that are not what the spec asks for, and cannot become that. Their members are replaced where the spec
// says so: one successor is prepared, joins and gets its vote, and then one of them goes (shrunk), the least valuable first and
// the leader last. So there are never fewer voters than wanted, and one more at most.

// moving is the voter that goes next because of its volume, once its successor votes. It is begun only while all voters serve
// and none has raised an alarm; what has been made for it stays while one of them does not for a moment.
func moving(d Desired, o Observed) (Instance, bool) {
	voters := o.byValue()
	unfit := slices.IndexFunc(voters, func(i Instance) bool { return i.Volume.Unfit != "" })
	if unfit < 0 || d.Ephemeral || len(voters) != d.Size || o.outgrows(d) {
		return Instance{}, false
	}
	begun := len(o.learners()) > 0 || slices.ContainsFunc(o.spares(), func(i Instance) bool { return usable(i) > 0 })
	calm := !slices.ContainsFunc(voters, func(i Instance) bool { return !i.Endpoint.Healthy() })
	return voters[unfit], begun || calm
}

// outgrows reports whether some member has a larger database than a new volume has room for. A member that came to such a one
// would refuse writes, and all others with it.
func (o Observed) outgrows(d Desired) bool {
	return d.Room > 0 && slices.ContainsFunc(o.voters(), func(i Instance) bool { return i.Endpoint.DBSize >= d.Room })
}

// cramped: found out before anything is begun.
func cramped(d Desired, o Observed) (Step, bool) {
	unfit := names(o.voters(), func(i Instance) bool { return i.Volume.Unfit != "" })
	return Step{
		Action: Stall, Reason: VolumeTooSmall,
		Message: fmt.Sprintf("%s stay on their volumes: the database is larger than it may be on new ones (%d MiB). Set storage.size back, or options.quotaBackendSize higher, or make the database smaller: compact, then defragment one member after the other", list(unfit), d.Room>>20),
	}, len(unfit) > 0 && o.outgrows(d)
}

// instead says whose place a member to come is to take, why, and who comes after.
func instead(o Observed, i Instance) string {
	rest := slices.DeleteFunc(o.byValue(), func(j Instance) bool { return j.Name == i.Name })
	return "to take the place of " + i.Name + ", whose volume " + i.Volume.Unfit + thenMoves(rest)
}

// thenMoves says who goes after that because of their volumes.
func thenMoves(rest []Instance) string {
	unfit := names(rest, func(i Instance) bool { return i.Volume.Unfit != "" })
	if len(unfit) == 0 {
		return ""
	}
	return "; then " + list(unfit)
}
