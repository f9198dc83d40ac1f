package membership

import "testing"

// TestPlanSpace: a database that has reached its quota, and what gives it room.
func TestPlanSpace(t *testing.T) {
	defragments := "defragment one member after the other (kubectl exec m-1 -n prod -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-2 -n prod -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-0 -n prod -c etcd -- etcdctl defrag --command-timeout=5m)"
	compacts := "compact (read the revision: kubectl exec m-0 -n prod -c etcd -- etcdctl endpoint status -w json; then kubectl exec m-0 -n prod -c etcd -- etcdctl compact REVISION)"
	stall := func(message string) Step {
		return Step{
			Action: Stall, Reason: AlarmRaised,
			Message: "etcd has raised the alarm NOSPACE, and refuses writes: " + message + ". Quorate takes the alarm back when every member has room",
		}
	}
	live := func(raise string) Step {
		return stall("the database of m-0 has 64 MiB of 64 MiB, 60 MiB in use. " + raise + ". Where it is old revisions, " + compacts + ", then " + defragments)
	}
	disarm := Step{Action: Disarm, Alarm: AlarmNoSpace, ID: 0xa0, Reason: AlarmRaised, Message: "taking back the alarm NOSPACE of a0: the database of every member has room"}
	widens := func(n string, message string) Step {
		return Step{Action: Update, Members: []string{n}, Version: etcd36, Change: ChangePod, Reason: Changing, Message: message}
	}
	testPlan(t, map[string]planCase{
		// alarmRaised
		"Live": {
			reason: "What is in use would not have room after a defragmentation either",
			base:   refusing(64, 60, 64),
			want:   live("Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi"),
		},
		"LiveOnSmallVolume": {
			reason: "A volume has room for its log and a copy of the database, too",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(withCapacity(255))},
			want:   live("Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi, and spec.storage.size, for example to 256Mi"),
		},
		"LiveAtMost": {
			reason: "There is no higher quota than the highest",
			base:   refusing(100<<10, 100<<10, 100<<10),
			want: stall("the database of m-0 has 102400 MiB of 102400 MiB, 102400 MiB in use. A higher quota cannot be asked for: delete what is not needed. Where it is old revisions, " +
				compacts + ", then " + defragments),
		},
		"FreePages": {
			reason: "A defragmentation is enough",
			base:   refusing(64, 10, 64),
			want:   stall("the database of m-0 has 64 MiB of 64 MiB, 10 MiB in use. The rest is free pages: " + defragments),
		},
		"FreePagesAreFew": {
			reason: "With data in more than half of the quota the database may be full again soon",
			base:   refusing(64, 40, 64),
			want:   stall("the database of m-0 has 64 MiB of 64 MiB, 40 MiB in use. The rest is free pages: " + defragments + ". For more room than that, raise spec.options.quotaBackendSize, for example to 128Mi"),
		},
		"FreePagesAreFewAtMost": {
			reason: "There is no higher quota than the highest",
			base:   refusing(100<<10, 60<<10, 100<<10),
			want:   stall("the database of m-0 has 102400 MiB of 102400 MiB, 61440 MiB in use. The rest is free pages: " + defragments + ". A higher quota cannot be asked for: delete what is not needed"),
		},
		"FreePagesOfOne": {
			reason: "Whose data is in use counts, whichever other has free pages",
			base:   refusing(64, 10, 64),
			args:   []change{on(0, sized(64, 60, 64))},
			want:   live("Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi"),
		},
		"FreePagesAlike": {
			reason: "Whose data is a little more in use changes from look to look: the message does not",
			base:   refusing(64, 10, 64),
			args:   []change{on(2, func(i *Instance) { i.Endpoint.InUse -= 1 << 10 }), on(0, func(i *Instance) { i.Endpoint.InUse -= 2 << 10 })},
			want:   stall("the database of m-0 has 64 MiB of 64 MiB, 10 MiB in use. The rest is free pages: " + defragments),
		},
		"Unheard": {
			reason: "The others have room, and it is not known whether the last one does",
			base:   refusing(10, 10, 64),
			args:   []change{on(2, silent)},
			want:   stall("whether every database has room is not known: m-2 does not answer"),
		},

		// disarmNoSpace
		"Room": {
			reason: "One alarm after the other",
			base:   refusing(57, 57, 64),
			want:   disarm,
		},
		"NoRoom": {
			reason: "Less than a tenth of the quota is no room: the alarm would come back",
			base:   refusing(58, 58, 64),
			args:   []change{onAll(func(i *Instance) { i.Endpoint.InUse = 0 })},
			want:   stall("the database of m-0 has 58 MiB of 64 MiB, 0 MiB in use. Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi. Where it is old revisions, " + compacts + ", then " + defragments),
		},
		"NoRoomForRequests": {
			reason: "Nor is less than two of the largest requests",
			base:   refusing(40, 10, 64),
			args:   []change{requests(13 * mib)},
			want:   stall("the database of m-0 has 40 MiB of 64 MiB, 10 MiB in use. The rest is free pages: " + defragments),
		},
		"RoomButForOne": {
			reason: "Any member raises the alarm again",
			base:   refusing(10, 10, 64),
			args:   []change{on(2, sized(64, 10, 64))},
			want:   stall("the database of m-2 has 64 MiB of 64 MiB, 10 MiB in use. The rest is free pages: " + defragments),
		},
		"RoomButForLearner": {
			reason: "A learner is waited for as ever, and has to have room as well",
			base:   refusing(10, 10, 64),
			args:   []change{learner(3), size(4), on(3, sized(64, 64, 64))},
			want:   Step{Action: Promote, Members: []string{"m-3"}, ID: 0xa3, Reason: Joining, Message: "making the learner m-3 a voter"},
		},
		"QuotaUnknown": {
			reason: "Nothing is taken back for what it is not known",
			base:   refusing(10, 10, 64),
			args:   []change{on(1, func(i *Instance) { i.Pod.Quota = 0 })},
			want: stall("the database has reached its quota. Raise spec.options.quotaBackendSize, or make it smaller: " +
				compacts + ", then " + defragments),
		},
		"RoomAndCorrupt": {
			reason: "That data differs is another matter, and comes first",
			base:   refusing(10, 10, 64),
			args:   []change{corruptAlarm(0xa1), uncompared(0, 1, 2)},
			want:   Step{Action: Wait, Reason: AlarmRaised, Message: "etcd has raised the alarm CORRUPT, and refuses writes: members disagree about the data. Waiting until a quorum has been compared"},
		},

		// updated and grown, of a database that is full
		"Widened": {
			reason: "A higher quota comes to one member after the other, the leader last",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(128))},
			want:   widens("m-1", "recreating the Pod of m-1 (spec.options), then m-2, m-0"),
		},
		"WidenedOthersWait": {
			reason: "A member that gets no more room waits for the end of the alarm",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(differs(ChangePod, "scheduling")), on(0, widened(128))},
			want:   widens("m-0", "recreating the Pod of m-0 (spec.options)"),
		},
		"WidenedUnderWay": {
			reason: "The next one waits until the last one is back, and that is told instead of the alarm",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(128)), on(1, silent), on(1, sized(0, 0, 128)), on(1, same)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 does not answer"},
		},
		"WidenedLast": {
			reason: "The last one is on its way, and no other member has to be changed",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(sized(64, 60, 128)), on(0, silent), on(0, next(etcd36)), on(0, untried("options")), leader(1)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-0 does not answer"},
		},
		"WidenedGivenUp": {
			reason: "What was rolled back is not tried again",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(128)), abandonedChange},
			want: Step{
				Action: Stall, Reason: ChangeFailed,
				Message: "m-1: with etcd 3.7.3 it cannot pull the image. It was rolled back, and all members run what they ran before. Correct or revert the spec; any change of the spec has it tried again, such as spec.suspend set to true and then to false",
			},
		},
		"WidenedTwo": {
			reason: "Of two none can be spared, and it says what to do",
			base:   refusing(64, 60, 64),
			args:   []change{two, onAll(widened(128))},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "cannot restart m-1 (spec.options) without losing the quorum of 2 members: set spec.replicas to 3 for the update, or to 1",
			},
		},
		"Lowered": {
			reason: "A lower quota is no help",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(32))},
			want:   live("Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi"),
		},
		"GrownFirst": {
			reason: "The volumes grow before the quota that needs it",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(300)), onAll(small)},
			want:   Step{Action: Expand, Members: []string{"m-0", "m-1", "m-2"}, Reason: Changing, Message: "growing the volumes of m-0, m-1, m-2"},
		},
		"Growing": {
			reason: "And are waited for",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(300)), onAll(func(i *Instance) { i.Volume.Growing = true })},
			want:   Step{Action: Wait, Reason: Changing, Message: "waiting for the volumes of m-0, m-1, m-2 to grow"},
		},
		"GrowingAndWide": {
			reason: "A quota for which a volume has room already does not wait: some drivers need the new Pod for the volume to grow",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(128)), onAll(func(i *Instance) { i.Volume.Growing = true })},
			want:   widens("m-1", "recreating the Pod of m-1 (spec.options), then m-2, m-0"),
		},
		"TooWide": {
			reason: "A quota that no volume has room for is none that helps",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(widened(256))},
			want:   live("Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi"),
		},
		// quotaTooSmall
		"QuotaTooSmall": {
			reason: "Refused before the first member, with the sizes",
			base:   roomyAt(60, 55, 128),
			args:   []change{onAll(widened(62)), on(1, sized(61, 55, 128))},
			want: Step{
				Action: Stall, Reason: QuotaTooSmall,
				Message: "no member is changed: the database of m-1 has 64 MiB, 56 MiB in use, and its quota would be 62 MiB. Set spec.options.quotaBackendSize to 72Mi or more, or " + defragments,
			},
		},
		"QuotaTooSmallForData": {
			reason: "A defragmentation would not be enough",
			base:   roomyAt(60, 60, 128),
			args:   []change{onAll(widened(64))},
			want: Step{
				Action: Stall, Reason: QuotaTooSmall,
				Message: "no member is changed: the database of m-0 has 60 MiB, 60 MiB in use, and its quota would be 64 MiB. Set spec.options.quotaBackendSize to 67Mi or more",
			},
		},
		"QuotaTooSmallForRequests": {
			reason: "The largest requests would not fit either",
			base:   roomyAt(10, 10, 128),
			args:   []change{onAll(widened(64)), requests(40 * mib)},
			want: Step{
				Action: Stall, Reason: QuotaTooSmall,
				Message: "no member is changed: the database of m-0 has 10 MiB, 10 MiB in use, and its quota would be 64 MiB. Set spec.options.quotaBackendSize to 90Mi or more",
			},
		},
		"QuotaLowered": {
			reason: "A lower one with room is a change like any other",
			base:   roomyAt(57, 57, 128),
			args:   []change{onAll(widened(64))},
			want:   widens("m-1", "recreating the Pod of m-1 (spec.options), then m-2, m-0"),
		},
		"QuotaRaisedTooLittle": {
			reason: "A higher one is better than the one that there is",
			base:   roomyAt(60, 60, 64),
			args:   []change{onAll(widened(65))},
			want:   widens("m-1", "recreating the Pod of m-1 (spec.options), then m-2, m-0"),
		},
		"QuotaTooSmallAndDowngrade": {
			reason: "etcd is told nothing either",
			base:   upgrading(etcd37, etcd36),
			args:   []change{onAll(sized(60, 60, 128)), onAll(widened(32))},
			want: Step{
				Action: Stall, Reason: QuotaTooSmall,
				Message: "no member is changed: the database of m-0 has 60 MiB, 60 MiB in use, and its quota would be 32 MiB. Set spec.options.quotaBackendSize to 67Mi or more",
			},
		},
		"QuotaTooSmallInDowngrade": {
			reason: "A downgrade that is begun is taken back: no member can be added meanwhile",
			base:   upgrading(etcd37, etcd36),
			args:   []change{onAll(sized(60, 60, 128)), onAll(widened(32)), downgradingTo(storage36)},
			want: Step{
				Action: CancelDowngrade, Reason: QuotaTooSmall,
				Message: "taking back the downgrade: no member is changed: the database of m-0 has 60 MiB, 60 MiB in use, and its quota would be 32 MiB. Set spec.options.quotaBackendSize to 67Mi or more",
			},
		},
		"GrownByMoving": {
			reason: "Volumes that cannot grow are left for larger ones",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(unfit), room(256 * mib)},
			want: Step{
				Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: Moving,
				Message: "preparing the volume of m-3, to take the place of m-2, whose volume is of another class; then m-1, m-0",
			},
		},
		"MovedToNoMore": {
			reason: "Other volumes that give no more room wait",
			base:   refusing(64, 60, 64),
			args:   []change{onAll(unfit), room(65 * mib)},
			want:   live("Where that is data that is needed, raise spec.options.quotaBackendSize, for example to 128Mi"),
		},
	})
}
