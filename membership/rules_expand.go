package membership

import "strings"

// The rules of volumes that grow.

// expandVolumes: volumes grow under running members, if their storage class allows that.
func expandVolumes(d Desired, o Observed) (Step, bool) {
	small := names(o.voters(), func(i Instance) bool { return i.Volume.Small && i.Volume.Unfit == "" && i.Volume.Stays() })
	return Step{Action: Expand, Members: small, Reason: Changing, Message: "growing the volumes of " + list(small)}, len(small) > 0 && !d.Ephemeral
}

// expandVolumesMeanwhile: an update that failed, or cannot be carried out, keeps no volume from
// growing. The disk may be nearly full.
func expandVolumesMeanwhile(d Desired, o Observed) (Step, bool) {
	grow, small := expandVolumes(d, o)
	if !small || o.GrowthRefused { // what the update says must not stay hidden behind a refusal
		return Step{}, false
	}
	for _, stalls := range []func(Desired, Observed) (Step, bool){updateFailed, quotaTooSmall, versionNotAllowed, updateMember} {
		if step, ok := stalls(d, o); ok {
			return grow, step.Action == Stall
		}
	}
	return Step{}, false
}

// waitForExpansion: the kubelet expands the file system last. If a driver hangs, or expands the
// file system only when the volume is mounted again, an administrator has to act. That is a stall,
// so that the cluster does not keep its turn.
func waitForExpansion(_ Desired, o Observed) (Step, bool) {
	waiting := names(o.voters(), func(i Instance) bool { return i.Volume.Growing })
	step := Step{Action: Wait, Reason: Changing, Message: "waiting for the volumes of " + list(waiting) + " to grow"}
	var stuck []string
	for _, i := range o.voters() {
		if i.Volume.Growing && i.Volume.Stuck != "" {
			stuck = append(stuck, "that of "+i.Name+" "+i.Volume.Stuck)
		}
	}
	if len(stuck) > 0 {
		step.Action = Stall
		step.Message += ": " + strings.Join(stuck, "; ") + ". To give it up, revert spec.storage.size and set spec.storage.changePolicy to Replace in the same apply: members whose volumes have not grown stay on them, and those whose volumes have grown are replaced one by one"
	}
	return step, len(waiting) > 0
}
