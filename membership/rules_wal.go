package membership

import (
	"fmt"
	"slices"
)

// The rules of WAL entries that etcd 3.5 wrote, for example when a member of 3.5 started. etcd 3.7
// does not know their form, and panics (apply.Apply in server/etcdserver/apply). A member reads
// them at every start until it has saved a later snapshot. etcd saves one after --snapshot-count
// entries, which an idle cluster may never reach.

// Replays is the value of Volume.Replays to record for a member that answers. An entry that one
// member of 3.5 writes is in the WAL of all members.
func Replays(d Desired, o Observed, i Instance) string {
	is := i.Volume.Replays
	switch {
	case i.Endpoint.Version.Minor != 6:
		return is
	case i.Volume.Version.Minor == 5, d.Version.Minor == 5 && i.Endpoint.Downgrade.Minor == 5: // others are about to run it
		return ReplaysAny
	case d.Version.Minor > 6 && is != "" && is != ReplaysPast && is != ReplaysRisen && o.allSix(6, 0):
		return ReplaysRisen
	case d.Version.Minor > 6 && is == ReplaysRisen && o.allSix(5, 5):
		return ReplaysPast
	default:
		return is
	}
}

// allSix reports whether every voter runs 3.6, and tells of data of that minor and of a downgrade
// to that one, or of none for 0.
//
// Where the cluster's version falls, a member of 3.6 saves a snapshot before it makes its data
// readable for the earlier minor (ClusterVersionSet in server/etcdserver/apply/apply.go,
// UpdateStorageVersion in server/etcdserver/adapters.go). So a member that has data of 3.5, and had
// data of 3.6 when none ran 3.5 any more, has a log that begins after all entries of 3.5. Without
// the second, the downgrade may be one that was carried out and that etcd has yet to end.
func (o Observed) allSix(storage, downgrade int) bool {
	voters := o.voters()
	return len(voters) > 0 && !slices.ContainsFunc(voters, func(i Instance) bool {
		return i.Endpoint.Version.Minor != 6 || i.Endpoint.Storage.Minor != storage || i.Endpoint.Downgrade.Minor != downgrade
	})
}

// replay are the voters with entries of 3.5 in their WAL after the last snapshot.
func (o Observed) replay() []Instance {
	return slices.DeleteFunc(o.voters(), func(i Instance) bool {
		return i.Endpoint.Version.Minor != 6 || i.Volume.Replays == "" || i.Volume.Replays == ReplaysPast
	})
}

// rewriteWAL: before the first member runs 3.7, Quorate enables a downgrade to 3.5, for which etcd
// has every member save a snapshot, and then cancels it. No member restarts for that, and all run
// 3.6 meanwhile. A restart of 3.6 alone would not remove all entries of 3.5.
func rewriteWAL(d Desired, o Observed) (Step, bool) {
	lowest, highest := span(running(o))
	hop, under, replay := Hop(d, o), o.downgrade(), o.replay()
	switch {
	case hop.Minor < 7 || lowest.Minor != 6 || highest.Minor != 6 || len(replay) == 0:
		return Step{}, false
	case len(o.voters()) == 2: // neither can be changed
		return Step{}, false
	case slices.ContainsFunc(replay, func(i Instance) bool { return i.Volume.Replays != ReplaysRisen }): // what all run comes to an end first
		return Step{}, false
	case under == (Version{}):
		return o.backedUp(d, Step{
			Action: Downgrade, Version: Version{3, 5, 0}, Reason: Changing,
			Message: fmt.Sprintf("having every member save a snapshot, as etcd does before a downgrade: %s cannot read the entries of 3.5 in the WAL", hop),
		}), true
	}
	waiting := names(o.voters(), func(i Instance) bool { return i.Endpoint.Storage.Minor != 5 })
	return Step{
		Action: Wait, Reason: Changing,
		Message: "waiting for members to save a snapshot, before they run " + hop.String() + ": " + list(waiting),
	}, true
}
