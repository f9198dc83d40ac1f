package membership

import (
	"slices"
	"strings"
)

// The rules of volumes that are another object than their record was written on: a tool for backups has restored them, or a person
// has copied them, annotations and all. What is on them may be of an earlier day. A voter that comes back with less than it has
// acknowledged takes acknowledged writes with it, so none is started there before a person has accepted it. Nor is its data lost: nothing
// of it is deleted or overwritten, and its member is not replaced before a person has given it up. Members that have such a volume
// and run are left alone; they cannot start again.

// InDoubt reports whether only a person can tell what the volume is good for.
func (v Volume) InDoubt() bool { return v.Replaced && v.Stays() && !v.Retired }

// withheld: the Pod of a member was made for its own volume, and has yet to start on the one that has come instead.
func withheld(_ Desired, o Observed) (Step, bool) {
	early := names(o.Instances, func(i Instance) bool {
		return i.Volume.InDoubt() && i.Pod.Exists() && i.Pod.NeverRan && !i.Pod.Terminating && i.Endpoint.Member() == 0
	})
	return Step{
		Action: Stop, Members: early, Reason: VolumeReplaced,
		Message: "stopping the Pods " + list(early) + ", which would start on volumes that are not the recorded ones",
	}, len(early) > 0
}

// replacedMajority: without what only a person can accept there is no quorum, and with it there is one. Members that have their
// data are waited for first where the membership is a guess: they will tell.
func replacedMajority(d Desired, o Observed) (Step, bool) {
	members := o.knownVoters()
	if o.Reach == ReachQuorum || o.guesses(members) {
		return Step{}, false
	}
	held := len(names(members, o.holds))
	doubted := slices.DeleteFunc(members, func(i Instance) bool { return !i.Volume.InDoubt() })
	quorum := Quorum(len(members))
	return d.replaced(doubted, true), held < quorum && held+len(doubted) >= quorum
}

// volumeReplaced comes when nothing else is to be done for the others.
func volumeReplaced(d Desired, o Observed) (Step, bool) {
	doubted := slices.DeleteFunc(slices.Clone(o.Instances), func(i Instance) bool { return !i.Volume.InDoubt() })
	members := slices.DeleteFunc(slices.Clone(doubted), func(i Instance) bool { return o.Member(i.ID) == nil })
	if len(members) > 0 {
		return d.replaced(members, false), true
	}
	claims := list(names(doubted, func(Instance) bool { return true }))
	return Step{
		Action: Stall, Reason: VolumeReplaced,
		Message: "the record on PersistentVolumeClaim " + claims + " names another object, and a member that is none any more. Copy from it what is of use, and delete it: " + d.kubectl("delete pvc", doubted, ""),
	}, len(doubted) > 0
}

// replaced is the step that tells a person the two ways.
func (d Desired) replaced(members []Instance, quorum bool) Step {
	claims := list(names(members, func(Instance) bool { return true }))
	step := Step{Action: Stall, Reason: VolumeReplaced}
	step.Message = "the record on PersistentVolumeClaim " + claims + " names another object: restored or copied, perhaps with data of an earlier day. No member is started there"
	if quorum {
		step.Message += ", and there is no quorum without"
	}
	step.Message += ". To give up " + claims + ", for a new member to come instead: " + d.kubectl("delete pvc", members, "")
	if quorum {
		step.Message += " (without a quorum the data is lost then)"
	}
	step.Message += ". To accept what was restored: " + d.kubectl("annotate pvc", members, " etcd.quorate.dev/volume-uid-")
	return step
}

// kubectl is a command for the claims of members.
func (d Desired) kubectl(verb string, members []Instance, rest string) string {
	all := names(members, func(Instance) bool { return true })
	command := "kubectl " + verb + " " + strings.Join(all, " ")
	if d.Namespace != "" {
		command += " -n " + d.Namespace
	}
	return command + rest
}
