package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// status.plan of an EtcdRestore says what a restore in place does, before it begins. A suspended
// EtcdRestore stops there. Later it is carried out from exactly the snapshot, or the volume, that
// its plan names.

// planned is the plan of a restore in place from what was found.
func planned(c *api.EtcdCluster, seen observed, now metav1.Time) *api.RestorePlan {
	p := &api.RestorePlan{
		PlannedAt:     now.Rfc3339Copy(),
		From:          *seen.found.DeepCopy(),
		SetAside:      bounded(membership.InPlaceSetsAside(seen.Observed)),
		FormerVolumes: cmp.Or(c.Status.Restore.FormerVolumes, api.RetentionRetain),
		ClosedService: c.ClientServiceName(),
	}
	for n := range size(c) {
		p.NewMembers = append(p.NewMembers, c.MemberName(nextOrdinal(c, seen.Instances)+n))
	}
	if member := api.MemberOf(p.From.Name); member != "" {
		i, _ := seen.Instance(member)
		p.RaftTerm, p.RaftIndex = int64(i.Endpoint.RaftTerm), int64(i.Endpoint.RaftIndex)
		p.Lost = lostWithout(i, seen.Observed)
	} else {
		p.Lost = lostSince(p.From, seen.Observed)
	}
	return p
}

// mostSetAside is the schema's bound on setAside.
const mostSetAside = 64

// bounded are the names with how many more there are: those of members that were removed long ago
// are kept for as long as a person likes.
func bounded(names []string) []string {
	if len(names) <= mostSetAside {
		return names
	}
	const told = mostSetAside - 1
	return append(slices.Clone(names[:told]), fmt.Sprintf("and %d more", len(names)-told))
}

// lostSince says which writes are lost at most where a stored snapshot is restored.
func lostSince(s api.RestoredSnapshot, o membership.Observed) string {
	taken := ""
	if s.TakenAt != nil {
		taken = " (" + s.TakenAt.UTC().Format(time.RFC3339) + ")"
	}
	if ours := o.ID().String(); s.ClusterID != "" && s.ClusterID != ours { // revisions of two clusters cannot be compared
		return fmt.Sprintf("all data of etcd cluster %s that etcd cluster %s did not have when the snapshot was taken%s", ours, s.ClusterID, taken)
	}
	since := fmt.Sprintf("writes after revision %d%s", s.Revision, taken)
	newest := farthest(o, func(i membership.Instance) int64 { return i.Endpoint.Revision })
	beyond := ""
	if o.Reach != membership.ReachQuorum {
		beyond = "; members that do not answer may have later ones"
	}
	switch at := newest.Endpoint.Revision; {
	case at == 0:
		return since + "; how many is unknown, because no member answers"
	case at <= s.Revision:
		return since + ": " + newest.Name + " has none" + beyond
	default:
		return fmt.Sprintf("%s: %s is at revision %d%s", since, newest.Name, at, beyond)
	}
}

// lostWithout says which writes are lost at most where the data of a member is restored.
func lostWithout(i membership.Instance, o membership.Observed) string {
	without := "writes that were acknowledged without " + i.Name
	if i.Endpoint.RaftIndex == 0 {
		return without + "; how many is unknown, because " + i.Name + " does not answer"
	}
	without += fmt.Sprintf(": log entries after %d, or after a later one; how many is unknown", i.Endpoint.RaftIndex)
	if other := farthest(o, func(i membership.Instance) uint64 { return i.Endpoint.RaftIndex }); other.Endpoint.RaftIndex > i.Endpoint.RaftIndex {
		without += fmt.Sprintf("; %s knows that entry %d is committed", other.Name, other.Endpoint.RaftIndex)
	}
	return without
}

// farthest is the member with the highest value among those that answer; the zero Instance where
// none answers.
func farthest[T cmp.Ordered](o membership.Observed, is func(membership.Instance) T) membership.Instance {
	var best membership.Instance
	for _, i := range o.Instances {
		if i.Endpoint.Answered() && is(i) > is(best) {
			best = i
		}
	}
	return best
}

// setPlan writes the plan of an EtcdRestore that is, or was, suspended. While the cluster goes on,
// its figures change all the time: the plan is written again only where the restore would do
// something else.
func setPlan(r *api.ClusterRestore, c *api.EtcdCluster, seen observed, now metav1.Time) {
	if seen.found == nil || r.Plan == nil && !seen.InPlace.Suspended {
		return
	}
	p := planned(c, seen, now)
	if r.Plan != nil && sameSource(r.Plan.From, p.From) && slices.Equal(r.Plan.SetAside, p.SetAside) && slices.Equal(r.Plan.NewMembers, p.NewMembers) {
		return
	}
	bindTo(r, p)
}

// bindTo makes it the plan of a restore: from now on only this snapshot is looked for.
func bindTo(r *api.ClusterRestore, p *api.RestorePlan) {
	r.Plan = p
	if r.Survivor == nil {
		r.Source.Snapshot, r.Source.Before = p.From.Name, nil
	}
}

func sameSource(a, b api.RestoredSnapshot) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 }

// planShown reports whether an EtcdRestore is suspended, and its plan is told. Nothing is looked
// for or tried any more until it is resumed: then it is once more.
func planShown(c *api.EtcdCluster, seen observed) bool {
	r := c.Status.Restore
	return r.Asked() && r.Plan != nil && seen.InPlace.Suspended
}

// fromPlan takes the snapshot of the plan as found while the EtcdRestore is suspended. The store is
// searched again when it is not suspended any more.
func fromPlan(c *api.EtcdCluster, seen *observed) bool {
	r := c.Status.Restore
	if !planShown(c, *seen) || r.Survivor != nil {
		return false
	}
	seen.found = r.Plan.From.DeepCopy()
	seen.Search = membership.Search{Begun: true, Found: snapshotFacts(seen.found)}
	return true
}

// asPlanned drops what was found where it is not what the plan names.
func asPlanned(c *api.EtcdCluster, seen *observed) {
	r := c.Status.Restore
	if !r.Asked() || r.Plan == nil || seen.found == nil || sameSource(r.Plan.From, *seen.found) {
		return
	}
	seen.InPlace.Problem = fmt.Sprintf("the plan is to restore %s, which is not there any more: delete EtcdRestore %s, apply it again, and look at its plan", called(r.Plan.From), r.Name)
	seen.found, seen.Search = nil, membership.Search{}
}

// called is what a message calls a source: the hash tells two snapshots of one name apart.
func called(s api.RestoredSnapshot) string {
	if member := api.MemberOf(s.Name); member != "" {
		return "the data of " + member
	}
	return "snapshot " + s.Name + " with SHA-256 " + s.SHA256
}
