package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// Where a majority is lost for good, a cluster can be restored in place from what one member has
// that is left (spec.source.survivor of an EtcdRestore). Its data is what is restored, as if it
// were a stored snapshot.

// survivor is the data from which the cluster is restored, or why there is none. One that is not
// named must tell itself that it is no learner: that may have any part of the data.
func survivor(c *api.EtcdCluster, o membership.Observed) (*api.RestoredSnapshot, string) {
	left := slices.DeleteFunc(slices.Clone(o.Instances), func(i membership.Instance) bool { return notLeft(o, i) != "" })
	if asked := c.Status.Restore.Survivor.Member; asked != "" {
		i, _ := o.Instance(asked)
		if why := cmp.Or(setAside(o, asked), notLeft(o, i)); why != "" {
			return nil, fmt.Sprintf("spec.source.survivor.member is %s, %s%s", asked, why, instead(left))
		}
		return dataOf(c, i), ""
	}
	voters := slices.DeleteFunc(slices.Clone(left), func(i membership.Instance) bool { return i.Endpoint.Learner })
	switch {
	case len(voters) == 1 && voters[0].Endpoint.Answered() && !accused(voters[0]):
		return dataOf(c, voters[0]), ""
	case len(voters) > 1:
		return nil, fmt.Sprintf("there are several volumes with data of the cluster, those of %s: if these members can come back, bring back their nodes, and delete the EtcdRestore; if a majority of the cluster cannot, delete the EtcdRestore, and apply it again with spec.source.survivor.member set to the member to take",
			withLogs(voters))
	case len(left) == 0:
		return nil, "no member is left with a volume that has its data: delete the EtcdRestore, and create one from a stored snapshot" + stillAside(o)
	}
	i := left[0]
	why := "it does not answer, so that nothing tells whether it has a vote"
	switch {
	case i.Endpoint.Learner:
		why = "it is a learner, and may have any part of the data"
	case accused(i):
		why = "etcd has raised the alarm CORRUPT for it: its data may be wrong"
	}
	return nil, fmt.Sprintf("%s is left with its data, and %s: to take it all the same, delete the EtcdRestore, and apply it again with spec.source.survivor.member %s", i.Name, why, i.Name)
}

// accused reports whether etcd says of the data of a member that it differs.
func accused(i membership.Instance) bool {
	return slices.ContainsFunc(i.Endpoint.Alarms, func(a membership.Alarm) bool {
		return a.Kind == membership.AlarmCorrupt && (a.Member == 0 || a.Member == i.Endpoint.MemberID)
	})
}

// setAside is said of a former member; empty where it is none.
func setAside(o membership.Observed, member string) string {
	if slices.ContainsFunc(o.Former, func(i membership.Instance) bool { return i.Name == member && i.Volume.Exists() }) {
		return "whose volume was set aside for an earlier EtcdRestore, and can only be read by hand (docs/snapshots-by-hand.md)"
	}
	return ""
}

// stillAside names the volumes of former members that are there.
func stillAside(o membership.Observed) string {
	var former []string
	for _, i := range o.Former {
		if i.Volume.Exists() {
			former = append(former, i.Name)
		}
	}
	if len(former) == 0 {
		return ""
	}
	return ". The volumes of " + strings.Join(former, ", ") + ", which were set aside for an earlier EtcdRestore, are there, and can be read by hand (docs/snapshots-by-hand.md)"
}

// withLogs are the names of members, and how much each is known to have.
func withLogs(members []membership.Instance) string {
	names := make([]string, len(members))
	for n, i := range members {
		names[n] = i.Name + i.Endpoint.Log()
	}
	return strings.Join(names, ", ")
}

// notLeft is why a member is none whose data could be taken; empty where it is one.
func notLeft(o membership.Observed, i membership.Instance) string {
	switch v := i.Volume; {
	case !v.Exists():
		return "which has no volume"
	case v.Terminating:
		return "whose volume is being deleted"
	case v.Retired, o.Remembered && i.ID == 0:
		return "which is no member of the cluster any more"
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

func instead(left []membership.Instance) string {
	if len(left) == 0 {
		return ", and no other is left with its data: delete the EtcdRestore, and create one from a stored snapshot"
	}
	return ": delete the EtcdRestore, and apply it again with one of those that are left, " + withLogs(left)
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

// lastRan is the newest version that may have written the data of a member: the next minor reads it
// as well, one before does not.
func lastRan(c *api.EtcdCluster, i membership.Instance) membership.Version {
	newest := i.Volume.Version
	next := i.Volume.Next
	if i.Pod.Exists() { // its image tells whether that was tried
		next = membership.Version{}
	}
	for _, v := range []membership.Version{i.Endpoint.Version, i.Pod.Version, next} {
		if newest.Compare(v) < 0 {
			newest = v
		}
	}
	if newest == (membership.Version{}) {
		return desired(c).Version
	}
	return newest
}
