package membership

import "testing"

// TestPlanRepairInPlace is for Pods that cannot start, and with which the data of their members
// would go.
func TestPlanRepairInPlace(t *testing.T) {
	down := func(parts ...string) func(*Instance) {
		return func(i *Instance) {
			silent(i)
			i.Pod.Outdated, i.Pod.Problem = true, "exited with code 137 (OOMKilled)"
			i.Pod.Parts = parts
		}
	}
	inPlace := func(changes ...Change) func(*Instance) {
		return func(i *Instance) {
			if i.Pod.Change, i.Pod.InPlace = ChangePod, changes; len(changes) > 0 {
				i.Pod.Change = changes[len(changes)-1]
			}
		}
	}
	unpulled := func(i *Instance) { i.Pod.ImageUnavailable, i.Pod.Problem = true, "cannot pull the image etcd:v3.6.16" }
	crashes := func(i *Instance) {
		i.Pod.Failing, i.Pod.Crashes, i.Pod.Overdue, i.Pod.Problem = true, true, true, "exited with code 2"
	}
	waits := Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 exited with code 137 (OOMKilled)"}
	unpulledWaits := Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 cannot pull the image etcd:v3.6.16"}
	testPlan(t, map[string]planCase{
		"Resources": {
			reason: "Its memory was used up, and the spec gives it more",
			base:   formed3,
			args:   []change{only, ephemeral, on(0, down("resources")), on(0, inPlace(ChangeResources)), nobodyAnswers},
			want: Step{
				Action: Repair, Change: ChangeResources, Members: []string{"m-0"}, Version: etcd36, Reason: Changing,
				Message: "changing cpu and memory of m-0 in place: its data is in memory, and recreating its Pod would lose it",
			},
		},
		"ResourcesFirst": {
			reason: "Another version is asked for as well, which comes when it serves",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only, ephemeral, on(0, down("version", "resources")), on(0, failing), on(0, inPlace(ChangeResources, ChangeImage)), nobodyAnswers},
			want: Step{
				Action: Repair, Change: ChangeResources, Members: []string{"m-0"}, Version: etcd36, Reason: Changing,
				Message: "changing cpu and memory of m-0 in place: its data is in memory, and recreating its Pod would lose it",
			},
		},
		"ResourcesOfOne": {
			reason: "The others serve meanwhile",
			base:   formed3,
			args:   []change{ephemeral, on(1, down("resources")), on(1, inPlace(ChangeResources))},
			want: Step{
				Action: Repair, Change: ChangeResources, Members: []string{"m-1"}, Version: etcd36, Reason: Changing,
				Message: "changing cpu and memory of m-1 in place: its data is in memory, and recreating its Pod would lose it",
			},
		},
		"ResourcesNotInPlace": {
			reason: "Kubernetes gives them to a new Pod alone",
			base:   formed3,
			args:   []change{only, ephemeral, on(0, down("resources")), on(0, inPlace()), nobodyAnswers},
			want:   waits,
		},
		"OnVolume": {
			reason: "Its data stays: the Pod is recreated",
			base:   formed3,
			args:   []change{only, on(0, down("resources")), on(0, inPlace(ChangeResources)), nobodyAnswers},
			want: Step{
				Action: Stop, Members: []string{"m-0"}, Reason: Replacing,
				Message: "replacing the Pods m-0, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"Repository": {
			reason: "The spec has another repository, from which the image may be pulled",
			base:   formed3,
			args:   []change{only, ephemeral, on(0, down("image")), on(0, unpulled), on(0, inPlace(ChangeImage)), nobodyAnswers},
			want: Step{
				Action: Repair, Change: ChangeImage, Members: []string{"m-0"}, Version: etcd36, Reason: Changing,
				Message: "changing the image of m-0 in place: its data is in memory, and recreating its Pod would lose it",
			},
		},
		"Patch": {
			reason: "The image cannot be pulled, and the spec asks for another patch of the minor",
			base:   upgrading(etcd36, Version{3, 6, 17}),
			args:   []change{only, ephemeral, on(0, down("version")), on(0, unpulled), on(0, inPlace(ChangeImage)), nobodyAnswers},
			want: Step{
				Action: Repair, Change: ChangeImage, Members: []string{"m-0"}, Version: Version{3, 6, 17}, Reason: Changing,
				Message: "changing the image of m-0 to etcd 3.6.17 in place: its data is in memory, and recreating its Pod would lose it",
			},
		},
		"PatchForCrash": {
			reason: "etcd ends again and again, and the spec asks for another patch of the minor",
			base:   upgrading(etcd36, Version{3, 6, 17}),
			args:   []change{only, ephemeral, on(0, down("version")), on(0, crashes), on(0, inPlace(ChangeImage)), nobodyAnswers},
			want: Step{
				Action: Repair, Change: ChangeImage, Members: []string{"m-0"}, Version: Version{3, 6, 17}, Reason: Changing,
				Message: "changing the image of m-0 to etcd 3.6.17 in place: its data is in memory, and recreating its Pod would lose it",
			},
		},
		"ComesUp": {
			reason: "It has ended once, and is started again: another image may be worse",
			base:   formed3,
			args:   []change{only, ephemeral, on(0, down("image")), on(0, inPlace(ChangeImage)), nobodyAnswers},
			want:   waits,
		},
		"RefusedBesideLost": {
			reason: "What else heals the cluster goes on",
			base:   formed5,
			args:   []change{ephemeral, on(2, gone), on(0, down("resources")), on(0, inPlace(ChangeResources)), on(0, func(i *Instance) { i.Pod.RepairRefused = "by policy" })},
			want:   Step{Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: MemberLost, Message: "removing m-2, whose data is gone; a new member takes its place"},
		},
		"Refused": {
			reason: "What else heals the cluster goes on",
			base:   formed3,
			args:   []change{ephemeral, on(0, down("resources")), on(0, inPlace(ChangeResources)), on(0, func(i *Instance) { i.Pod.RepairRefused = "by policy" })},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-0 exited with code 137 (OOMKilled), and the API server refuses to change its Pod to what the spec asks for (by policy): remove the cause, such as a quota or a policy, or revert the spec",
			},
		},
		"Minor": {
			reason: "The spec asks for another minor, which may come when it serves",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only, ephemeral, on(0, down("version")), on(0, unpulled), on(0, inPlace()), nobodyAnswers},
			want:   unpulledWaits,
		},
		"GivenUp": {
			reason: "The spec was tried in vain",
			base:   formed3,
			args:   []change{only, ephemeral, abandonedChange, on(0, down("image")), on(0, unpulled), on(0, inPlace(ChangeImage)), nobodyAnswers},
			want: Step{
				Action: Wait, Reason: Unreachable,
				Message: unpulledWaits.Message + ". Quorate tried the spec, and rolled it back (m-1: with etcd 3.7.3 it cannot pull the image). It tries the next change of the spec: set spec.version to another patch of the running minor, or spec.image.repository to a registry that has the image",
			},
		},
	})
}
