package membership

import (
	"fmt"
	"slices"
)

// The rules of downgrades, and of membership changes during updates.

// prepareDowngrade has etcd make its data readable for the earlier minor before the first member
// runs that. While some members still run the earlier minor no preparation is needed: the storage
// version has not risen yet.
func prepareDowngrade(d Desired, o Observed) (Step, bool) {
	lowest, _ := span(running(o))
	hop, under := Hop(d, o), o.downgrade()
	switch {
	case under != (Version{}) && hop.Minor > under.Minor:
		return Step{Action: CancelDowngrade, Reason: Downgrading, Message: fmt.Sprintf("taking back the downgrade to %d.%d", under.Major, under.Minor)}, true
	case lowest == (Version{}) || hop.Minor >= lowest.Minor:
		return Step{}, false
	case len(o.voters()) == 2: // it could not be carried out, and no member could be added
		return Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade: none of 2 members can be restarted without losing the quorum"}, under != (Version{})
	}
	if waiting := o.unraised(); under == (Version{}) && len(waiting) > 0 {
		return Step{Action: Wait, Reason: Downgrading, Message: fmt.Sprintf("waiting for the storage version to reach %d.%d before the downgrade: %s", lowest.Major, lowest.Minor, list(waiting))}, true
	}
	if under == (Version{}) {
		return o.backedUp(d, Step{
			Action: Downgrade, Version: hop, Reason: Downgrading,
			Message: fmt.Sprintf("having etcd make its data readable for %d.%d", hop.Major, hop.Minor),
		}), true
	}
	unready := names(o.voters(), func(i Instance) bool { return i.Endpoint.Storage.Minor != hop.Minor })
	return Step{
		Action: Wait, Reason: Downgrading,
		Message: fmt.Sprintf("waiting for etcd to make the data of %s readable for %d.%d", list(unready), hop.Major, hop.Minor),
	}, len(unready) > 0
}

// downgrade is the version of the downgrade that is under way, as any member reports it; zero:
// none.
func (o Observed) downgrade() Version {
	for _, i := range o.voters() {
		if i.Endpoint.Downgrade != (Version{}) {
			return i.Endpoint.Downgrade
		}
	}
	return Version{}
}

// finishUpdateFirst: a member that is being updated to another version answers before members are
// added or removed, and before a downgrade is canceled. If the last member of the earlier minor
// were removed, the cluster version would rise, and a member that is being updated to that minor
// could not start.
func finishUpdateFirst(_ Desired, o Observed) (Step, bool) {
	var waiting []Instance
	for _, i := range o.voters() {
		// A terminating volume is not written any more, and other volumes only when the member has
		// run well for long enough.
		arrived := (i.Volume.Terminating || i.Proving()) && i.Endpoint.Version == i.Volume.Next && !i.Pod.Changing
		if i.Volume.Next != (Version{}) && !arrived && !o.lost(i) && !i.Volume.InDoubt() && !i.Pod.Overdue {
			waiting = append(waiting, i)
		}
	}
	return Step{
		Action: Wait, Reason: Changing,
		Message: "waiting for updated members before the membership changes: " + problems(waiting),
	}, len(waiting) > 0
}

// cancelDowngrade: etcd adds no member during a downgrade, and a lost member must be replaced
// first. Members that already run the earlier minor keep it: the cluster is mixed then, as during
// an upgrade.
func cancelDowngrade(_ Desired, o Observed) (Step, bool) {
	return Step{
		Action: CancelDowngrade, Reason: Downgrading,
		Message: "taking back the downgrade until the members are complete again",
	}, o.downgrade() != (Version{})
}

// incomplete reports whether members are to be added or removed.
func incomplete(d Desired, o Observed) bool {
	return len(o.voters()) != d.Size || len(o.learners()) > 0 || wanting(d, o) > 0 ||
		slices.ContainsFunc(o.voters(), o.lost)
}
