package membership

import "testing"

// asksFor has the spec ask for what is done where a majority is lost.
func asksFor(survivor, backup bool) change {
	return func(d *Desired, o *Observed) {
		d.FromSurvivor, d.FromBackup, d.LossPatience = survivor, backup, "10m"
		o.Loss.Restore = "m-c1"
	}
}

func lostLong(_ *Desired, o *Observed)   { o.Loss.Long = true }
func recovering(_ *Desired, o *Observed) { o.Loss.Made = true }

func cameBackEmpty(i *Instance) {
	i.Pod.Empty, i.Pod.EmptyLong, i.Endpoint = true, true, Endpoint{}
}

// TestPlanQuorumLoss is what is done where the data of a majority is gone for good.
func TestPlanQuorumLoss(t *testing.T) {
	const gone2 = "the data of m-1, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2"
	stall := func(message string) Step {
		return Step{Action: Stall, Reason: DataLost, Members: []string{"m-1", "m-2"}, Message: gone2 + ". No member is started empty under its old name. " + message}
	}
	const onPurpose = "; or, to begin with an empty cluster on purpose, delete this EtcdCluster and what is left of its PersistentVolumeClaims, and apply it again. Step by step: docs/restore.md#which-way-back"
	manual := stall("Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-0 (log up to entry 9 at least), or from a snapshot" + onPurpose)
	lose := []change{noQuorum, on(1, gone), on(2, gone)}
	with := func(more ...change) []change { return append(append([]change{}, lose...), more...) }
	testPlan(t, map[string]planCase{
		"Manual": {
			reason: "A person decides",
			base:   formed3,
			args:   with(asksFor(false, false), lostLong),
			want:   manual,
		},
		"ManualFar": {
			reason: "The one that is left says how far it is",
			base:   formed3,
			args:   with(asksFor(false, false), on(0, isAt(4, 4711))),
			want:   stall("Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-0 (term 4, log up to entry 4711 at least), or from a snapshot" + onPurpose),
		},
		"ManualSeveral": {
			reason: "So do both of two, of which a person takes one",
			base:   formed5,
			args:   []change{noQuorum, on(2, gone), on(3, gone), on(4, gone), on(0, isAt(4, 4711)), on(1, isAt(4, 4709))},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-2", "m-3", "m-4"},
				Message: "the data of m-2, m-3, m-4 is gone: of 5 members 2 has its data, and a quorum needs 3. No member is started empty under its old name. " +
					"Bring the volumes back; or create an EtcdRestore from the data of a member (spec.source.survivor), m-0 (term 4, log up to entry 4711 at least), m-1 (term 4, log up to entry 4709 at least), or from a snapshot" + onPurpose,
			},
		},
		"Asked": {
			reason: "A person has made an EtcdRestore, which may be suspended: nothing else is done while it is there",
			base:   formed3,
			args:   with(asksFor(true, false), lostLong, asks(held), func(_ *Desired, o *Observed) { o.Search = Search{Begun: true, Found: monday} }),
			want:   stall("EtcdRestore back is to restore the cluster: its conditions say what it waits for. To do something else, delete it first"),
		},
		"TooEarly": {
			reason: "The volumes may be brought back",
			base:   formed3,
			args:   with(asksFor(true, false)),
			want:   stall("Bring the volumes back; when they have been gone for 10m (spec.recovery.quorumLossAfter), an EtcdRestore of what m-0 has is created"),
		},
		"FromSurvivor": {
			reason: "They were not",
			base:   formed3,
			args:   with(asksFor(true, false), lostLong),
			want: Step{
				Action: Recover, Reason: Restoring, Members: []string{"m-1", "m-2"},
				Message: gone2 + ": creating EtcdRestore m-c1 of what m-0 has, as spec.recovery.quorumLoss asks for",
			},
		},
		"FromBackup": {
			reason: "The snapshot is looked for when the EtcdRestore is there",
			base:   formed3,
			args:   with(asksFor(false, true), lostLong),
			want: Step{
				Action: Recover, Reason: Restoring, Members: []string{"m-1", "m-2"},
				Message: gone2 + ": creating EtcdRestore m-c1 of a snapshot, as spec.recovery.quorumLoss asks for",
			},
		},
		"Once": {
			reason: "It was created before, and is there, or was deleted by a person",
			base:   formed3,
			args:   with(asksFor(true, false), lostLong, recovering),
			want:   stall("EtcdRestore m-c1 was created for that (spec.recovery.quorumLoss): its conditions say how far it is, and where it was deleted, make another one"),
		},
		"NoSurvivor": {
			reason: "There is nothing to take, and no snapshot was asked for",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(gone), asksFor(true, false), lostLong},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0", "m-1", "m-2"},
				Message: "every volume of the cluster is gone. No member is started empty under its old name. Bring the volumes back; or create an EtcdRestore from a snapshot" + onPurpose,
			},
		},
		"AllFromBackup": {
			reason: "A snapshot needs no survivor",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(gone), asksFor(false, true), lostLong},
			want: Step{
				Action: Recover, Reason: Restoring, Members: []string{"m-0", "m-1", "m-2"},
				Message: "every volume of the cluster is gone: creating EtcdRestore m-c1 of a snapshot, as spec.recovery.quorumLoss asks for",
			},
		},
		"CameBackEmpty": {
			reason: "etcd itself says that the data is gone, for as long as the spec waits for that",
			base:   formed3,
			args:   []change{noQuorum, on(1, cameBackEmpty), on(2, cameBackEmpty), asksFor(true, false), lostLong},
			want: Step{
				Action: Recover, Reason: Restoring, Members: []string{"m-1", "m-2"},
				Message: gone2 + ": creating EtcdRestore m-c1 of what m-0 has, as spec.recovery.quorumLoss asks for",
			},
		},
		"Away": {
			reason: "The members of nodes that are off may come back: however long, nothing is restored",
			base:   formed3,
			args: []change{
				noQuorum, asksFor(true, false), lostLong,
				on(1, silent), on(2, silent), on(1, awayLong), on(2, awayLong),
			},
			want: Step{
				Action: Wait, Reason: QuorumLost,
				Message: "no quorum answers: m-0 knows no leader; m-1 does not answer; m-2 does not answer",
			},
		},
		"Serves": {
			reason: "A quorum answers: a volume that is gone is that of a member to replace",
			base:   formed3,
			args:   []change{on(2, gone), asksFor(true, false), lostLong},
			want:   Step{Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: MemberLost, Message: "removing m-2, whose data is gone; a new member takes its place"},
		},
	})
}

func awayLong(i *Instance) { i.Pod.Away, i.Pod.AwayLong = true, true }

func isAt(term, index uint64) func(*Instance) {
	return func(i *Instance) { i.Endpoint.RaftTerm, i.Endpoint.RaftIndex = term, index }
}
