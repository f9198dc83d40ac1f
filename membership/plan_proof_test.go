package membership

import "testing"

// TestPlanProof is for members that answer, and have yet to prove that they run well.
func TestPlanProof(t *testing.T) {
	young := func(i *Instance) { i.Pod.Unproved = true }
	crashed := func(i *Instance) { i.Pod.Unproved, i.Pod.Crashed = true, true }
	answers := func(i *Instance) { same(i); untried("resources")(i); young(i) }
	mended := func(i *Instance) { outdated(i); differs(ChangePod, "resources")(i) }
	starved := func(i *Instance) {
		silent(i)
		i.Pod.Starved, i.Pod.Problem = true, "was killed for using more memory than its limit of 14Mi (OOMKilled): raise spec.resources.limits.memory"
	}
	mute := func(i *Instance) { silent(i); i.Pod.Unproved, i.Pod.Idle, i.Pod.IdleLong = true, true, true }
	reads := func(i *Instance) { silent(i); i.Pod.Version, i.Pod.Changing, i.Pod.Idle = etcd37, true, true }
	away := func(i *Instance) { i.Pod.Unproved, i.Pod.Away = true, true }
	armed := func(i *Instance) {
		away(i)
		i.Pod.Changing, i.Pod.Version, i.Volume.Next = true, etcd37, etcd37
	}
	others := onAll(differs(ChangePod, "resources"))
	testPlan(t, map[string]planCase{
		"Young": {
			reason: "An answer is not yet success: no other member is changed",
			base:   upgrading(etcd36, etcd36),
			args:   []change{others, on(1, answers)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to stay ready with the new spec.resources, which takes up to 30s"},
		},
		"YoungLast": {
			reason: "Nor is the rollout over when the last one answers",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to stay ready with the new spec.resources, which takes up to 30s"},
		},
		"Version": {
			reason: "What its volume says comes next has run on it, and stays there until it is proved",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, next(etcd37)), on(1, young)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to stay ready with etcd 3.7.3, which takes up to 30s"},
		},
		"VersionFirstAnswer": {
			reason: "Which version has run on the volume is written down at once: it may not go back",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, func(i *Instance) { i.Volume.Version = etcd36 }), on(1, next(etcd37)), on(1, young)},
			want:   Step{Action: Record, Members: []string{"m-1"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-1"},
		},
		"VersionProved": {
			reason: "Then it counts as changed, and the volume says nothing of what comes next",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, next(etcd37))},
			want:   Step{Action: Record, Members: []string{"m-1"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-1"},
		},
		"OtherVersionNext": {
			reason: "What comes next and does not run goes at once, proved or not: the data may be of a later version by then",
			base:   upgrading(etcd37, etcd37),
			args:   []change{onAll(same), on(1, next(etcd36)), on(1, young)},
			want:   Step{Action: Record, Members: []string{"m-1"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-1"},
		},
		"Unchanged": {
			reason: "A member that has just been started again holds up what is begun",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, young)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to stay ready, which takes up to 30s"},
		},
		"NothingToChange": {
			reason: "And nothing else: the cluster is healthy",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, crashed)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"PutBackYoung": {
			reason: "Nor what is said of a change that was given up",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, on(1, young)},
			want: Step{
				Action: Stall, Reason: ChangeFailed,
				Message: "m-1: with etcd 3.7.3 it cannot pull the image. It was rolled back, and all members run what they ran before. Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false",
			},
		},
		"Mended": {
			reason: "The spec asks for something else meanwhile: this one gets that at once, and first",
			base:   upgrading(etcd36, etcd36),
			args:   []change{others, on(2, answers), on(2, mended)},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd36, Change: ChangePod, Reason: Changing,
				Message: "recreating the Pod of m-2 (spec.resources)",
			},
		},
		"CrashedBefore": {
			reason: "So does one that crashes with what it has served with: what the spec says may be what helps",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, crashed)},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-2 in place from 3.6.16 to 3.7.3",
			},
		},
		"NeverReady": {
			reason: "It answers, and its kubelet never finds it ready: a person has to look",
			base:   upgrading(etcd36, etcd36),
			args:   []change{others, on(1, answers), on(1, func(i *Instance) { i.Pod.IdleLong = true })},
			want: Step{
				Action: Stall, Reason: Changing,
				Message: "waiting for m-1 to stay ready with the new spec.resources, which takes up to 30s. etcd answers in m-1, and the kubelet does not find it ready: look at the events of the Pod (kubectl describe pod m-1)",
			},
		},
		"Away": {
			reason: "It answers, and nothing is heard of its node: no change is begun, nor of another one",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, away)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for the node of m-1, of which nothing is heard"},
		},
		"AwayMended": {
			reason: "Nor where the spec may be what helps",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, away), on(1, crashed)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for the node of m-1, of which nothing is heard"},
		},
		"AwayArmed": {
			reason: "Its node has not heard of the change, and would carry it out when it is back: the spec was set back",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, armed), on(1, outdated), on(1, differs(ChangeImage, "version"))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: Changing,
				Message: "taking back the change of m-1 to etcd 3.7.3: its node has not heard of it, and the spec does not ask for it any more",
			},
		},
		"AwayArmedStill": {
			reason: "The spec asks for it: it is waited for",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, armed), on(1, differs(ChangeNone))},
			want: Step{
				Action: Wait, Reason: Changing, Message: "waiting for m-1 to answer from what it was changed to",
			},
		},
		"AwayArmedAndDone": {
			reason: "Another version answers by now: its data may be of that",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, armed), on(1, outdated), on(1, differs(ChangeImage, "version")), on(1, func(i *Instance) { i.Endpoint.Version = etcd37 })},
			want: Step{
				Action: Wait, Reason: Changing, Message: "waiting for m-1 to answer from what it was changed to",
			},
		},
		"AwayAtRest": {
			reason: "There is nothing to change: the member serves",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, away)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"Idle": {
			reason: "It runs with other options, and may serve yet",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, mute), on(1, func(i *Instance) { i.Pod.IdleLong = false })},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"IdleMended": {
			reason: "The spec asks for something else: it is not waited for",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, mute), on(1, mended), on(1, func(i *Instance) { i.Pod.IdleLong = false })},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it does not answer",
			},
		},
		"IdleLong": {
			reason: "To run is not to serve: it has had time enough",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, mute)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it runs and does not serve",
			},
		},
		"IdlePublishing": {
			reason: "Nor to follow a leader",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, mute), on(1, func(i *Instance) { i.Endpoint.Publishing = i.ID })},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it runs and does not serve",
			},
		},
		"IdleVersionAsked": {
			reason: "Before it opens a port, it may read its data: the spec asks for this version",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(same), on(1, reads), on(1, next(etcd37))},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"IdleVersionMemory": {
			reason: "In memory no volume says what comes next, and the spec asks for it all the same",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(same), on(1, reads), on(1, outdated)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"IdleVersionResources": {
			reason: "Other cpu and memory come when it serves",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(same), on(1, reads), on(1, next(etcd37)), on(1, outdated), on(1, differs(ChangeResources, "resources"))},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"IdleVersionOptions": {
			reason: "Other options come when it serves as well",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(differs(ChangePod, "options")), on(1, reads), on(1, next(etcd37)), on(1, outdated)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"IdleVersionRegistry": {
			reason: "From another registry another image may come, which serves",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(differs(ChangeImage, "image")), on(1, reads), on(1, next(etcd37)), on(1, outdated)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 it does not answer",
			},
		},
		"IdleResourcesReverted": {
			reason: "The resources with which it does not serve are not asked for any more",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, mute), on(1, func(i *Instance) { i.Pod.IdleLong = false }), on(1, outdated), on(1, differs(ChangeResources, "resources"))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it does not answer",
			},
		},
		"IdleRolledBack": {
			reason: "It runs what ran before, and its volume alone does not say so yet: it may read its data",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, silent), on(1, next(etcd37)), on(1, func(i *Instance) { i.Pod.Idle = true })},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"IdleVersionReverted": {
			reason: "The spec asks for the earlier version again: it is not waited for",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, reads), on(1, next(etcd37)), on(1, differs(ChangeImage, "version"))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 it does not answer",
			},
		},
		"IdleVersion": {
			reason: "Another version may have made the data its own: then the earlier one ends at once, and says so",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(same), on(1, answers), on(1, mute), on(1, next(etcd37))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it runs and does not serve",
			},
		},
		"IdleVersionRisen": {
			reason: "The data of other members is of the later minor: so is its own",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(same), on(1, answers), on(1, mute), on(1, next(etcd37)), on(0, func(i *Instance) { i.Endpoint.Storage = Version{3, 7, 0} })},
			want: Step{
				Action: Raise, Members: []string{"m-1"}, Version: etcd37, Reason: Recording,
				Message: "recording that etcd 3.7.3 has run on the volume of m-1: the data of other members is of that minor. Quorate does not roll m-1 back to 3.6.16",
			},
		},
		"IdleUnchanged": {
			reason: "It has served with what it has: there is nothing to go back to",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, mute)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 runs and does not serve"},
		},
		"IdleFromBirth": {
			reason: "What has never served goes for what the spec was mended to",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), onAll(mute), onAll(outdated)},
			want: Step{
				Action: Stop, Members: []string{"m-0", "m-1", "m-2"}, Reason: Replacing,
				Message: "replacing the Pods m-0, m-1, m-2, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"IdleWithoutQuorum": {
			reason: "Members that have served may lack nothing but each other",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), nobodyAnswers, onAll(mute), onAll(outdated)},
			want:   Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 runs and does not serve; m-1 runs and does not serve; m-2 runs and does not serve"},
		},
		"Starved": {
			reason: "One death for want of the memory that was changed is enough",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, starved)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it was killed for using more memory than its limit of 14Mi (OOMKilled): raise spec.resources.limits.memory",
			},
		},
		"StarvedBefore": {
			reason: "With what it has served with there is nothing to go back to",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, starved)},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 was killed for using more memory than its limit of 14Mi (OOMKilled): raise spec.resources.limits.memory",
			},
		},
		"StarvedByOptions": {
			reason: "Other options may need more for a moment: what has not been tried twice may stay up yet",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, answers), on(1, starved), on(1, untried("options"))},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 was killed for using more memory than its limit of 14Mi (OOMKilled): raise spec.resources.limits.memory",
			},
		},
		"CrashedTwice": {
			reason: "It has answered, and been recorded, and its kubelet puts off the next try: its version stays",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, next(etcd37)), on(1, answers), on(1, silent), on(1, failing), on(1, func(i *Instance) { i.Pod.Problem = "exited with code 1" })},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd37, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.resources it exited with code 1",
			},
		},
		"HalfwayYoung": {
			reason: "It has arrived at its version, and holds up no member that comes or goes",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, next(etcd37)), on(1, young), size(4)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},
	})
}
