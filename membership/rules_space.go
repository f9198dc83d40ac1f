package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rules of a database that has reached its quota. etcd raises the alarm NOSPACE then, and every
// member refuses what would write until the alarm is taken back, which etcd never does by itself.
// Members can still start and be added, so that room can be made: larger volumes, and members that
// are started with a higher quota. Every other update waits.

// etcdRequest is the largest request that etcd takes by itself (DefaultMaxRequestBytes in
// server/embed/config.go).
const etcdRequest = 3 << 19

// spare is how much of a quota must be free for a member to have room: a tenth, and two of the
// largest requests. etcd raises the alarm where one request more would reach the quota (Available
// in server/storage/quota.go), so that less than one is free where the alarm comes back. It is not
// taken back there again and again.
func (d Desired) spare(quota int64) int64 {
	return max(quota/10, 2*cmp.Or(d.Request, etcdRequest))
}

// full reports whether etcd refuses writes because of the alarm NOSPACE, and has raised no other
// one.
func (o Observed) full() bool {
	raised := o.alarms()
	return len(raised) > 0 && !slices.ContainsFunc(raised, func(a Alarm) bool { return a.Kind != AlarmNoSpace })
}

// alarms that any member knows of, in their order.
func (o Observed) alarms() []Alarm {
	var raised []Alarm
	for _, i := range o.Instances {
		raised = append(raised, i.Endpoint.Alarms...)
	}
	slices.SortFunc(raised, func(a, b Alarm) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), cmp.Compare(a.Member, b.Member))
	})
	return slices.Compact(raised)
}

// disarmNoSpace: every member has room. Each of them raises the alarm by itself; a learner has
// become a voter before.
func disarmNoSpace(d Desired, o Observed) (Step, bool) {
	if !o.full() || slices.ContainsFunc(o.voters(), func(i Instance) bool { return !i.Serves() || !d.roomy(i, i.Endpoint.DBSize) }) {
		return Step{}, false
	}
	raised := o.alarms()[0]
	whose := ""
	if raised.Member != 0 {
		whose = " of " + raised.Member.String()
	}
	return Step{
		Action: Disarm, Alarm: AlarmNoSpace, ID: raised.Member, Reason: AlarmRaised,
		Message: "taking back the alarm NOSPACE" + whose + ": the database of every member has room",
	}, true
}

// roomy reports whether a database of that size has room in the quota that a member runs with, as
// far as both are known.
func (d Desired) roomy(i Instance, size int64) bool {
	return i.Pod.Quota > 0 && size > 0 && i.Pod.Quota-size >= d.spare(i.Pod.Quota)
}

// roomier reports whether a member has a higher quota, and room in it, on a volume as the spec asks
// for.
func (d Desired) roomier(i Instance) bool {
	return i.Pod.Quota > 0 && d.Room > i.Pod.Quota && d.Room-i.Endpoint.DBSize >= d.spare(d.Room)
}

// widens reports whether a member has a higher quota when it has been changed, and a volume that is
// larger than that.
func (i Instance) widens() bool {
	return i.Pod.Change != ChangeNone && i.Pod.Quota > 0 && i.Pod.QuotaToBe > i.Pod.Quota && (i.Volume.Capacity == 0 || i.Pod.QuotaToBe < i.Volume.Capacity)
}

// roomComes reports whether room is being made: a volume grows, or a member is to come up with a
// higher quota, or was changed and has not answered yet.
func (o Observed) roomComes(d Desired) bool {
	_, grows := expandVolumes(d, o)
	return grows || slices.ContainsFunc(o.voters(), func(i Instance) bool {
		return i.widens() || i.Volume.Growing || i.Pod.Changing || i.changing() && !i.Serves()
	})
}

// expandVolumesFirst: a quota that is larger than the volume would let etcd fill the disk.
func expandVolumesFirst(d Desired, o Observed) (Step, bool) {
	step, ok := expandVolumes(d, o)
	return step, ok && o.full()
}

// quotaTooSmall: if the database has reached the new, lower quota, the first updated member would
// raise the alarm NOSPACE, and all members would refuse writes.
func quotaTooSmall(d Desired, o Observed) (Step, bool) {
	lacking := slices.DeleteFunc(o.voters(), func(i Instance) bool {
		lowers := i.Pod.Change != ChangeNone && i.Pod.QuotaToBe > 0 && i.Pod.QuotaToBe < i.Pod.Quota
		return !lowers || i.Endpoint.DBSize <= i.Pod.QuotaToBe-d.spare(i.Pod.QuotaToBe)
	})
	if len(lacking) == 0 {
		return Step{}, false
	}
	i := slices.MaxFunc(lacking, func(a, b Instance) int { return cmp.Compare(coarse(a.Endpoint.DBSize), coarse(b.Endpoint.DBSize)) })
	size, inUse := coarse(i.Endpoint.DBSize), coarse(i.Endpoint.InUse)
	way := "Set spec.options.quotaBackendSize to " + quantity(d.leastQuota(size)) + " or more"
	if i.Endpoint.InUse <= i.Pod.QuotaToBe-d.spare(i.Pod.QuotaToBe) {
		way += ", or " + d.defragments(o)
	}
	step := Step{
		Action: Stall, Reason: QuotaTooSmall,
		Message: fmt.Sprintf("no member is changed: the database of %s has %s, %s in use, and its quota would be %s. %s", i.Name, inMiB(size), inMiB(min(inUse, size)), inMiB(i.Pod.QuotaToBe), way),
	}
	if o.downgrade() != (Version{}) {
		step.Action, step.Message = CancelDowngrade, "taking back the downgrade: "+step.Message
	}
	return step, true
}

