package membership

import (
	"cmp"
	"slices"
)

// repairInPlace changes a Pod that does not serve, and has the data of its member in memory, to the
// corrected spec in place. recreateStuckPod would lose that data. The image comes first where the
// kubelet cannot pull it, and else cpu and memory. If the Pod does not come up with that image
// either, rollback gives it the earlier one back. A repair that the API server refuses is left out
// while it is paused (Pod.RepairRefused).
func repairInPlace(d Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		down := i.Pod.Problem != "" || i.Pod.Idle
		if !d.Ephemeral || d.GivenUp != "" || !down || !i.Volume.Recorded() || i.changing() || i.Pod.Ended || i.Pod.Terminating || i.Pod.Foreign || i.Endpoint.Member() != 0 || i.Pod.RepairRefused != "" {
			continue
		}
		image := slices.Contains(i.Pod.InPlace, ChangeImage) && o.needsOtherImage(d, i)
		resources := slices.Contains(i.Pod.InPlace, ChangeResources)
		step := Step{Action: Repair, Members: []string{i.Name}, Reason: Changing}
		what := "cpu and memory of " + i.Name
		switch {
		case image && (i.Pod.ImageUnavailable || !resources):
			step.Change, step.Version, what = ChangeImage, cmp.Or(SubstitutePatch(d, o, i), i.Volume.Version), "the image of "+i.Name
			if step.Version != i.Volume.Version {
				what += " to etcd " + step.Version.String()
			}
		case resources:
			step.Change, step.Version = ChangeResources, i.Volume.Version
		default:
			continue
		}
		step.Message = "changing " + what + " in place: its data is in memory, and recreating its Pod would lose it"
		return step, true
	}
	return Step{}, false
}
