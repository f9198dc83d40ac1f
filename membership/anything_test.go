package membership

import (
	"math/rand/v2"
	"slices"
)

// anything is facts that the seed stands for: those of a cluster that has been resized, those of
// one that is being changed or moves to other volumes, or whatever can be written down.
func anything(seed []byte) (Desired, Observed) {
	var key [32]byte
	copy(key[:], seed)
	r := rand.New(rand.NewChaCha8(key))
	kind := []func(*rand.Rand) (Desired, Observed){fromSnapshot, resized, movedAmidst, changedAmidst}[r.IntN(4)]
	d, o := kind(r)
	spaced(r, &d, &o)
	if d.BackUp = r.IntN(2) == 0; d.BackUp {
		backup(BackupState(r.IntN(int(BackupForeign)+1)), "stored")(&d, &o)
	}
	for n := range o.Instances {
		if i := &o.Instances[n]; i.Pod.Exists() && r.IntN(16) == 0 {
			i.Pod.Expired = "the authority expired"
		}
	}
	return d, o
}

// spaced tells of sizes and quotas, mostly of a database that has room.
func spaced(r *rand.Rand, d *Desired, o *Observed) {
	d.Request = []int64{0, 0, 40 * mib}[r.IntN(3)]
	common := []int64{10, 10, 64}[r.IntN(3)]
	for n := range o.Instances {
		i := &o.Instances[n]
		size := []int64{common, common, common, common, 0, 10, 64}[r.IntN(7)]
		if i.Endpoint.Answered() && i.Endpoint.DBSize == 0 {
			i.Endpoint.DBSize, i.Endpoint.InUse = size*mib, size*mib
		}
		if i.Pod.Exists() {
			i.Pod.Quota = []int64{64, 64, 64, 64, 128, 0}[r.IntN(6)] * mib
			i.Pod.QuotaToBe = []int64{128, 128, 64, 32, 512}[r.IntN(5)] * mib
		}
		i.Volume.Capacity = []int64{256, 256, 0}[r.IntN(3)] * mib
	}
}

// fromSnapshot are incoherent facts of a cluster that may be to start from a stored snapshot.
func fromSnapshot(r *rand.Rand) (Desired, Observed) {
	d, o := incoherent(r)
	snapshot := func() Snapshot { return []Snapshot{{}, {}, monday}[r.IntN(3)] }
	if d.Restore = r.IntN(2) == 0; d.Restore {
		o.Snapshot = snapshot()
		o.Search = Search{Begun: r.IntN(2) == 0, Found: snapshot(), Problem: []string{"", "no bucket"}[r.IntN(2)]}
	}
	for n := range o.Instances {
		if first := &o.Instances[n].Volume.First; first.Size > 0 && r.IntN(4) == 0 {
			first.Snapshot = snapshot().ID()
		}
	}
	return d, o
}

