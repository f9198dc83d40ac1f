package membership

import "testing"

// TestPlanChange is for the rules by which members come to run something else.
func TestPlanChange(t *testing.T) {
	const behindLeader = 6000
	caughtUp := onAll(func(i *Instance) { i.Endpoint.RaftIndex, i.Endpoint.Applied = behindLeader, behindLeader })
	applied := func(n uint64) func(*Instance) { return func(i *Instance) { i.Endpoint.Applied = n } }
	testPlan(t, map[string]planCase{
		// the order
		"FollowersFirst": {
			reason: "The leader is the last, so that leadership moves once",
			base:   upgrading(etcd36, etcd37),
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.7.3, then m-2, m-0",
			},
		},
		"TheNext": {
			reason: "A changed member that is back is left alone",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37))},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-2 in place from 3.6.16 to 3.7.3, then m-0",
			},
		},
		"TheLeaderLast": {
			reason: "And no other comes after it",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(2, changedTo(etcd37))},
			want: Step{
				Action: Update, Members: []string{"m-0"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-0 in place from 3.6.16 to 3.7.3",
			},
		},
		"Changed": {
			reason: "All have come to it",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(changedTo(etcd37))},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"LeaderElsewhere": {
			reason: "The leader of now counts, not that of before",
			base:   upgrading(etcd36, etcd37),
			args:   []change{leader(1)},
			want: Step{
				Action: Update, Members: []string{"m-0"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-0 in place from 3.6.16 to 3.7.3, then m-2, m-1",
			},
		},
		"EarliestFirst": {
			reason: "The one furthest behind has waited longest for what is mended",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, runs(Version{3, 6, 11}))},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-2 in place from 3.6.11 to 3.7.3, then m-1, m-0",
			},
		},
		"RolledBack": {
			reason: "The spec was set back when one had changed: it is the one that differs",
			base:   upgrading(etcd35, etcd35),
			args:   []change{onAll(same), on(1, runs(etcd36)), on(1, differs(ChangeImage, "version"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd35, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.5.35",
			},
		},

		// waitForUpdate
		"Changing": {
			reason: "One at a time: it still answers from what it ran",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changingStill), on(1, same)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to answer from what it was changed to"},
		},
		"ChangingNext": {
			reason: "Its Pod is recreated, and the old one has not ended",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, next(etcd37)), on(1, stopping), on(1, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 is terminating"},
		},
		"Interrupted": {
			reason: "What comes next is on the volume, and the Pod of before, as far as is known, has not been deleted: that is looked at past the cache, and begun again",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(differs(ChangePod, "options", "version")), on(1, next(etcd37))},
			want:   Step{Action: Record, Members: []string{"m-1"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-1"},
		},
		"InterruptedAndSetBack": {
			reason: "The Pod of before is what the spec asks for again: nothing comes next",
			base:   upgrading(etcd36, etcd36),
			args:   []change{onAll(same), on(1, next(etcd37))},
			want:   Step{Action: Record, Members: []string{"m-1"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-1"},
		},
		"ChangingDown": {
			reason: "It is being started again",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changingStill), on(1, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"ChangingOverdue": {
			reason: "Resources that its node has not given it for long are for a person to judge",
			base:   upgrading(etcd36, etcd36),
			args:   []change{on(1, changingStill), on(1, overdue)},
			want: Step{
				Action: Stall, Reason: Changing,
				Message: "waiting for m-1 to answer from what it was changed to. Waiting has not helped: remove the cause",
			},
		},
		"Behind": {
			reason: "A member that needs a snapshot is not counted on meanwhile",
			base:   upgrading(etcd36, etcd37),
			args:   []change{caughtUp, on(1, changedTo(etcd37)), on(1, applied(behindLeader-5001))},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to catch up with the leader"},
		},
		"NearlyCaughtUp": {
			reason: "The log still has what it lacks",
			base:   upgrading(etcd36, etcd37),
			args:   []change{caughtUp, on(1, changedTo(etcd37)), on(1, applied(behindLeader-5000))},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-2 in place from 3.6.16 to 3.7.3, then m-0",
			},
		},
		"DownBeforeUpdated": {
			reason: "No member is changed while another one is down",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"AlarmBeforeUpdated": {
			reason: "Nor while etcd refuses writes, without which its version does not rise",
			base:   upgrading(etcd36, etcd37),
			args:   []change{alarm(2, AlarmNoSpace, 0xa2)},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: noSpace,
			},
		},
		"GoingAndAnswering": {
			reason: "A member that goes, to its last moment",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, stopping)},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-2, which may still answer while its Pod is terminating"},
		},
		"GoingUnchanged": {
			reason: "Where nothing is to be changed, the cluster is not healthy before it is gone: it answers for a moment only",
			base:   formed3,
			args:   []change{on(2, stopping)},
			want:   Step{Action: Wait, Reason: Terminating, Message: "waiting for the Pods of m-2 to be gone; they still answer"},
		},
		"GoingBeforeUpdated": {
			reason: "Nor while the Pod of another one is being deleted",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, stopping), on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 is terminating"},
		},

		// started and recorded
		"StartedWithNext": {
			reason: "The Pod is recreated with what its volume says it is being changed to",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, next(etcd37)), on(1, noPod)},
			want:   Step{Action: Start, Members: []string{"m-1"}, Version: etcd37, Reason: Starting, Message: "starting m-1 on the volumes that hold their data"},
		},
		"RecordedNext": {
			reason: "It has answered from it: that is what its volume ran last, and nothing comes next",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changedTo(etcd37)), on(1, func(i *Instance) { i.Volume.Version = etcd36 }), on(1, next(etcd37))},
			want:   Step{Action: Record, Members: []string{"m-1"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-1"},
		},
		"RecordedNotWhileChanging": {
			reason: "The container of before answers yet",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, changingStill), on(1, func(i *Instance) { i.Volume.Version = etcd35 })},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for m-1 to answer from what it was changed to"},
		},
	})
}
