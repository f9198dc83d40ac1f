package membership

import (
	"fmt"
	"slices"
)

// The rule of spec.storage.medium Memory. A member's data is in its Pod, and would go with it.

// repairInPlace does in place what recreateStuckPod cannot do with data in memory: a Pod that
// cannot start, or whose etcd does not serve, gets the cpu and memory of the corrected spec, or its
// image. Nothing else of a Pod can be changed. What it had before did not serve, so that there is
// nothing to roll back to.
func repairInPlace(d Desired, o Observed) (Step, bool) {
	for _, i := range o.Instances {
		stuck := i.Pod.Outdated && (i.Pod.Problem != "" || i.Pod.Idle) && !i.Pod.Ended && !i.changing()
		if !d.Ephemeral || d.GivenUp != "" || !stuck || !i.Volume.Recorded() || i.Pod.Terminating || i.Pod.Foreign || i.Endpoint.Member() != 0 {
			continue
		}
		step := Step{Action: Repair, Members: []string{i.Name}, Version: i.Volume.Version, Reason: Changing}
		what := ""
		patch := SubstitutePatch(d, o, i)
		switch {
		case slices.Contains(i.Pod.Parts, "resources") && i.Pod.Change != ChangePod:
			step.Change, what = ChangeResources, "cpu and memory"
		case patch != Version{}:
			step.Change, step.Version, what = ChangeImage, patch, "the image"
		case slices.Contains(i.Pod.Parts, "image"):
			step.Change, what = ChangeImage, "the image"
		default:
			continue
		}
		step.Message = fmt.Sprintf("changing %s of %s in place, because its data is in memory and would go with its Pod: it %s", what, i.Name, problem(i))
		return step, true
	}
	return Step{}, false
}
