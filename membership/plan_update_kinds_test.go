package membership

import "testing"

// TestPlanChangeKinds is for the different things that members can be changed in, and for clusters
// in which that is special.
func TestPlanChangeKinds(t *testing.T) {
	testPlan(t, map[string]planCase{
		// what it takes
		"Options": {
			reason: "Flags are arguments, and these never change",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(differs(ChangePod, "options"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangePod, Reason: Changing,
				Message: "recreating the Pod of m-1 (spec.options), then m-2, m-0",
			},
		},
		"VersionAndOptions": {
			reason: "The larger of two changes brings the smaller with it",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(differs(ChangePod, "options", "resources", "version"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd37, Change: ChangePod, Reason: Changing,
				Message: "recreating the Pod of m-1 from 3.6.16 to 3.7.3 (spec.options, spec.resources), then m-2, m-0",
			},
		},
		"Repository": {
			reason: "The same version from elsewhere",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(differs(ChangeImage, "image"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place (spec.image), then m-2, m-0",
			},
		},
		"Resources": {
			reason: "The members run on",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(differs(ChangeResources, "resources"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeResources, Reason: Changing,
				Message: "changing cpu and memory of m-1 while it runs (spec.resources), then m-2, m-0",
			},
		},
		"Single": {
			reason: "No other can take over, and a user that changes the version of one member knows it",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only},
			want: Step{
				Action: Update, Members: []string{"m-0"}, Version: etcd37, Change: ChangeImage, Alone: true, Reason: Changing,
				Message: "changing m-0 in place from 3.6.16 to 3.7.3; it is the only member: etcd does not serve until it is back",
			},
		},
		"SingleOptions": {
			reason: "No member serves until it is back, which is to be soon",
			base:   upgrading(etcd36, etcd36),
			args:   []change{only, onAll(differs(ChangePod, "options"))},
			want: Step{
				Action: Update, Members: []string{"m-0"}, Version: etcd36, Change: ChangePod, Alone: true, Reason: Changing,
				Message: "recreating the Pod of m-0 (spec.options); it is the only member: etcd does not serve until it is back",
			},
		},
		"Two": {
			reason: "Without either of two there is no quorum",
			base:   upgrading(etcd36, etcd37),
			args:   []change{two},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "cannot restart m-1 (spec.version) without losing the quorum of 2 members: set spec.replicas to 3 for the update, or to 1",
			},
		},
		"TwoResources": {
			reason: "Which restarts nothing",
			base:   upgrading(etcd36, etcd36),
			args:   []change{two, onAll(differs(ChangeResources, "resources"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeResources, Reason: Changing,
				Message: "changing cpu and memory of m-1 while it runs (spec.resources), then m-0",
			},
		},
		"MemoryPod": {
			reason: "The Pod is the volume",
			base:   upgrading(etcd36, etcd36),
			args:   []change{ephemeral, onAll(differs(ChangePod, "options", "scheduling"))},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "with spec.storage.medium Memory a member's data goes with its Pod, and spec.options, spec.scheduling can only be changed by recreating the Pod: revert it, or delete one Pod after the other, each when the one before has been replaced",
			},
		},
		"MemoryImage": {
			reason: "The tmpfs stays when a container is started again",
			base:   upgrading(etcd36, etcd37),
			args:   []change{ephemeral},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.7.3, then m-2, m-0",
			},
		},
		"Suspended": {
			reason: "What would come is told",
			base:   upgrading(etcd36, etcd37),
			args:   []change{suspended},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: changing m-1 in place from 3.6.16 to 3.7.3, then m-2, m-0",
			},
		},

		// with other changes at once
		"SizeFirst": {
			reason: "More members first, that run what the others run: they can be spared more easily then",
			base:   upgrading(etcd36, etcd37),
			args:   []change{size(5), onAll(differs(ChangePod, "resources", "version"))},
			want: Step{
				Action: Provision, Members: []string{"m-3", "m-4"}, Version: etcd36, Reason: ScalingUp,
				Message: "preparing the volumes of m-3, m-4",
			},
		},
		"ShrinkFirst": {
			reason: "A member that goes is not changed before",
			base:   upgrading(etcd36, etcd37),
			args:   []change{size(1), leader(1)},
			want: Step{
				Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: ScalingDown,
				Message: "removing m-2: spec.replicas is 1",
			},
		},
		"NewcomerInBetween": {
			reason: "In the middle of a change a new member runs the lower version: it can follow, and the others can go back",
			base:   upgrading(etcd36, etcd37),
			args:   []change{size(4), on(1, changedTo(etcd37))},
			want: Step{
				Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp,
				Message: "preparing the volumes of m-3",
			},
		},
	})
}
