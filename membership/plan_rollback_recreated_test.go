package membership

import "testing"

// TestPlanRollbackRecreated is for changes that recreate a Pod, and do not work.
func TestPlanRollbackRecreated(t *testing.T) {
	testPlan(t, map[string]planCase{
		"Options": {
			reason: "Its Pod was recreated with options with which etcd does not start, and it has served with others",
			base:   formed3,
			args:   []change{on(1, wrongOptions)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.options it exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"OptionsAndVersion": {
			reason: "Both were changed at once, and both are taken back",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, wrongOptions), on(1, func(i *Instance) { i.Pod.Version, i.Volume.Next = etcd37, etcd37 })},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 and the new spec.options it exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"OptionsNotAnnounced": {
			reason: "Whatever the volume says comes next: the Pod is what has not been tried",
			base:   formed3,
			args:   []change{on(1, wrongOptions), on(1, next(Version{}))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.options it exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"OptionsOfSingle": {
			reason: "No other member serves meanwhile: it matters most where there is one",
			base:   formed3,
			args:   []change{only, on(0, wrongOptions), nobodyAnswers},
			want: Step{
				Action: PutBack, Members: []string{"m-0"}, Version: etcd36, Alone: true, Reason: ChangeFailed,
				Message: "rolling m-0 back: with the new spec.options it exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"OptionsNeverServed": {
			reason: "A Pod that is announced, of a member of which it is not known what it has served with: there is nothing to go back to",
			base:   formed3,
			args:   []change{on(1, wrongOptions), on(1, untried())},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"OptionsMended": {
			reason: "The spec asks for something else by now, and that is tried by one that serves",
			base:   formed3,
			args:   []change{on(1, wrongOptions), on(1, outdated), on(1, differs(ChangePod, "options"))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.options it exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"OptionsFirstTry": {
			reason: "What has not been tried twice may come up yet",
			base:   formed3,
			args:   []change{on(1, wrongOptions), on(1, outdated), on(1, func(i *Instance) { i.Pod.Failing = false })},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 exited with code 2: flag provided but not defined: -wrong",
			},
		},
		"Unfit": {
			reason: "A node may be full for a moment",
			base:   formed3,
			args:   []change{on(1, unplaced)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 cannot be scheduled: 0/3 nodes are available"},
		},
		"UnfitForLong": {
			reason: "And nothing fits for longer than that",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, overdue)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.scheduling it cannot be scheduled: 0/3 nodes are available",
			},
		},
		"UnfitMended": {
			reason: "Nothing waits for what is not asked for any more",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, outdated)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.scheduling it cannot be scheduled: 0/3 nodes are available",
			},
		},
		"Unstarted": {
			reason: "A volume may take minutes to be attached elsewhere",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, unstarted)},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 has not started its container. Waiting has not helped: remove the cause",
			},
		},
		"UnstartedReverted": {
			reason: "Nothing waits for what is not asked for any more",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, unstarted), on(1, outdated)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.scheduling it has not started its container",
			},
		},
		"EndedReverted": {
			reason: "A Pod that is made of it again may end again",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, outdated), on(1, func(i *Instance) { i.Pod.Ended, i.Pod.Problem = true, "has ended (OutOfcpu)" })},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.scheduling it has ended (OutOfcpu)",
			},
		},
		"EndedYoung": {
			reason: "Its kubelet may end the next one too: not every second",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, func(i *Instance) { i.Pod.Ended, i.Pod.Young, i.Pod.Problem = true, true, "has ended (OutOfcpu)" })},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 has ended (OutOfcpu)"},
		},
		"UnfitEvicted": {
			reason: "Its node had no room, which says nothing of the change: it is recreated",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, overdue), on(1, func(i *Instance) { i.Pod.Ended = true })},
			want: Step{
				Action: Stop, Members: []string{"m-1"}, Reason: Replacing,
				Message: "replacing the Pods m-1, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"Refused": {
			reason: "The API server takes no Pod that is made of it, and may for a moment",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, unplaced), on(1, func(i *Instance) { i.Pod.Version = Version{} })},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"RefusedForLong": {
			reason: "And takes none for longer than that",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, unplaced), on(1, overdue)},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with the new spec.scheduling it cannot be scheduled: 0/3 nodes are available",
			},
		},
		"SlowInPlace": {
			reason: "Where something has run since the change it is the kubelet that says what is in vain",
			base:   formed3,
			args:   []change{on(1, unplaced), on(1, overdue), on(1, func(i *Instance) { i.Pod.NeverRan = false })},
			want: Step{
				Action: Stall, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 cannot be scheduled: 0/3 nodes are available. Waiting has not helped: remove the cause",
			},
		},
		"StuckWithServed": {
			reason: "What is stuck with what it has served with is recreated with a spec that was mended",
			base:   formed3,
			args:   []change{on(1, stuck), on(1, failing), on(1, outdated)},
			want: Step{
				Action: Stop, Members: []string{"m-1"}, Reason: Replacing,
				Message: "replacing the Pods m-1, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"Announced": {
			reason: "The same, where that was written down and no more",
			base:   formed3,
			args:   []change{on(1, stuck), on(1, failing), on(1, outdated), on(1, next(etcd36))},
			want: Step{
				Action: Stop, Members: []string{"m-1"}, Reason: Replacing,
				Message: "replacing the Pods m-1, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
	})
}