// incoherent facts have few different values, which makes it likely that some meet.
func incoherent(r *rand.Rand) (Desired, Observed) {
	some := func() bool { return r.IntN(4) == 0 }
	id := func() ID { return ID(r.IntN(3)) }
	token := func() string { return []string{"new", "new", "old", ""}[r.IntN(4)] }
	version := func() Version { return []Version{etcd36, etcd36, etcd37, {}, etcd35}[r.IntN(5)] }
	rarely := func(v Version) Version {
		if r.IntN(8) > 0 {
			return Version{}
		}
		return v
	}
	first := func() First { return First{Token: token(), Size: r.IntN(5)} }

	d := Desired{
		Size: r.IntN(5), Version: version(), Suspended: r.IntN(16) == 0, Deleting: r.IntN(16) == 0,
		Ephemeral: some(), Token: "new", Retain: some(), GivenUp: []string{"", "", "", "it did not work"}[r.IntN(4)],
	}
	o := Observed{Reach: Reach(r.IntN(3)), Remembered: some(), Fresh: []string{name(8), name(9)}[:r.IntN(3)]}
	if some() {
		o.ClusterID = id()
	}
	if some() {
		o.Bootstrapping = map[string]string{}
	}
	for n := range r.IntN(5) {
		i := Instance{Name: name(n), Ordinal: n, ID: ID(0xa0+n) * id()}
		if !some() {
			i.Volume = Volume{
				UID: uid(uint8(r.IntN(3))), Terminating: some(), Foreign: r.IntN(16) == 0,
				ClusterID: id(), MemberID: ID(0xa0+n) * id(), First: first(), Version: version(),
				Joins: ID(0xa0+n) * id(), Retired: r.IntN(8) == 0,
			}
			i.Volume.Spare = some() && !i.Volume.Recorded()
			i.Volume.Replaced = r.IntN(8) == 0 && i.Volume.Recorded()
			i.Volume.Next = rarely(version())
			i.Volume.Small, i.Volume.Growing = r.IntN(8) == 0, r.IntN(8) == 0
			i.Volume.Stuck = []string{"", "has 1Gi of 2Gi"}[r.IntN(2)]
			i.Volume.Unfit = []string{"", "", "", "is of another class"}[r.IntN(4)]
			i.Volume.Undecided = i.Volume.Unfit == "" && r.IntN(8) == 0
			i.Volume.Replays = []string{"", ReplaysAny, ReplaysRisen, ReplaysPast}[r.IntN(4)]
		}
		if !some() {
			i.Pod = Pod{
				UID: "pod", Terminating: some(), Foreign: r.IntN(16) == 0, Problem: []string{"", "cannot run"}[r.IntN(2)],
				NeverRan: some(), Outdated: some(), Overdue: some(), Ended: some(),
				Damaged: some(), Forsaken: some(), BackOff: some(), Young: some(), Empty: some(), EmptyLong: some(), Unfenced: some(),
				Ready: some(), ReadyLong: some(), UnreadyLong: some(), Idle: some(), IdleLong: some(),
				Away: some(), Resizing: some(), Deferred: []string{"", "not enough cpu"}[r.IntN(2)], Unproved: some(), Crashed: some(), Starved: some(), Provisions: some(), Provisioned: some(),
				Version: rarely(version()), Changing: r.IntN(8) == 0, Failing: some(),
				Change: []Change{ChangeNone, ChangeNone, ChangeResources, ChangeImage, ChangePod}[r.IntN(5)], Undecided: r.IntN(8) == 0,
			}
			i.Pod.AwayLong = i.Pod.Away && i.Pod.Forsaken
			if i.Pod.Change != ChangeNone {
				i.Pod.Parts = []string{"options", "version"}
			}
			if r.IntN(8) == 0 {
				i.Pod.Untried = []string{"options"}
			}
		}
		if !some() {
			i.Endpoint = Endpoint{
				ClusterID: id(), MemberID: ID(0xa0 + n), Leader: id(), Version: version(),
				Storage: version(), Downgrade: rarely(version()), RaftIndex: uint64(r.IntN(2)) * 6000, Applied: uint64(r.IntN(2)) * 6000,
			}
			if r.IntN(8) == 0 {
				i.Endpoint.Alarms = []Alarm{{AlarmCorrupt, ID(0xa0+r.IntN(5)) * id()}, {AlarmNoSpace, i.Endpoint.MemberID}}[:1+r.IntN(2)]
			}
		}
		if i.Endpoint.Answered() && !some() {
			i.Hash = Hash{Revision: 7, Compacted: int64(r.IntN(8) / 7), Sum: uint32(r.IntN(4) / 3)}
		}
		if o.Bootstrapping != nil && !some() {
			o.Bootstrapping[i.Name] = uid(uint8(r.IntN(3)))
		}
		if o.Reach == ReachQuorum && !some() {
			o.Members = append(o.Members, Member{ID: ID(0xa0 + n), Name: i.Name, PeerURLs: []string{"http://" + i.Name}, Learner: some()})
		}
		o.Instances = append(o.Instances, i)
	}
	if r.IntN(8) == 0 {
		o.Members = append(o.Members, Member{ID: 0xff, Name: "stranger"})
	}
	return d, o
}

// resized facts are those of a cluster that has formed, with members that came and went, after
// which a few things have gone wrong, so that all rules of a cluster that serves have their turn.
func resized(r *rand.Rand) (Desired, Observed) {
	few := func(n int) bool { return r.IntN(n) == 0 }
	base := []func() (Desired, Observed){formed1, formed3, formed5}[r.IntN(3)]
	d, o := base()
	add := func(often int, kind func(int) change) {
		if few(often) {
			kind(len(o.Instances))(&d, &o)
		}
	}
	add(4, voter)
	add(8, leftover)
	add(4, learner)
	add(6, listed)
	add(2, spare)
	add(4, spare)
	next := len(o.Instances)
	leader(r.IntN(next))(&d, &o)
	d.Size = max(0, len(o.voters())+[]int{-2, -1, 0, 0, 1, 1, 2}[r.IntN(7)])
	d.Ephemeral, d.Retain = few(8), few(4)
	wrong := []func(*Instance){
		restored, noPod, gone, noVolume, silent, leaderless, unrecorded, going, stopping, outdated, stuck, overdue, forsaken, unfenced, preparingStill, killed, emptied,
		func(i *Instance) { i.Volume.Retired = true }, func(i *Instance) { i.Endpoint.RaftIndex += 5 }, func(i *Instance) { i.Endpoint.Version = etcd37 },
	}
	for range r.IntN(4) {
		wrong[r.IntN(len(wrong))](&o.Instances[r.IntN(next)])
	}
	for range r.IntN(8) / 6 {
		removed(r.IntN(next))(&d, &o)
	}
	if few(8) {
		alarm(r.IntN(next), []AlarmKind{AlarmCorrupt, AlarmCorrupt, AlarmNoSpace}[r.IntN(3)], ID(0xa0+r.IntN(next+1)))(&d, &o)
	}
	for range r.IntN(6) / 3 {
		if n := r.IntN(next); o.Instances[n].Hash != (Hash{}) {
			hash(n, []uint32{0xbad, 0xbad, 0xbae}[r.IntN(3)])(&d, &o)
		}
	}
	if few(12) {
		uncompared(r.IntN(next))(&d, &o)
	}
	if few(10) {
		noQuorum(&d, &o)
	}
	r.Shuffle(len(o.Members), func(a, b int) { o.Members[a], o.Members[b] = o.Members[b], o.Members[a] })
	o.Fresh = slices.Clone(o.Fresh)[:min(r.IntN(4), len(o.Fresh))]
	return d, o
}

