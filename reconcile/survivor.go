package reconcile

import (
	"fmt"
	"slices"
	"strings"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// Where a majority is lost for good, a cluster can be restored in place from what one member has that is left (spec.source.survivor
// of an EtcdRestore). Its data is what is restored, as if it were a stored snapshot.

// survivor is the data from which the cluster is restored, or why there is none.
func survivor(c *api.EtcdCluster, o membership.Observed) (*api.RestoredSnapshot, string) {
	left := slices.DeleteFunc(slices.Clone(o.Instances), func(i membership.Instance) bool { return notLeft(o, i) != "" })
	names := make([]string, 0, len(left))
	for _, i := range left {
		names = append(names, i.Name+committed(i))
	}
	if asked := c.Status.Restore.Survivor.Member; asked != "" {
		i, _ := o.Instance(asked)
		if why := notLeft(o, i); why != "" {
			return nil, fmt.Sprintf("spec.source.survivor.member is %s, %s%s", asked, why, instead(names))
		}
		return dataOf(c, i), ""
	}
	switch len(left) {
	case 1:
		return dataOf(c, left[0]), ""
	case 0:
		return nil, "no member is left with a volume that has its data: delete the EtcdRestore, and make one of a stored snapshot"
	}
	return nil, fmt.Sprintf("there are several volumes with data of the cluster, those of %s: if these members can come back, bring back their nodes, and delete the EtcdRestore; if a majority of the cluster cannot, delete the EtcdRestore, and apply it again with spec.source.survivor.member, the one to take",
		strings.Join(names, ", "))
}

// notLeft is why a member is none whose data could be taken; empty where it is one.
func notLeft(o membership.Observed, i membership.Instance) string {
	switch v := i.Volume; {
	case !v.Exists():
		return "which has no volume"
	case v.Terminating:
		return "whose volume is being deleted"
	case v.Retired:
		return "which was removed from the cluster earlier"
	case v.Replaced:
		return "whose volume is another object than the one on which its data was written"
	case !v.Recorded() || v.ClusterID != o.ID():
		return "whose volume is not known to have data of this cluster"
	case i.Pod.Empty:
		return "whose volume came back empty"
	case v.Aside != "":
		return "whose volume was set aside for an earlier EtcdRestore"
	}
	return ""
}

// committed is up to where a member that answers knows its log to be committed.
func committed(i membership.Instance) string {
	if i.Endpoint.RaftIndex == 0 {
		return ""
	}
	return fmt.Sprintf(" (log up to entry %d at least)", i.Endpoint.RaftIndex)
}

func instead(names []string) string {
	if len(names) == 0 {
		return ", and no other is left with its data: delete the EtcdRestore, and make one of a stored snapshot"
	}
	return ": delete the EtcdRestore, and apply it again with one of those that are left, " + strings.Join(names, ", ")
}

// dataOf is the data of a member as that from which a cluster is started.
func dataOf(c *api.EtcdCluster, i membership.Instance) *api.RestoredSnapshot {
	data := membership.DataOf(i.Name, i.Volume.UID)
	s := &api.RestoredSnapshot{
		Name: data.Name, SHA256: data.SHA256, ClusterID: i.Volume.ClusterID.String(),
		Revision: i.Endpoint.Revision, Size: i.Endpoint.DBSize,
	}
	if newest := lastRan(c, i); newest != (membership.Version{}) {
		s.EtcdVersion = newest.String()
	}
	if s.Size == 0 && c.Status.DBSize != nil {
		s.Size = c.Status.DBSize.Value()
	}
	return s
}

// lastRan is the newest version that may have written the data of a member: the next minor reads it as well, one before does not.
func lastRan(c *api.EtcdCluster, i membership.Instance) membership.Version {
	newest := i.Volume.Version
	for _, v := range []membership.Version{i.Endpoint.Version, i.Pod.Version, i.Volume.Next} {
		if newest.Compare(v) < 0 {
			newest = v
		}
	}
	if newest == (membership.Version{}) {
		return desired(c).Version
	}
	return newest
}
