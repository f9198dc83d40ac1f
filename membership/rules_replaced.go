package membership

import "slices"

// The rules of volumes that are another object than their record was written on: a tool for backups
// has restored them, or a person has copied them, annotations and all. What is on them may be of an
// earlier day. A voter that comes back with less than it has acknowledged takes acknowledged writes
// with it, so none is started there before a person has accepted it. Nor is its data lost: nothing
// of it is deleted or overwritten, and its member is not replaced before a person has given it up.
// Members that have such a volume and run are left alone; they cannot start again.

// InDoubt reports whether only an administrator can decide whether the data of the volume may be
// used.
func (v Volume) InDoubt() bool { return v.Replaced && v.Stays() && !v.Retired }

// stopOnReplacedVolume: the Pod of a member was made for its own volume, and has yet to start on
// the one that has come instead.
func stopOnReplacedVolume(_ Desired, o Observed) (Step, bool) {
	early := names(o.Instances, func(i Instance) bool {
		return i.Volume.InDoubt() && i.Pod.Exists() && i.Pod.NeverRan && !i.Pod.Terminating && i.Endpoint.Member() == 0
	})
	return Step{
		Action: Stop, Members: early, Reason: VolumeReplaced,
		Message: "stopping the Pods " + list(early) + ", which would start on volumes that are not the recorded ones",
	}, len(early) > 0
}

// quorumOnReplacedVolumes: without what only a person can accept there is no quorum, and with it
// there is one. Members that have their data are waited for first where the membership is a guess:
// they will tell.
func quorumOnReplacedVolumes(d Desired, o Observed) (Step, bool) {
	members := o.knownVoters()
	if o.guesses(members) {
		return Step{}, false
	}
	held := len(names(members, o.holds))
	doubted := slices.DeleteFunc(members, func(i Instance) bool { return !i.Volume.InDoubt() })
	quorum := Quorum(len(members))
	return d.replaced(doubted, true), held < quorum && held+len(doubted) >= quorum
}

// volumeReplaced is decided only when the other members need nothing.
func volumeReplaced(d Desired, o Observed) (Step, bool) {
	doubted := slices.DeleteFunc(slices.Clone(o.Instances), func(i Instance) bool { return !i.Volume.InDoubt() })
	members := slices.DeleteFunc(slices.Clone(doubted), func(i Instance) bool { return o.Member(i.ID) == nil })
	if len(members) > 0 {
		return d.replaced(members, false), true
	}
	claims := list(names(doubted, func(Instance) bool { return true }))
	return Step{
		Action: Stall, Reason: VolumeReplaced,
		Message: "PersistentVolumeClaim " + claims + " was restored or copied, and belongs to no member. Copy what you need from it, and delete it: " + d.kubectl("delete pvc", doubted, ""),
	}, len(doubted) > 0
}

// replaced is the step whose message names the two ways to go on.
func (d Desired) replaced(members []Instance, quorum bool) Step {
	claims := list(names(members, func(Instance) bool { return true }))
	step := Step{Action: Stall, Reason: VolumeReplaced}
	step.Message = "PersistentVolumeClaim " + claims + " was restored or copied: its annotation etcd.quorate.dev/volume-uid names another claim, and its data may be old. No member is started on it"
	start := "To start on the data as it is: " + d.kubectl("annotate pvc", members, " etcd.quorate.dev/volume-uid-") + " (acknowledged writes are lost if it is older than the last run of the member)"
	if quorum {
		step.Message += ", and without it there is no quorum. Do not delete it: its data may be the last copy. " + start + ". If that data must not be used: docs/restore.md#which-way-back"
		return step
	}
	step.Message += ". To replace the member by a new one, which gets the data from the others: " + d.kubectl("delete pvc --wait=false", members, "") + ". " + start
	return step
}
