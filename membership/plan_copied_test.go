package membership

import "testing"

// inPlaceOf1 is the first start of the one member that a restore in place from the data of m-1
// begins.
var inPlaceOf1 = First{Token: "back-uid", Size: 1, Base: 3, Snapshot: "volume-1 member/m-1"}

// copying is a cluster of three whose first new member is to have the data of m-1, and has its
// volume.
func copying() (Desired, Observed) {
	d, o := aside3()
	o.Snapshot = DataOf("m-1", "volume-1")
	o.Instances = o.Instances[:1]
	on(0, func(i *Instance) { i.Volume = Volume{UID: "volume-3", First: inPlaceOf1, Version: etcd36} })(&d, &o)
	return d, o
}

func copies(c Copy) change { return func(_ *Desired, o *Observed) { o.Copy = c } }

func TestPlanCopied(t *testing.T) {
	const started = "starting the first members m-3, restored from the data of m-1"
	intended := func(_ *Desired, o *Observed) { o.Bootstrapping = map[string]string{"m-3": "volume-3"} }
	bootstrap := Step{Action: Bootstrap, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: Bootstrapping, Message: started}
	testPlan(t, map[string]planCase{
		"Replace": {
			reason: "What a member has is restored as a snapshot is",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, gone), on(2, gone), asks(), found(DataOf("m-1", "volume-1"))},
			want: Step{
				Action: Replace, Snapshot: DataOf("m-1", "volume-1"), Reason: Restoring,
				Message: "restoring the data of m-1 in place, as EtcdRestore back asks for: all members are stopped, and their volumes set aside",
			},
		},
		"NoRoom": {
			reason: "The copy, what is made of it, and two logs need room, which is known before any member is stopped",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, gone), on(2, gone), asks(), found(with(DataOf("m-1", "volume-1"), func(s *Snapshot) { s.Size = 161 << 20 })), volumesOf(512 << 20)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-0", "m-2"},
				Message: "the data of m-0, m-2 is gone: of 3 members 1 has its data, and a quorum needs 2. No member is started empty under its old name. " +
					"EtcdRestore back is to restore the cluster: its conditions say what it waits for. To do something else, delete it first",
			},
		},
		"JustRoom": {
			reason: "What the log of the member takes beyond its first file is not known",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, gone), on(2, gone), asks(), found(with(DataOf("m-1", "volume-1"), func(s *Snapshot) { s.Size = 160 << 20 })), volumesOf(512 << 20)},
			want: Step{
				Action: Replace, Snapshot: with(DataOf("m-1", "volume-1"), func(s *Snapshot) { s.Size = 160 << 20 }), Reason: Restoring,
				Message: "restoring the data of m-1 in place, as EtcdRestore back asks for: all members are stopped, and their volumes set aside",
			},
		},
		"ReplaceNot": {
			reason: "Where there is none to take, the cluster is left as it is",
			base:   formed3,
			args:   []change{asks(anyway, func(p *InPlace) { p.Problem = "no member is left with a volume that has its data" })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"TooNew": {
			reason: "An etcd that cannot read the data is told of before anything is made",
			base:   copying,
			args:   []change{on(0, noVolume), func(_ *Desired, o *Observed) { o.Snapshot.Version = etcd37 }},
			want: Step{
				Action: Stall, Reason: RestoreFailed,
				Message: "the data of m-1 is of etcd " + etcd37.String() + ", and etcd " + etcd36.String() + " cannot read it: set spec.version to 3.7 or newer",
			},
		},
		"Provision": {
			reason: "One member gets a volume, whatever the spec's size is: there is one copy",
			base:   copying,
			args:   []change{on(0, noVolume)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: Provisioning, Message: "creating the volumes of m-3"},
		},
		"CopyData": {
			reason: "It has its data before it has a Pod",
			base:   copying,
			want:   Step{Action: CopyData, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: Restoring, Message: "copying the data of m-1 to the volume of m-3"},
		},
		"Copying": {
			reason: "That takes its time",
			base:   copying,
			args:   []change{copies(Copy{Begun: true})},
			want:   Step{Action: Wait, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: Restoring, Message: "copying the data of m-1 to the volume of m-3"},
		},
		"Failed": {
			reason: "Why it is not done, and how to give it up",
			base:   copying,
			args:   []change{copies(Copy{Begun: true, Problem: "the disk is full"})},
			want: Step{
				Action: Stall, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: RestoreFailed,
				Message: "copying the data of m-1 to the volume of m-3: the disk is full. Its volume is as it was, and the copy is tried again; if it cannot succeed, delete EtcdRestore back: the former members come back with their data",
			},
		},
		"Bootstrap": {
			reason: "It starts on the data that was copied",
			base:   copying,
			args:   []change{copies(Copy{Begun: true, Done: true})},
			want:   bootstrap,
		},
		"BootstrapAlone": {
			reason: "It starts alone also where all names of the spec are known",
			base:   copying,
			args: []change{copies(Copy{Begun: true, Done: true}), func(_ *Desired, o *Observed) {
				o.Instances = append(o.Instances, Instance{Name: "m-4", Ordinal: 4}, Instance{Name: "m-5", Ordinal: 5})
			}},
			want: bootstrap,
		},
		"BootstrapAgain": {
			reason: "A Pod that has gone is made again, on the same data",
			base:   copying,
			args:   []change{copies(Copy{Begun: true, Done: true}), intended},
			want:   bootstrap,
		},
		"CopyAgain": {
			reason: "Where nothing tells that it was copied, it is asked for again: what is done is not done twice",
			base:   copying,
			args:   []change{intended},
			want:   Step{Action: CopyData, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: Restoring, Message: "copying the data of m-1 to the volume of m-3"},
		},
		"Forming": {
			reason: "That it is one is no first start of another size than the spec has",
			base:   copying,
			args:   []change{intended, on(0, newPod)},
			want:   Step{Action: Wait, Reason: Restoring, Message: "waiting for the first members to form a cluster, restored from the data of m-1: m-3 does not answer"},
		},
		"Withdrawn": {
			reason: "Nothing is copied for an EtcdRestore that was deleted",
			base:   copying,
			args:   []change{func(_ *Desired, o *Observed) { o.InPlace.Withdrawn = true }},
			want:   Step{Action: Wait, Reason: Reverting, Message: "EtcdRestore back was deleted: the former members come back"},
		},
		"Interrupted": {
			reason: "A status that was lost does not tell for which restore it was to be copied",
			base:   copying,
			args:   []change{func(d *Desired, o *Observed) { d.Token, d.Base, o.InPlace, o.Former = "again", 0, InPlace{}, nil }},
			want: Step{
				Action: Stall, Members: []string{"m-3"}, First: inPlaceOf1, Version: etcd36, Reason: DataLost,
				Message: "m-3 was to start from the data of m-1, and nothing tells any more of the restore in place for which that was to be copied: delete the EtcdCluster and its PersistentVolumeClaims, and apply it again",
			},
		},
	})
}

func volumesOf(bytes int64) change { return func(d *Desired, _ *Observed) { d.Volume = bytes } }
