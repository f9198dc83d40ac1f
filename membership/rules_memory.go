package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// The rule of spec.storage.medium Memory. A member's data is in its Pod, and would go with it.

// repairInPlace does in place what recreateStuckPod cannot do with data in memory: a Pod that does
// not come up gets the cpu and memory of the corrected spec, or its image. Nothing else of a Pod
// can be changed. An image may be a bad one again: one member at a time tries it, and is rolled
// back.
func repairInPlace(d Desired, o Observed) (Step, bool) {
	trial := slices.ContainsFunc(o.Instances, Instance.changing)
	for _, i := range o.Instances {
		down := i.Pod.Problem != "" || i.Pod.Idle
		if !d.Ephemeral || d.GivenUp != "" || !down || !i.Volume.Recorded() || i.changing() || i.Pod.Ended || i.Pod.Terminating || i.Pod.Foreign || i.Endpoint.Member() != 0 || i.Pod.RepairRefused != "" {
			continue
		}
		image := slices.Contains(i.Pod.InPlace, ChangeImage) && o.needsOtherImage(i) && !trial
		resources := slices.Contains(i.Pod.InPlace, ChangeResources)
		step := Step{Action: Repair, Members: []string{i.Name}, Reason: Changing}
		what := "cpu and memory"
		switch {
		case image && (i.Pod.ImageUnavailable || !resources):
			step.Change, step.Version, what = ChangeImage, cmp.Or(SubstitutePatch(d, o, i), i.Volume.Version), "the image"
		case resources:
			step.Change, step.Version = ChangeResources, i.Volume.Version
		default:
			continue
		}
		step.Message = fmt.Sprintf("changing %s of %s in place, because its data is in memory and would go with its Pod: it %s", what, i.Name, problem(i))
		return step, true
	}
	return Step{}, false
}
