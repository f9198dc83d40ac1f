package membership

import (
	"fmt"
	"slices"
)

// The rules of going back to an earlier minor, and of members that come or go on the way.

// prepareDowngrade: etcd itself makes the data readable for the earlier minor, before the first
// member runs that. While some still run it there is nothing to prepare: etcd has not begun to use
// what is new.
func prepareDowngrade(d Desired, o Observed) (Step, bool) {
	lowest, _ := span(running(o))
	hop, under := Hop(d, o), o.downgrade()
	switch {
	case under != (Version{}) && hop.Minor > under.Minor:
		return Step{Action: CancelDowngrade, Reason: Downgrading, Message: fmt.Sprintf("taking back the downgrade to %d.%d", under.Major, under.Minor)}, true
	case lowest == (Version{}) || hop.Minor >= lowest.Minor:
		return Step{}, false
	case len(o.voters()) == 2: // it could not be carried out, and no member could be added
		return Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade: of two members none can be spared"}, under != (Version{})
	}
	if waiting := o.unraised(); under == (Version{}) && len(waiting) > 0 {
		return Step{Action: Wait, Reason: Downgrading, Message: "waiting for etcd to use what is new in " + lowest.String() + ", before it can be taken back: " + list(waiting)}, true
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

// downgrade that is under way, as any member tells; zero of none.
func (o Observed) downgrade() Version {
	for _, i := range o.voters() {
		if i.Endpoint.Downgrade != (Version{}) {
			return i.Endpoint.Downgrade
		}
	}
	return Version{}
}

// finishUpdateFirst: a member on its way to another version arrives before members come or go, and
// before a downgrade is taken back. When the last member of the earlier minor goes, the cluster's
// version rises, and a member that is just being changed to that minor could not start.
func finishUpdateFirst(_ Desired, o Observed) (Step, bool) {
	var waiting []Instance
	for _, i := range o.voters() {
		// On a volume that is terminating that is not written any more, and elsewhere not before it
		// has proved itself.
		arrived := (i.Volume.Terminating || i.Proving()) && i.Endpoint.Version == i.Volume.Next && !i.Pod.Changing
		if i.Volume.Next != (Version{}) && !arrived && !o.lost(i) && !i.Volume.InDoubt() && !i.Pod.Overdue {
			waiting = append(waiting, i)
		}
	}
	return Step{
		Action: Wait, Reason: Changing,
		Message: "waiting for the members that are being changed, before others come or go: " + problems(waiting),
	}, len(waiting) > 0
}

// cancelDowngrade: a new member cannot come while etcd is being downgraded, and a lost member must
// be replaced first. Those that run the earlier minor already go on with it: it is a mixed cluster
// then, as in the middle of an upgrade.
func cancelDowngrade(_ Desired, o Observed) (Step, bool) {
	return Step{
		Action: CancelDowngrade, Reason: Downgrading,
		Message: "taking back the downgrade until the members are complete again",
	}, o.downgrade() != (Version{})
}

// incomplete reports whether members are to come or to go.
func incomplete(d Desired, o Observed) bool {
	return len(o.voters()) != d.Size || len(o.learners()) > 0 || wanting(d, o) > 0 ||
		slices.ContainsFunc(o.voters(), o.lost)
}
