package membership

import "fmt"

// inPlaceOf3 is the first start of three members that a restore in place begins.
var inPlaceOf3 = First{Token: "back-uid", Size: 3, Base: 3, Snapshot: "5a db-monday"}

// replacing is a cluster of three whose restore in place has begun a moment ago: all that is there
// is of before.
func replacing() (Desired, Observed) {
	d, o := formed3()
	d.Token, d.Base, d.Restore, d.Namespace = "back-uid", 3, true, "ns"
	o.Former = o.Instances
	for n := range o.Former {
		silent(&o.Former[n])
		o.Former[n].ID = 0
	}
	o.Instances = nil
	for n := 3; n < 6; n++ {
		o.Instances = append(o.Instances, Instance{Name: name(n), Ordinal: n})
	}
	o.Fresh = []string{"m-6", "m-7", "m-8"}
	o.ClusterID, o.Reach, o.Members, o.Remembered = 0, ReachNone, nil, false
	o.InPlace = InPlace{Name: "back", UID: "back-uid", Begun: true}
	o.Snapshot = monday
	return d, o
}

// aside3 is the same once the former members are stopped, and their volumes set aside.
func aside3() (Desired, Observed) {
	d, o := replacing()
	onFormer(stoppedAside)(&d, &o)
	return d, o
}

// reverting3 is a restore in place that is taken back while its first members run.
func reverting3() (Desired, Observed) {
	d, o := aside3()
	o.InPlace.Begun, o.InPlace.Reverted = false, true
	onAll(func(i *Instance) { inPlaceVolume(i); newPod(i) })(&d, &o)
	return d, o
}

// restoredInPlace is a healthy cluster of three after that; its former volumes are there still.
func restoredInPlace() (Desired, Observed) {
	d, o := formed3()
	_, before := aside3()
	o.Former = before.Former
	d.Base = 3
	for n := range o.Instances {
		i := &o.Instances[n]
		i.Name, i.Ordinal, i.Volume.First = name(n+3), n+3, inPlaceOf3
		i.ID = ID(0xb0 + n)
		i.Volume.ClusterID, i.Volume.MemberID = 0xc2, i.ID
		i.Endpoint.ClusterID, i.Endpoint.MemberID, i.Endpoint.Leader = 0xc2, i.ID, 0xb0
		o.Members[n] = Member{ID: i.ID, Name: i.Name, PeerURLs: []string{"http://" + i.Name + ".m.ns.svc:2380"}}
	}
	o.ClusterID, o.Fresh = 0xc2, []string{"m-6", "m-7", "m-8"}
	return d, o
}

func onFormer(change func(*Instance)) change {
	return func(_ *Desired, o *Observed) {
		for n := range o.Former {
			change(&o.Former[n])
		}
	}
}

func former(n int, change func(*Instance)) change {
	return func(_ *Desired, o *Observed) { change(&o.Former[n]) }
}

func stoppedAside(i *Instance) { noPod(i); i.Volume.Aside = "back-uid" }
func asideEarlier(i *Instance) { i.Volume.Aside = "earlier-uid" }
func unmarked(i *Instance)     { i.Volume.Aside = "" }
func inPlaceVolume(i *Instance) {
	i.Volume = Volume{UID: fmt.Sprintf("volume-%d", i.Ordinal), First: inPlaceOf3, Version: etcd36}
}

// asks is an EtcdRestore that is asked for, of a cluster that serves.
func asks(changes ...func(*InPlace)) change {
	return func(d *Desired, o *Observed) {
		d.Restore, d.Room, d.Volume = true, 512<<20, 1<<30
		o.InPlace = InPlace{Name: "back", UID: "back-uid"}
		for _, change := range changes {
			change(&o.InPlace)
		}
	}
}

func anyway(p *InPlace) { p.Anyway = true }
func lately(p *InPlace) { p.Lately = true }
func held(p *InPlace)   { p.Suspended = true }
func refusedByServer(p *InPlace) {
	p.Problem = "the API server refuses what the new members need: exceeded quota"
}
