package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rules of versions: which one comes next on the way to spec.version, and which is refused.

// Hop is the version that the members run next on the path to spec.version: that version or one in
// between. If there is no path, it is the version that they run. A member of 3.7 goes back to 3.6
// if another member still has entries of 3.5 in its WAL.
func Hop(d Desired, o Observed) Version {
	path, err := Path(running(o), d.Version)
	switch lowest, highest := span(running(o)); {
	case err != nil: // what runs goes on; a member that does not answer comes back to what the others run
		if answering, _ := span(answering(o)); answering != (Version{}) {
			return answering
		}
		return lowest
	case d.Version.Minor == 7 && highest.Minor == 7 && lowest.Minor == 6 && len(o.replay()) > 0: // a log can be rewritten only where all run 3.6
		return lowest
	case len(path) > 0:
		return path[0]
	default:
		return d.Version
	}
}

// SubstitutePatch is the version to start a member with if it does not come up with its image: Hop,
// if that is another patch of the minor that last ran on its data, and so can read it. Zero: there
// is none, or the update of the spec has failed.
func SubstitutePatch(d Desired, o Observed, i Instance) Version {
	hop, ran := Hop(d, o), cmp.Or(i.Volume.Next, i.Volume.Version)
	if !o.needsOtherImage(d, i) || d.GivenUp != "" || !i.Volume.Recorded() || i.changing() || hop == ran || hop.Major != ran.Major || hop.Minor != ran.Minor {
		return Version{}
	}
	return hop
}

// needsOtherImage reports whether a member does not come up, and another image may help.
func (o Observed) needsOtherImage(d Desired, i Instance) bool {
	return i.Pod.ImageUnavailable || o.allCrash(d, i)
}

// allCrash reports whether the etcd of every voter that has its data ends again and again by
// itself, for long: none is lost that might come up, and the patch that the spec asks for may have
// the fix. What else the spec asks of that member comes first. A voter that has been given the
// patch counts. While others serve, or only wait for a quorum, the data of that member may be
// damaged: another patch would fail on it as well, and be given up for all.
func (o Observed) allCrash(d Desired, i Instance) bool {
	_, noWay := Path(running(o), d.Version)
	other := func(part string) bool { return part != "version" && part != "image" }
	if !i.Pod.Crashes || noWay != nil || slices.ContainsFunc(i.Pod.Parts, other) {
		return false
	}
	hop := Hop(d, o)
	lost, _ := o.lostMembers()
	return !slices.ContainsFunc(o.knownVoters(), func(v Instance) bool {
		given := (v.changing() || v.Volume.Version != hop) && cmp.Or(v.Volume.Next, v.Pod.Version) == hop
		crashes := v.Pod.Crashes && v.Pod.Overdue && v.Endpoint.Member() == 0
		return !given && !crashes && !slices.Contains(lost, v.Name)
	})
}

// running are the versions that voters say they run, and of a voter that does not answer the
// version that ran last on its volume: Quorate goes on to the next version when all members have
// served with this one. Where the voters cannot be listed, the volumes of all that are known count.
func running(o Observed) []Version {
	versions := answering(o)
	for _, i := range o.voters() {
		if !i.Endpoint.Answered() && o.holds(i) && i.Volume.Version != (Version{}) {
			versions = append(versions, i.Volume.Version)
		}
	}
	if o.Reach == ReachQuorum {
		return versions
	}
	for _, i := range o.known() {
		if i.Volume.Recorded() && i.Volume.Version != (Version{}) {
			versions = append(versions, i.Volume.Version)
		}
	}
	return versions
}

// answering are the versions of the voters that answer.
func answering(o Observed) []Version {
	var versions []Version
	for _, i := range o.voters() {
		if i.Endpoint.Answered() {
			versions = append(versions, i.Endpoint.Version)
		}
	}
	return versions
}

// versionMismatch: a member runs another version of etcd than the tag of its image. Other members
// with this tag would run the same wrong version. A member that is to get another image is not
// counted: that image may be right.
func versionMismatch(_ Desired, o Observed) (Step, bool) {
	var wrong []string
	for _, i := range o.voters() {
		if v := i.Pod.Version; v != (Version{}) && v != i.Endpoint.Version && i.Pod.Change == ChangeNone && !i.changing() && !i.Pod.Terminating {
			wrong = append(wrong, fmt.Sprintf("the image tag of %s is for etcd %s, and etcd in it says that it is %s", i.Name, v, i.Endpoint.Version))
		}
	}
	return Step{
		Action: Stall, Reason: VersionMismatch,
		Message: strings.Join(wrong, "; ") + ": set spec.version to what etcd says, or push the right image under this tag, or pin the right one with spec.image.digests",
	}, len(wrong) > 0
}

func versionNotAllowed(d Desired, o Observed) (Step, bool) {
	_, err := Path(running(o), d.Version)
	step := Step{Action: Stall, Reason: VersionNotAllowed}
	if err != nil {
		step.Message = "what runs goes on: " + err.Error()
	}
	return step, err != nil
}
