package membership

import "testing"

// backup that is asked for, in some state.
func backup(state BackupState, says string) change {
	return func(d *Desired, o *Observed) {
		d.BackUp, o.Backup = true, Backup{Name: "m-before", State: state, Says: says}
	}
}

// TestPlanBackup is for the snapshot before a change of version: what it holds up, and what it does
// not.
func TestPlanBackup(t *testing.T) {
	const (
		first   = "changing m-1 in place from 3.6.16 to 3.7.3, then m-2, m-0"
		without = "set spec.backup.beforeChange to Disabled, for the change to begin without a snapshot"
	)
	update := func(member string, v Version, message string) Step {
		return Step{Action: Update, Members: []string{member}, Version: v, Change: ChangeImage, Reason: Changing, Message: message}
	}
	waits := func(before string) Step {
		return Step{Action: Wait, Reason: BackingUp, Message: "waiting for EtcdBackup m-before, before " + before}
	}
	testPlan(t, map[string]planCase{
		// how far it is
		"None": {
			reason: "Before the first member is changed", base: upgrading(etcd36, etcd37), args: []change{backup(BackupNone, "")},
			want: Step{Action: BackUp, Reason: BackingUp, Message: "taking a snapshot with EtcdBackup m-before, before " + first},
		},
		"Earlier": {
			reason: "The spec was edited meanwhile: the data is the same", base: upgrading(etcd36, etcd37), args: []change{backup(BackupEarlier, "saving")},
			want: Step{Action: BackUp, Reason: BackingUp, Message: "waiting for EtcdBackup m-before (saving), before " + first},
		},
		"Runs": {
			reason: "It says how far it is", base: upgrading(etcd36, etcd37), args: []change{backup(BackupRuns, "stored as x; verifying it")},
			want: Step{Action: Wait, Reason: BackingUp, Message: "waiting for EtcdBackup m-before (stored as x; verifying it), before " + first},
		},
		"RunsSaysNothing": {
			reason: "It has just been made", base: upgrading(etcd36, etcd37), args: []change{backup(BackupRuns, "")}, want: waits(first),
		},
		"Verified": {
			reason: "Then the change begins", base: upgrading(etcd36, etcd37), args: []change{backup(BackupVerified, "")}, want: update("m-1", etcd37, first),
		},
		"Stalled": {
			reason: "A store that is mended lets it go on", base: upgrading(etcd36, etcd37), args: []change{backup(BackupStalled, "there is no claim")},
			want: Step{Action: Stall, Reason: BackupFailed, Message: "EtcdBackup m-before cannot go on: there is no claim. No member is changed. Mend that, and it goes on by itself; or " + without},
		},
		"GivenUp": {
			reason: "What is not tried again by itself needs a person", base: upgrading(etcd36, etcd37), args: []change{backup(BackupGivenUp, "access denied")},
			want: Step{Action: Stall, Reason: BackupFailed, Message: "EtcdBackup m-before has failed: access denied. No member is changed. Mend that and delete this EtcdBackup, for another one to be made; or " + without},
		},
		"Going": {
			reason: "What goes proves nothing", base: upgrading(etcd36, etcd37), args: []change{backup(BackupGoing, "")},
			want: Step{Action: Wait, Reason: BackingUp, Message: "waiting for EtcdBackup m-before, which is being deleted, to be gone, before " + first},
		},
		"Stays": {
			reason: "Its snapshot cannot be deleted, and a person has to act", base: upgrading(etcd36, etcd37), args: []change{backup(BackupGoing, "access denied")},
			want: Step{Action: Stall, Reason: BackupFailed, Message: "EtcdBackup m-before is being deleted, and stays: access denied. No member is changed. Mend that, and it goes on by itself; or " + without},
		},
		"Foreign": {
			reason: "A snapshot of something else proves nothing", base: upgrading(etcd36, etcd37), args: []change{backup(BackupForeign, "")},
			want: Step{Action: Stall, Reason: ForeignObject, Message: "EtcdBackup m-before exists and was not made for this EtcdCluster. No member is changed. Delete it; or " + without},
		},
		"Disabled": {
			reason: "The spec says so", base: upgrading(etcd36, etcd37), args: []change{backup(BackupGivenUp, "access denied"), func(d *Desired, _ *Observed) { d.BackUp = false }},
			want: update("m-1", etcd37, first),
		},
		"Suspended": {
			reason: "It comes next", base: upgrading(etcd36, etcd37), args: []change{backup(BackupNone, ""), suspended},
			want: Step{Action: None, Reason: Suspended, Message: "suspended by spec.suspend; without it: taking a snapshot with EtcdBackup m-before, before " + first},
		},

		// what begins a change
		"Patch": {
			reason: "Another patch is another version", base: upgrading(Version{3, 6, 11}, etcd36), args: []change{backup(BackupRuns, "")},
			want: waits("changing m-1 in place from 3.6.11 to 3.6.16, then m-2, m-0"),
		},
		"NextHop": {
			reason: "All have come to the version on the way: the snapshot of before is looked for again, and not another one made",
			base:   upgrading(etcd36, etcd37), args: []change{backup(BackupVerified, ""), onAll(replayingNoMore)}, want: update("m-1", etcd37, first),
		},
		"WALRewritten": {
			reason: "etcd is told nothing before", base: upgrading(etcd36, etcd37), args: []change{backup(BackupRuns, ""), onAll(replayingRisen)},
			want: waits("having every member save a snapshot, as etcd does before a downgrade: 3.7.3 cannot read the entries of 3.5 in the WAL"),
		},
		"Downgrade": {
			reason: "etcd is told nothing before", base: upgrading(etcd37, etcd36), args: []change{backup(BackupRuns, "")},
			want: waits("having etcd make its data readable for 3.6"),
		},

		// what is not held up
		"TheNext": {
			reason: "One has changed: a stop in the middle would gain nothing", base: upgrading(etcd36, etcd37), args: []change{backup(BackupGivenUp, "x"), on(1, changedTo(etcd37))},
			want: update("m-2", etcd37, "changing m-2 in place from 3.6.16 to 3.7.3, then m-0"),
		},
		"Revert": {
			reason: "One has changed, and the spec is set back", base: upgrading(etcd36, etcd36),
			args: []change{backup(BackupGivenUp, "x"), onAll(same), on(1, runs(etcd37)), on(1, differs(ChangeImage, "version"))},
			want: update("m-1", etcd36, "changing m-1 in place from 3.7.3 to 3.6.16"),
		},
		"RevertToAnother": {
			reason: "One has changed, and the spec is set to a patch that no member runs", base: upgrading(etcd36, Version{3, 6, 12}),
			args: []change{backup(BackupGivenUp, "x"), on(1, runs(etcd37))},
			want: update("m-2", Version{3, 6, 12}, "changing m-2 in place from 3.6.16 to 3.6.12, then m-1, m-0"),
		},
		"RevertOfPatch": {
			reason: "One has come to another patch", base: upgrading(etcd36, etcd36),
			args: []change{backup(BackupNone, ""), onAll(same), on(1, runs(Version{3, 6, 12})), on(1, differs(ChangeImage, "version"))},
			want: update("m-1", etcd36, "changing m-1 in place from 3.6.12 to 3.6.16"),
		},
		"DowngradePrepared": {
			reason: "etcd was told: no member can be added until that ends", base: upgrading(etcd37, etcd36),
			args: []change{backup(BackupGivenUp, "x"), downgradingTo(storage36), onAll(stored(storage36))},
			want: update("m-1", etcd36, "changing m-1 in place from 3.7.3 to 3.6.16, then m-2, m-0"),
		},
		"DowngradeTakenBack": {
			reason: "The spec is set back when etcd was told", base: upgrading(etcd37, etcd37),
			args: []change{backup(BackupGivenUp, "x"), onAll(same), downgradingTo(storage36)},
			want: Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade to 3.6"},
		},
		"PutBack": {
			reason: "A member that does not come up gets back what it had", base: upgrading(etcd36, etcd37), args: []change{backup(BackupRuns, ""), on(1, broken(etcd37))},
			want: Step{Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed, Message: "rolling m-1 back: with etcd 3.7.3 it cannot pull the image etcd:v3.6.16"},
		},
		"Started": {
			reason: "A member without a Pod gets one", base: upgrading(etcd36, etcd37), args: []change{backup(BackupGivenUp, "x"), on(1, noPod)},
			want: Step{Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting, Message: "starting m-1 on the volumes that hold their data"},
		},
		"Options": {
			reason: "Other options need none", base: formed3, args: []change{backup(BackupNone, ""), onAll(runs(etcd36)), onAll(differs(ChangePod, "options"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangePod, Reason: Changing,
				Message: "recreating the Pod of m-1 (spec.options), then m-2, m-0",
			},
		},
		"Resources": {
			reason: "Nor do other resources", base: formed3, args: []change{backup(BackupNone, ""), onAll(runs(etcd36)), onAll(differs(ChangeResources, "resources"))},
			want: Step{
				Action: Update, Members: []string{"m-1"}, Version: etcd36, Change: ChangeResources, Reason: Changing,
				Message: "changing cpu and memory of m-1 while it runs (spec.resources), then m-2, m-0",
			},
		},

		// what comes to nothing
		"NoPath": {
			reason: "For a change that cannot be made none is taken", base: upgrading(etcd37, etcd35), args: []change{backup(BackupNone, "")},
			want: Step{Action: Stall, Reason: VersionNotAllowed, Message: "what runs goes on: from 3.7.3 to 3.5.35 is a downgrade over two minors: set spec.version to 3.6.16 first, and to 3.5.35 when that is done"},
		},
		"Two": {
			reason: "Nor for one that is not made", base: upgrading(etcd36, etcd37), args: []change{backup(BackupNone, ""), two},
			want: Step{Action: Stall, Reason: ChangeNotSupported, Message: "cannot restart m-1 (spec.version) without losing the quorum of 2 members: set spec.replicas to 3 for the update, or to 1"},
		},
		"Abandoned": {
			reason: "Nor for one that was rolled back", base: upgrading(etcd36, etcd37), args: []change{backup(BackupNone, ""), abandonedChange},
			want: Step{Action: Stall, Reason: ChangeFailed, Message: "m-1: with etcd 3.7.3 it cannot pull the image. It was rolled back, and all members run what they ran before. Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false"},
		},
		"Hibernated": {
			reason: "While nothing runs none can be taken; the members wake as what they were, and it is taken then",
			base:   upgrading(etcd36, etcd37), args: []change{backup(BackupNone, ""), size(0), nobodyAnswers, onAll(noPod)},
			want: Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
		"Hibernating": {
			reason: "A snapshot that runs does not keep them up", base: upgrading(etcd36, etcd37), args: []change{backup(BackupRuns, ""), size(0)},
			want: Step{Action: Stop, Members: []string{"m-0", "m-1", "m-2"}, Reason: Hibernating, Message: "stopping m-0, m-1, m-2; the volumes are kept"},
		},
		"Awake": {
			reason: "They come up as what they were", base: upgrading(etcd36, etcd37), args: []change{backup(BackupNone, ""), nobodyAnswers, onAll(noPod)},
			want: Step{Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting, Message: "starting m-0, m-1, m-2 on the volumes that hold their data"},
		},
		"Restoring": {
			reason: "A cluster that is being restored has nothing yet to lose", base: fresh,
			args: []change{backup(BackupNone, ""), to(etcd37), func(d *Desired, _ *Observed) { d.Restore = true }},
			want: Step{Action: Find, Reason: Restoring, Message: "looking for the snapshot to start from"},
		},
	})
}