// amidst a change: some members have come to what the spec asks for, some have not, and one may be
// on its way.
func amidst(r *rand.Rand, d *Desired, o *Observed) {
	few := func(n int) bool { return r.IntN(n) == 0 }
	versions := []Version{{3, 5, 20}, etcd35, {3, 6, 4}, etcd36, etcd37}
	from, target := versions[r.IntN(len(versions))], versions[r.IntN(len(versions))]
	d.Version = target
	began := few(2)
	kind := []Change{ChangeImage, ChangePod, ChangeResources}[r.IntN(3)]
	for n := range o.Instances {
		i := &o.Instances[n]
		if !i.Endpoint.Answered() {
			continue
		}
		runs(from)(i)
		switch {
		case began && few(3):
			runs(target)(i)
		case from != target:
			if kind == ChangeResources {
				kind = ChangeImage
			}
			differs(kind, "version")(i)
		case few(2):
			differs(kind, "resources")(i)
		}
		if few(4) {
			replaying(i)
		}
	}
	if few(3) {
		onAll(stored(Version{3, target.Minor, 0}))(d, o)
	}
	if few(3) {
		downgradingTo(Version{3, min(from.Minor, target.Minor), 0})(d, o)
	}
	one := &o.Instances[r.IntN(len(o.Instances))]
	on := []func(*Instance){broken(target), changingStill, next(target), wrongOptions, func(i *Instance) { i.Pod.Version = etcd37 }, same, same, same}
	on[r.IntN(len(on))](one)
}

// changedAmidst facts are those of a cluster that is whole but for what is being changed, and where
// little else is wrong.
func changedAmidst(r *rand.Rand) (Desired, Observed) {
	few := func(n int) bool { return r.IntN(n) == 0 }
	base := []func() (Desired, Observed){formed1, formed3, formed3, formed5}[r.IntN(4)]
	d, o := base()
	if few(4) {
		voter(len(o.Instances))(&d, &o)
	}
	leader(r.IntN(len(o.Instances)))(&d, &o)
	d.Size, d.Ephemeral = len(o.voters()), few(8)
	amidst(r, &d, &o)
	wrong := []func(*Instance){silent, leaderless, gone, going, stopping, stuck, forsaken, outdated, overdue}
	if few(6) {
		wrong[r.IntN(len(wrong))](&o.Instances[r.IntN(len(o.Instances))])
	}
	if few(12) {
		d.Size++
	}
	if few(12) {
		learner(len(o.Instances))(&d, &o)
	}
	if few(12) {
		alarm(0, AlarmNoSpace, 0xa0)(&d, &o)
	}
	if few(8) {
		abandonedChange(&d, &o)
	}
	return d, o
}

// movedAmidst facts are those of a cluster that is whole, some of whose members are to move to
// other volumes.
func movedAmidst(r *rand.Rand) (Desired, Observed) {
	few := func(n int) bool { return r.IntN(n) == 0 }
	base := []func() (Desired, Observed){formed1, formed3, formed3, formed5}[r.IntN(4)]
	d, o := base()
	leader(r.IntN(len(o.Instances)))(&d, &o)
	for n := range o.Instances {
		if !few(3) {
			unfit(&o.Instances[n])
		}
	}
	if kind := []func(int) change{spare, spare, listed, learner, voter, voter, nil}[r.IntN(7)]; kind != nil {
		kind(len(o.Instances))(&d, &o)
	}
	wrong := []func(*Instance){silent, leaderless, gone, going, stopping, forsaken, outdated, small, unfit, unsure, preparingStill, preparingStill}
	if few(2) {
		wrong[r.IntN(len(wrong))](&o.Instances[len(o.Instances)-1-r.IntN(min(2, len(o.Instances)))])
	}
	if few(8) {
		room(1)(&d, &o)
		o.Instances[0].Endpoint.DBSize = 2
	}
	if few(8) {
		d.Size += 1 - 2*r.IntN(2)
	}
	return d, o
}

// leftover is a member that was removed.
func leftover(n int) change {
	return func(d *Desired, o *Observed) {
		voter(n)(d, o)
		removed(len(o.Instances)-1)(d, o)
	}
}
