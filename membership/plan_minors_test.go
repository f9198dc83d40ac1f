package membership

import "testing"

// TestPlanMinors is for the ways to another minor, up and down, on which etcd has a say of its own.
func TestPlanMinors(t *testing.T) {
	const takenBack = "taking back the downgrade until the members are complete again"
	down := upgrading(etcd37, etcd36)
	told := downgradingTo(storage36)
	prepared := onAll(stored(storage36))
	testPlan(t, map[string]planCase{
		// down
		"Downgrade": {
			reason: "etcd is told first",
			base:   down,
			want: Step{
				Action: Downgrade, Version: etcd36, Reason: Downgrading,
				Message: "having etcd make its data readable for 3.6",
			},
		},
		"DowngradeToFive": {
			reason: "By the minor that comes, whatever it is",
			base:   upgrading(etcd36, etcd35),
			want: Step{
				Action: Downgrade, Version: etcd35, Reason: Downgrading,
				Message: "having etcd make its data readable for 3.5",
			},
		},
		"DowngradeUnready": {
			reason: "No member runs the earlier minor before the data of all can be read by it",
			base:   down,
			args:   []change{told, prepared, on(1, stored(storage37)), on(2, stored(Version{}))},
			want:   Step{Action: Wait, Reason: Downgrading, Message: "waiting for etcd to make the data of m-1, m-2 readable for 3.6"},
		},
		"DowngradeReady": {
			reason: "Then they change as in an upgrade",
			base:   down,
			args:   []change{told, prepared},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.7.3 to 3.6.16, then m-2, m-0",
			},
		},
		"DowngradeHalfWay": {
			reason: "etcd is not told again",
			base:   down,
			args:   []change{told, prepared, on(1, changedTo(etcd36))},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-2 in place from 3.7.3 to 3.6.16, then m-0",
			},
		},
		"DowngradeTakenBackHalfWay": {
			reason: "With one that runs the earlier minor the others may, whether etcd is told of it or not",
			base:   down,
			args:   []change{prepared, on(1, changedTo(etcd36))},
			want: Step{
				Action: Update, Members: []string{"m-2"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-2 in place from 3.7.3 to 3.6.16, then m-0",
			},
		},
		"Downgraded": {
			reason: "etcd ends it by itself, and it is not taken back meanwhile",
			base:   down,
			args:   []change{onAll(changedTo(etcd36)), told},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"RolledBack": {
			reason: "While one still runs the earlier minor there is nothing to prepare",
			base:   upgrading(etcd35, etcd35),
			args:   []change{onAll(same), on(1, runs(etcd36)), on(1, differs(ChangeImage, "version"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd35, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.5.35",
			},
		},
		"TwoMinorsDown": {
			reason: "One after the other, as a person decides each time",
			base:   upgrading(etcd37, etcd35),
			want: Step{
				Action: Stall, Reason: VersionNotAllowed,
				Message: "what runs goes on: from 3.7.3 to 3.5.35 is a downgrade over two minors: set spec.version to 3.6.16 first, and to 3.5.35 when that is done",
			},
		},
		"MemberDownWhileDowngrading": {
			reason: "Time brings it back",
			base:   down,
			args:   []change{told, prepared, on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},

		// a downgrade that is taken back
		"SpecUpAgain": {
			reason: "The spec wants the later minor after all: etcd would not go on using what is new",
			base:   down,
			args:   []change{to(etcd37), onAll(same), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade to 3.6"},
		},
		"SpecUpAgainHalfWay": {
			reason: "Before those that went down come up again",
			base:   down,
			args:   []change{to(etcd37), onAll(same), on(1, runs(etcd36)), on(1, differs(ChangeImage, "version")), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade to 3.6"},
		},
		"LostWhileDowngrading": {
			reason: "etcd takes no new member meanwhile, and a lost member must be replaced",
			base:   down,
			args:   []change{on(2, gone), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: takenBack},
		},
		"LostAfterwards": {
			reason: "Then it is replaced as ever",
			base:   down,
			args:   []change{on(2, gone)},
			want:   Step{Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: MemberLost, Message: "removing m-2, whose data is gone; a new member takes its place"},
		},
		"FailedWhileDowngrading": {
			reason: "Its successor is a new member too",
			base:   down,
			args:   []change{on(2, forsaken), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: takenBack},
		},
		"GrownWhileDowngrading": {
			reason: "So is one that makes it larger",
			base:   down,
			args:   []change{size(4), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: takenBack},
		},
		"ShrunkWhileDowngrading": {
			reason: "Size first, whichever way",
			base:   down,
			args:   []change{size(2), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: takenBack},
		},
		"LearnerWhileDowngrading": {
			reason: "A learner is not promoted then",
			base:   down,
			args:   []change{learner(3), size(4), told},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: takenBack},
		},

		// several minors up
		"Hop": {
			reason: "The minor between first, all of it, and what comes after is told",
			base:   upgrading(etcd35, etcd37),
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.5.35 to 3.6.16, then m-2, m-0; after that to 3.7.3",
			},
		},
		"HopByPatch": {
			reason: "And the patch to leave from before that",
			base:   upgrading(Version{3, 5, 20}, etcd37),
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd35, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.5.20 to 3.5.35, then m-2, m-0; after that to 3.6.16, 3.7.3",
			},
		},
		"HopUnderWay": {
			reason: "No member goes on before all have come there",
			base:   upgrading(etcd35, etcd37),
			args:   []change{on(1, changedTo(etcd36)), on(2, changedTo(etcd36))},
			want: Step{
				Action: Update, Members: []string{"m-0"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-0 in place from 3.5.35 to 3.6.16; after that to 3.7.3",
			},
		},
		"HopUnraised": {
			reason: "Nor before etcd has raised its own version: data of two minors ago cannot be read",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(0, stored(Version{3, 5, 0})), on(2, stored(Version{}))},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for the storage version to reach 3.6: m-0, m-2"},
		},
		"UnraisedWithinMinor": {
			reason: "Another patch needs none of it",
			base:   upgrading(etcd36, Version{3, 6, 15}),
			args:   []change{onAll(stored(Version{}))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: Version{3, 6, 15}, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.6.15, then m-2, m-0",
			},
		},
		"UnraisedFive": {
			reason: "3.5 does not tell",
			base:   upgrading(etcd35, etcd36),
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.5.35 to 3.6.16, then m-2, m-0",
			},
		},

		// what 3.5 has left in the log
		"ReplaysSince": {
			reason: "No member runs 3.5 any more, which is written down first: then the log can be rewritten",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, replaying), on(2, replayingRisen)},
			want: Step{
				Action: Record, Members: []string{"m-1"}, Reason: Recording,
				Message: "recording the member and cluster ID on the volumes of m-1",
			},
		},
		"Replays": {
			reason: "A member from 3.5 rewrites its log before any member goes on to 3.7",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(1, replayingRisen)},
			want: Step{
				Action: Downgrade, Version: Version{3, 5, 0}, Reason: Changing,
				Message: "having every member save a snapshot, as etcd does before a downgrade: 3.7.3 cannot read the entries of 3.5 in the WAL",
			},
		},
		"ReplaysStill": {
			reason: "A member that has not made its data that of 3.5 may not have saved a snapshot",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(replayingRisen), downgrading(5), on(1, stored(Version{3, 5, 0}))},
			want: Step{
				Action: Wait, Reason: Changing,
				Message: "waiting for members to save a snapshot, before they run 3.7.3: m-0, m-2",
			},
		},
		"BegunAnew": {
			reason: "All have saved a snapshot: their volumes say so",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(replayingRisen), downgrading(5), onAll(stored(Version{3, 5, 0}))},
			want: Step{
				Action: Record, Members: []string{"m-0", "m-1", "m-2"}, Reason: Recording,
				Message: "recording the member and cluster ID on the volumes of m-0, m-1, m-2",
			},
		},
		"BegunBefore": {
			reason: "A downgrade that was carried out has begun the log before what 3.5 has written since",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(replaying), downgrading(5), onAll(stored(Version{3, 5, 0}))},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade to 3.5"},
		},
		"BegunAnewRecorded": {
			reason: "Then etcd is to use what is new in 3.6 again",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(replayingNoMore), downgrading(5), onAll(stored(Version{3, 5, 0}))},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade to 3.5"},
		},
		"ReplaysNoMore": {
			reason: "The log was rewritten",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(replayingNoMore)},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd37, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.7.3, then m-2, m-0",
			},
		},
		"ReplaysBesideNext": {
			reason: "While a member runs 3.7 no log can be rewritten, so that one goes back first",
			base:   upgrading(etcd36, etcd37),
			args:   []change{on(2, replaying), onAll(same), on(1, runs(etcd37)), on(1, stored(storage36)), on(1, differs(ChangeImage, "version"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.7.3 to 3.6.16",
			},
		},
		"ReplaysWithinMinor": {
			reason: "3.6 reads it",
			base:   upgrading(etcd36, Version{3, 6, 15}),
			args:   []change{onAll(replaying)},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: Version{3, 6, 15}, Change: ChangeImage, Reason: Changing,
				Message: "changing m-1 in place from 3.6.16 to 3.6.15, then m-2, m-0",
			},
		},
		"ReplaysTwo": {
			reason: "Of two members none can be spared for the change that it is for",
			base:   upgrading(etcd36, etcd37),
			args:   []change{two, onAll(replayingRisen)},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "cannot restart m-1 (spec.version) without losing the quorum of 2 members: set spec.replicas to 3 for the update, or to 1",
			},
		},
		"ReplaysUnraised": {
			reason: "From what etcd does not use yet there is no way back",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(replaying), onAll(stored(Version{3, 5, 0}))},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for the storage version to reach 3.6: m-0, m-1, m-2"},
		},
		"ReplaysFromNowOn": {
			reason: "Others are about to run 3.5, whose entries all get",
			base:   upgrading(etcd36, etcd35),
			args:   []change{onAll(replayingNoMore), downgrading(5), onAll(stored(Version{3, 5, 0}))},
			want: Step{
				Action: Record, Members: []string{"m-0", "m-1", "m-2"}, Reason: Recording,
				Message: "recording the member and cluster ID on the volumes of m-0, m-1, m-2",
			},
		},
	})
}
