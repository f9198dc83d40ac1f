package membership

import "testing"

var (
	monday = Snapshot{Name: "db-monday", SHA256: "5a", About: "revision 4711, taken 2026-11-23T07:50:00Z", Version: etcd36, Size: 100 << 20}
	// restoredOf3 is a first start of three from it.
	restoredOf3 = First{Token: "new", Size: 3, Snapshot: "5a db-monday"}
)

// restoring asks for a cluster that starts from a stored snapshot.
func restoring(d *Desired, _ *Observed) { d.Restore, d.Room, d.Volume = true, 512<<20, 1<<30 }

func found(s Snapshot) change {
	return func(_ *Desired, o *Observed) { o.Search = Search{Begun: true, Found: s} }
}
func choice(s Snapshot) change   { return func(_ *Desired, o *Observed) { o.Snapshot = s } }
func restoredVolume(i *Instance) { blankVolume(i); i.Volume.First = restoredOf3 }

func with(s Snapshot, change func(*Snapshot)) Snapshot { change(&s); return s }

func TestPlanRestore(t *testing.T) {
	testPlan(t, map[string]planCase{
		"Find": {
			reason: "Before anything is made, the snapshot is looked for",
			base:   fresh,
			args:   []change{restoring},
			want:   Step{Action: Find, Reason: Restoring, Message: "looking for the snapshot to start from"},
		},
		"FindNotWhileHibernated": {
			reason: "A cluster of no members needs none",
			base:   fresh,
			args:   []change{restoring, size(0)},
			want:   Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
		"Finding": {
			reason: "It takes a Pod some seconds to find it",
			base:   fresh,
			args:   []change{restoring, found(Snapshot{})},
			want:   Step{Action: Wait, Reason: Restoring, Message: "looking for the snapshot to start from"},
		},
		"NotFound": {
			reason: "What the agent says goes to the person who can do something about it",
			base:   fresh,
			args: []change{restoring, func(_ *Desired, o *Observed) {
				o.Search = Search{Begun: true, Problem: "the bucket backups does not exist"}
			}},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "no snapshot to start from: the bucket backups does not exist. No member was made yet, and spec.bootstrap.restore can be corrected",
			},
		},
		"Found": {
			reason: "The choice is written down before anything is made of it",
			base:   fresh,
			args:   []change{restoring, found(monday)},
			want: Step{
				Action: Choose, Snapshot: monday, Reason: Restoring,
				Message: "restoring snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z)",
			},
		},
		"FoundNewerMinor": {
			reason: "etcd does not read the data of a newer minor",
			base:   fresh,
			args:   []change{restoring, found(with(monday, func(s *Snapshot) { s.Version = etcd37 }))},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) was taken from etcd 3.7.3, and etcd 3.6.16 cannot read its data: set spec.version to 3.7 or newer, or choose an earlier snapshot. No member was made yet, and spec.bootstrap.restore can be corrected",
			},
		},
		"FoundEncrypted": {
			reason: "It cannot be read without an identity",
			base:   fresh,
			args:   []change{restoring, found(with(monday, func(s *Snapshot) { s.Encrypted = true }))},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) is encrypted: set spec.bootstrap.restore.identity, or spec.backup.identity, to the Secret that has the age identity which can read it. No member was made yet, and spec.bootstrap.restore can be corrected",
			},
		},
		"FoundDecryptable": {
			reason: "With an identity it is chosen",
			base:   fresh,
			args:   []change{restoring, func(d *Desired, _ *Observed) { d.Identity = true }, found(with(monday, func(s *Snapshot) { s.Encrypted = true }))},
			want: Step{
				Action: Choose, Snapshot: with(monday, func(s *Snapshot) { s.Encrypted = true }), Reason: Restoring,
				Message: "restoring snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z)",
			},
		},
		"FoundLargerThanQuota": {
			reason: "etcd would refuse every write",
			base:   fresh,
			args:   []change{restoring, found(with(monday, func(s *Snapshot) { s.Size = 513 << 20 }))},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) has 513 MiB, and the database may have 512 MiB: set spec.storage.size to twice as much at least, or spec.options.quotaBackendSize. No member was made yet, and spec.bootstrap.restore can be corrected",
			},
		},
		"FoundLargerThanVolume": {
			reason: "It is on the volume twice for a moment",
			base:   fresh,
			args:   []change{restoring, found(with(monday, func(s *Snapshot) { s.Size = 450 << 20 }))},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) has 450 MiB, and the volumes have 1024 MiB: set spec.storage.size to at least 1028 MiB, twice the data and what the write-ahead log needs. No member was made yet, and spec.bootstrap.restore can be corrected",
			},
		},
		"Chosen": {
			reason: "All first members are made for that very snapshot, whatever is found since",
			base:   fresh,
			args:   []change{restoring, choice(monday), found(with(monday, func(s *Snapshot) { s.Name = "db-tuesday" }))},
			want: Step{
				Action: Provision, Members: []string{"m-0", "m-1", "m-2"}, First: restoredOf3, Version: etcd36,
				Reason: Provisioning, Message: "creating the volumes of m-0, m-1, m-2",
			},
		},
		"ChosenAndForgotten": {
			reason: "Where the status is lost, the volumes say what was chosen",
			base:   fresh,
			args:   []change{restoring, onAll(restoredVolume), on(1, noVolume)},
			want: Step{
				Action: Provision, Members: []string{"m-1"}, First: restoredOf3, Version: etcd36,
				Reason: Provisioning, Message: "creating the volumes of m-1",
			},
		},
		"ChosenUnreadableSince": {
			reason: "The spec has come to ask for an etcd that cannot read it",
			base:   fresh,
			args:   []change{restoring, choice(with(monday, func(s *Snapshot) { s.Version = etcd37 })), onAll(restoredVolume)},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) was taken from etcd 3.7.3, and etcd 3.6.16 cannot read its data: set spec.version to 3.7 or newer, or choose an earlier snapshot",
			},
		},
		"Restore": {
			reason: "All first members are restored together",
			base:   fresh,
			args:   []change{restoring, choice(monday), onAll(restoredVolume)},
			want: Step{
				Action: Bootstrap, Members: []string{"m-0", "m-1", "m-2"}, First: restoredOf3, Version: etcd36, Reason: Bootstrapping,
				Message: "starting the first members m-0, m-1, m-2, restored from snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z)",
			},
		},
		"RestoreEarlier": {
			reason: "What an earlier EtcdCluster began goes on from its snapshot",
			base:   fresh,
			args:   []change{restoring, onAll(earlierVolume), onAll(func(i *Instance) { i.Volume.First.Snapshot = "5a db-sunday" })},
			want: Step{
				Action: Bootstrap, Members: []string{"m-0", "m-1", "m-2"}, First: First{Token: "old", Size: 3, Snapshot: "5a db-sunday"}, Version: etcd36,
				Reason: Bootstrapping, Message: "starting the first members m-0, m-1, m-2, restored from snapshot db-sunday",
			},
		},
		"RestoreOverEarlierData": {
			reason: "What an earlier EtcdCluster began empty cannot be restored over",
			base:   fresh,
			args:   []change{restoring, onAll(earlierVolume)},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "members of this cluster have been started without a snapshot, and spec.bootstrap.restore cannot be carried out over their data; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again, or leave spec.bootstrap out",
			},
		},
		"RestoreLeftOut": {
			reason: "Half a restore is not gone on with as an empty cluster",
			base:   fresh,
			args:   []change{onAll(restoredVolume)},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "the first members of this cluster are being restored from a snapshot, and spec.bootstrap.restore does not say where it is; revert it, or delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
		"Restoring": {
			reason: "It says what takes so long",
			base:   fresh,
			args:   []change{restoring, choice(monday), intended, onAll(restoredVolume), onAll(newPod), on(0, func(i *Instance) { i.Pod.Restoring = true })},
			want: Step{
				Action: Wait, Reason: Restoring,
				Message: "waiting for the first members to form a cluster, restored from snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z): m-0 is being restored; m-1 does not answer; m-2 does not answer",
			},
		},
		"FormedFromSnapshot": {
			reason: "That all have formed one cluster says from what, too",
			base:   formed3,
			args:   append(firstStart(), restoring, choice(monday), onAll(func(i *Instance) { i.Volume.First = restoredOf3 })),
			want: Step{
				Action: Record, Members: []string{"m-0", "m-1", "m-2"}, Reason: Formed,
				Message: "the cluster has formed with 3 members, restored from snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z)",
			},
		},
		"HealthyRestored": {
			reason: "A second apply does nothing",
			base:   formed3,
			args:   []change{restoring, choice(monday)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"HealthyNotRestored": {
			reason: "A cluster that has its own data is not restored over, and says so",
			base:   formed3,
			args:   []change{restoring},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members; spec.bootstrap.restore has no effect, because the cluster had its own data"},
		},
	})
}
