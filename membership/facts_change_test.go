package membership

// Clusters on the way to another version, other flags or other resources.

var (
	etcd35    = Version{3, 5, 35}
	storage36 = Version{3, 6, 0}
	storage37 = Version{3, 7, 0}
)

func to(v Version) change { return func(d *Desired, _ *Observed) { d.Version = v } }
func abandonedChange(d *Desired, _ *Observed) {
	d.GivenUp = "m-1: with etcd 3.7.3 it cannot pull the image"
}
func failing(i *Instance)              { i.Pod.Failing = true }
func changingStill(i *Instance)        { i.Pod.Changing = true }
func next(v Version) func(*Instance)   { return func(i *Instance) { i.Volume.Next = v } }
func stored(v Version) func(*Instance) { return func(i *Instance) { i.Endpoint.Storage = v } }

// runs a version, on its volume and by the name of its image too. From 3.6 on it tells whose data
// it has.
func runs(v Version) func(*Instance) {
	return func(i *Instance) {
		i.Pod.Version, i.Volume.Version, i.Endpoint.Version = v, v, v
		if i.Endpoint.Storage = (Version{}); v.Minor >= 6 {
			i.Endpoint.Storage = Version{3, v.Minor, 0}
		}
	}
}

// differs from what the spec asks for, by what it takes to change it and the parts of the spec that
// lead to it.
func differs(change Change, parts ...string) func(*Instance) {
	return func(i *Instance) { i.Pod.Change, i.Pod.Parts = change, parts }
}

func same(i *Instance) { differs(ChangeNone)(i) }

// upgrading is a cluster of three that runs one version and is to run another one, for which
// another image is all it takes.
func upgrading(from, target Version) func() (Desired, Observed) {
	return func() (Desired, Observed) {
		d, o := formed3()
		for _, change := range []change{onAll(runs(from)), to(target), onAll(differs(ChangeImage, "version"))} {
			change(&d, &o)
		}
		return d, o
	}
}

// changed to that version, and back.
func changedTo(v Version) func(*Instance) { return func(i *Instance) { runs(v)(i); same(i) } }

// broken is a member that was changed in place to that version, and does not come up with it.
func broken(v Version) func(*Instance) {
	return func(i *Instance) {
		stuck(i)
		same(i)
		i.Pod.Version, i.Pod.Changing, i.Pod.Failing = v, true, true
	}
}

// untried is a Pod that was made of parts of the spec with which its member has not served.
func untried(parts ...string) func(*Instance) {
	return func(i *Instance) { i.Pod.Untried = parts }
}

// wrongOptions is a member whose Pod was recreated with options with which etcd does not start.
func wrongOptions(i *Instance) {
	silent(i)
	same(i)
	untried("options")(i)
	i.Volume.Next, i.Pod.Version = i.Volume.Version, i.Volume.Version
	i.Pod.Problem, i.Pod.Failing = "exited with code 2: flag provided but not defined: -wrong", true
}

// unplaced is a member whose Pod was recreated and that no node fits.
func unplaced(i *Instance) {
	wrongOptions(i)
	untried("scheduling")(i)
	i.Pod.Problem, i.Pod.Failing, i.Pod.NeverRan = "cannot be scheduled: 0/3 nodes are available", false, true
}

// unstarted is one whose kubelet has long started no etcd.
func unstarted(i *Instance) {
	i.Pod.Problem, i.Pod.Unstarted = "has not started its container", true
}

// downgradingTo is what members tell of a downgrade that etcd was told of.
func downgradingTo(v Version) change {
	return onAll(func(i *Instance) {
		if i.Endpoint.Answered() {
			i.Endpoint.Downgrade = v
		}
	})
}

// replaying is a member whose Pod came from 3.5 to 3.6.
func replaying(i *Instance)       { i.Volume.Replays = ReplaysAny }
func replayingRisen(i *Instance)  { i.Volume.Replays = ReplaysRisen }
func replayingNoMore(i *Instance) { i.Volume.Replays = ReplaysPast }

// two voters are a cluster of two.
func two(d *Desired, o *Observed) {
	d.Size, o.Instances, o.Members = 2, o.Instances[:2], o.Members[:2]
}

func only(d *Desired, o *Observed) {
	d.Size, o.Instances, o.Members = 1, o.Instances[:1], o.Members[:1]
}