// leastQuota is one in which a database of that size has room.
func (d Desired) leastQuota(size int64) int64 {
	return max(size+size/9+1, size+d.spare(0))
}

func alarmRaised(d Desired, o Observed) (Step, bool) {
	if o.full() && o.roomComes(d) {
		return Step{}, false // the rules of changes follow
	}
	return Step{
		Action: Stall, Reason: AlarmRaised,
		Message: "etcd has raised the alarm NOSPACE, and refuses writes: " + d.whatToFree(o) + o.leavePods(d),
	}, true
}

// whatToFree says how large the databases are, and what gives them room.
func (d Desired) whatToFree(o Observed) string {
	after := ". Quorate takes the alarm back when every member has room"
	lacking := slices.DeleteFunc(o.voters(), func(i Instance) bool { return d.roomy(i, i.Endpoint.DBSize) })
	known := slices.DeleteFunc(slices.Clone(lacking), func(i Instance) bool { return i.Pod.Quota == 0 || i.Endpoint.DBSize == 0 })
	switch {
	case len(lacking) > 0 && len(notServing(lacking)) == len(lacking):
		return "whether every database has room is not known: " + problems(notServing(lacking)) + after
	case len(known) == 0:
		return "the database has reached its quota. Raise spec.options.quotaBackendSize, or make it smaller: " + d.compacts(o) + ", then " + d.defragments(o) + after
	}
	i := slices.MaxFunc(known, func(a, b Instance) int { return cmp.Compare(coarse(a.Endpoint.InUse), coarse(b.Endpoint.InUse)) })
	sizes := fmt.Sprintf("the database of %s has %s of %s, %s in use. ", i.Name, inMiB(i.Endpoint.DBSize), inMiB(i.Pod.Quota), inMiB(min(coarse(i.Endpoint.InUse), i.Endpoint.DBSize)))
	needed, more := "Where that is data that is needed, raise "+higher(i), "For more room than that, raise "+higher(i)
	if i.Pod.Quota >= mostQuota {
		needed = "A higher quota cannot be asked for: delete what is not needed"
		more = needed
	}
	switch free := "The rest is free pages: " + d.defragments(o); {
	case !d.roomy(i, i.Endpoint.InUse):
		return sizes + needed + ". Where it is old revisions, " + d.compacts(o) + ", then " + d.defragments(o) + after
	case 2*i.Endpoint.InUse > i.Pod.Quota: // it may be full again soon
		return sizes + free + ". " + more + after
	default:
		return sizes + free + after
	}
}

// higher names the fields to set for twice the quota of a member.
func higher(i Instance) string {
	quota := min(2*i.Pod.Quota, mostQuota)
	what := "spec.options.quotaBackendSize, for example to " + quantity(quota)
	if i.Volume.Capacity < 2*quota {
		what += ", and spec.storage.size, for example to " + quantity(2*quota)
	}
	return what
}

// mostQuota is what spec.options.quotaBackendSize may be at most, in bytes.
const mostQuota = 100 << 30

// compacts and defragments are commands. A compaction is one of the cluster, a defragmentation one
// of each member, which does not answer meanwhile.
func (d Desired) compacts(o Observed) string {
	one := o.anyVoter()
	return "compact (read the revision: " + d.etcdctl(one, "endpoint status -w json") + "; then " + d.etcdctl(one, "compact REVISION") + ")"
}

func (d Desired) defragments(o Observed) string {
	members := o.voters()
	slices.SortStableFunc(members, func(a, b Instance) int { return one(a.Leads()) - one(b.Leads()) })
	return "defragment one member after the other (" + d.etcdctlEach(members, "defrag --command-timeout=5m") + ")"
}

// inMiB is a size as people read it. coarse is one that changes seldom, at most an eighth more than
// the true one.
func inMiB(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }

func coarse(bytes int64) int64 {
	unit := int64(1 << 20)
	for bytes/unit > 16 {
		unit *= 2
	}
	return (bytes + unit - 1) / unit * unit
}

// quantity is a size as it is written in a spec.
func quantity(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGi", bytes>>30)
	}
	return fmt.Sprintf("%dMi", (bytes+1<<20-1)>>20)
}
