package membership

import "testing"

// TestPlanRollback is for changes that do not work, and for those that are not begun.
func TestPlanRollback(t *testing.T) {
	abandoned := Step{
		Action: Stall, Reason: ChangeFailed,
		Message: "m-1: with etcd 3.7.3 it cannot pull the image. It was rolled back, and all members run what they ran before. Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false",
	}
	testPlan(t, map[string]planCase{
		// rollback
		"Image": {
			reason: "It gets back what its volume ran last, and the others are not touched",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 it cannot pull the image etcd:v3.6.16",
			},
		},
		"Next": {
			reason: "Its Pod was recreated, and what it does not come up with is on its volume",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, stuck), on(1, failing), on(1, next(etcd37))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 it cannot pull the image etcd:v3.6.16",
			},
		},
		"BeforeUnstuck": {
			reason: "A Pod that is recreated with the same spec would not come up either",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37)), on(1, outdated)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 it cannot pull the image etcd:v3.6.16",
			},
		},
		"Single": {
			reason: "There is no quorum without it, and that must not keep it down",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only, on(0, broken(etcd37)), nobodyAnswers},
			want: Step{
				Action: PutBack, Members: []string{"m-0"}, Version: etcd36, Alone: true, Reason: ChangeFailed,
				Message: "rolling m-0 back: with etcd 3.7.3 it cannot pull the image etcd:v3.6.16",
			},
		},
		"FirstTry": {
			reason: "What has not been tried twice may come up yet",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37)), on(1, func(i *Instance) { i.Pod.Failing = false })},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 cannot pull the image etcd:v3.6.16"},
		},
		"FirstTryOutdated": {
			reason: "Nor is it recreated before",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37)), on(1, outdated), on(1, func(i *Instance) { i.Pod.Failing = false })},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 cannot pull the image etcd:v3.6.16"},
		},
		"Unchanged": {
			reason: "What fails and was not changed has nothing to go back to",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, stuck), on(1, failing)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 cannot pull the image etcd:v3.6.16"},
		},
		"Answers": {
			reason: "It was started again after it had failed, and answers",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changingStill), on(1, failing)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to answer from what it was changed to"},
		},
		"Going": {
			reason: "It comes back by itself when it is gone",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37)), on(1, stopping)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 cannot pull the image etcd:v3.6.16"},
		},
		"VolumeGoing": {
			reason: "Its data goes with its Pod, and another one takes its place",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37)), on(1, going)},
			want:   Step{Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: MemberLost, Message: "removing m-1, whose data is gone; a new member takes its place"},
		},
		"Ended": {
			reason: "It was evicted in the middle of it: nothing starts it again, with whatever image",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, broken(etcd37)), on(1, func(i *Instance) { i.Pod.Ended, i.Pod.Failing = true, false })},
			want: Step{
				Action: Stop, Members: []string{"m-1"}, Reason: Replacing,
				Message: "replacing the Pods m-1, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},

		// updateFailed
		"GivenUp": {
			reason: "It was rolled back and is back, and the spec still asks for it",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange},
			want:   abandoned,
		},
		"GivenUpAfterOthers": {
			reason: "What was updated before it stays so, and is named",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, on(0, changedTo(etcd37))},
			want: Step{
				Action: Stall, Reason: ChangeFailed,
				Message: "m-1: with etcd 3.7.3 it cannot pull the image. It was rolled back. Only m-0 has what the spec asks for, and the others run what they ran before. Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false",
			},
		},
		"GivenUpAndLarger": {
			reason: "It keeps no volume from growing: the disk may be nearly full",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, onAll(func(i *Instance) { i.Volume.Small = true })},
			want:   Step{Action: Expand, Members: []string{"m-0", "m-1", "m-2"}, Reason: Changing, Message: "growing the volumes of m-0, m-1, m-2"},
		},
		"GivenUpAndRefused": {
			reason: "The API server refuses larger volumes, which must not hide what else is wrong",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, onAll(func(i *Instance) { i.Volume.Small = true }), func(_ *Desired, o *Observed) { o.GrowthRefused = true }},
			want:   abandoned,
		},
		"GivenUpAndDown": {
			reason: "First the one that was rolled back must be back",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, on(1, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"GivenUpAndGrown": {
			reason: "It stands in no other's way",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, size(4)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},
		"GivenUpAndThere": {
			reason: "A user has mended it by hand, and all run it",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, onAll(changedTo(etcd37))},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// versionMismatch
		"Mislabelled": {
			reason: "The first that was changed shows what the image holds, and the others stay",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd36)), on(1, func(i *Instance) { i.Pod.Version = etcd37 })},
			want: Step{
				Action: Stall, Reason: VersionMismatch,
				Message: "the image tag of m-1 is for etcd 3.7.3, and etcd in it says that it is 3.6.16: set spec.version to what etcd says, or push the right image under this tag, or pin the right one with spec.image.digests",
			},
		},
		"MislabelledSetRight": {
			reason: "The spec says what the image holds: the others need no change, and this one gets the image that is called so",
			base:   upgrading(etcd36, etcd36),
			args: []change{
				onAll(same), on(1, func(i *Instance) { i.Pod.Version = etcd37 }), on(1, differs(ChangeImage, "version")),
			},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place",
			},
		},
		"MislabelledPinned": {
			reason: "Another image of the same name is what helps",
			base:   upgrading(etcd36, etcd37),
			args: []change{
				onAll(differs(ChangeImage, "image", "version")), on(1, func(i *Instance) { i.Pod.Version = etcd37 }), on(1, differs(ChangeImage, "image")),
			},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.7.3 (spec.image), then m-2, m-0",
			},
		},
		"Unlabelled": {
			reason: "A name that says no version says nothing wrong",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), onAll(func(i *Instance) { i.Pod.Version = Version{} })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// versionNotAllowed
		"NoPath": {
			reason: "There is no way, and what there is instead is said",
			base:   upgrading(etcd35, Version{3, 6, 4}),
			want: Step{
				Action: Stall, Reason: VersionNotAllowed,
				Message: "what runs goes on: etcd 3.6.4 cannot be reached from 3.5: set spec.version to 3.6.11 or later, best 3.6.16",
			},
		},
		"NoPathBackOut": {
			reason: "The spec is set back, and nothing was touched",
			base:   upgrading(etcd35, etcd35),
			args:   []change{onAll(same)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"NoPathAndGrown": {
			reason: "It stands in no other's way",
			base:   upgrading(etcd35, Version{3, 4, 45}),
			args:   []change{size(4)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd35, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},
	})
}
