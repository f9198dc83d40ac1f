package membership

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlanIgnoresNames shows what the exploration builds on when it takes states that differ only in who is who for one:
// members that change places change places in the step, and nothing else changes.
func TestPlanIgnoresNames(t *testing.T) {
	t.Parallel()
	b := bound{sizes: []uint8{3}, first: 3, states: 200_000, safety: true, budget: budget{losses: 1}}
	p := planner{rules: rules}
	x, bad := explore(b, p)
	if bad != nil {
		t.Fatal(bad)
	}
	for l, want := range x.decided {
		for _, places := range [][]int{{1, 0, 2}, {1, 2, 0}} {
			moved := l
			for to, from := range places {
				moved.members[to], moved.cluster.status[to] = l.members[from], l.cluster.status[from]
			}
			got := p.decide(moved)
			for to, from := range places {
				if got.members[to] != want.members[from] || got.ids[to] != want.ids[from] {
					t.Fatalf("%v becomes %v when members change places as in %v", want.step, got.step, places)
				}
			}
			if got.step.Action != want.step.Action || got.step.Reason != want.step.Reason || got.step.First != want.step.First || got.id != want.id {
				t.Fatalf("%v becomes %v when members change places as in %v", want.step, got.step, places)
			}
		}
	}
}

// FuzzPlan: whatever the facts, Plan decides, decides the same again, does not care for the order of etcd's list, changes
// nothing that it was given, and keeps the promises that need no history.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(512) {
		f.Add(binary.LittleEndian.AppendUint64(nil, seed))
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		d, o := anything(seed)
		_, before := anything(seed)
		step := Plan(d, o)
		if diff := cmp.Diff(before, o); diff != "" {
			t.Errorf("the facts have changed: -before, +after:\n%s", diff)
		}
		slices.Reverse(o.Members)
		if diff := cmp.Diff(step, Plan(d, o)); diff != "" {
			t.Errorf("the order of etcd's list matters: -one, +other:\n%s", diff)
		}
		slices.Reverse(o.Members)
		if err := promises(d, o, step); err != nil {
			t.Errorf("%v breaks a promise: %v\n%+v\n%+v", step, err, d, o)
		}
	})
}

func promises(d Desired, o Observed, s Step) error {
	switch {
	case s.Reason == "" || s.Message == "":
		return fmt.Errorf("it does not say why")
	case s.Acts() && (d.Suspended || d.Deleting):
		return fmt.Errorf("it acts on what is suspended or being deleted")
	case s.Acts() && len(s.Members) == 0:
		return fmt.Errorf("it acts on nobody")
	case (s.Action == Bootstrap || s.Action == Provision) && (o.Formed() || s.First.Size == 0):
		return fmt.Errorf("a first start of what has formed, or of nobody")
	case (s.Action == Bootstrap || s.Action == Start) && s.Version == (Version{}) && d.Version != (Version{}):
		return fmt.Errorf("it does not say which version")
	}
	for _, name := range s.Members {
		i, known := o.Instance(name)
		var err error
		switch {
		case !known:
			err = fmt.Errorf("nobody is called so")
		case s.Acts() && (i.Pod.Foreign || i.Volume.Foreign):
			err = fmt.Errorf("it is somebody else's")
		case s.Action == Start && (i.Pod.Exists() || !i.Volume.Stays() || !o.Formed()):
			err = fmt.Errorf("it is started twice, without a volume, or before the cluster has formed")
		case s.Action == Bootstrap && i.Pod.Exists():
			err = fmt.Errorf("it is started twice")
		case s.Action == Provision && i.Volume.Recorded() && i.Volume.Stays():
			err = fmt.Errorf("its volume has data")
		case s.Action == Record && (!i.Endpoint.Answered() || !i.Volume.Exists()):
			err = fmt.Errorf("nothing is proved")
		case s.Action == Stop && (!i.Pod.Exists() || i.Pod.Terminating || d.Size > 0 && i.Endpoint.Answered()):
			err = fmt.Errorf("it is stopped twice, or serves")
		}
		if err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
	}
	return nil
}

// anything is facts that the seed stands for. Few different values make it likely that some meet.
func anything(seed []byte) (Desired, Observed) {
	var key [32]byte
	copy(key[:], seed)
	r := rand.New(rand.NewChaCha8(key))
	some := func() bool { return r.IntN(4) == 0 }
	id := func() ID { return ID(r.IntN(3)) }
	token := func() string { return []string{"new", "new", "old", ""}[r.IntN(4)] }
	version := func() Version { return []Version{etcd36, etcd36, etcd37, {}}[r.IntN(4)] }
	first := func() First { return First{Token: token(), Size: r.IntN(5)} }

	d := Desired{
		Size: r.IntN(5), Version: version(), Suspended: r.IntN(16) == 0, Deleting: r.IntN(16) == 0,
		Ephemeral: some(), Token: "new",
	}
	o := Observed{Reach: Reach(r.IntN(3))}
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
			}
		}
		if !some() {
			i.Pod = Pod{
				UID: "pod", Terminating: some(), Foreign: r.IntN(16) == 0, Problem: []string{"", "cannot run"}[r.IntN(2)],
				NeverRan: some(), Outdated: some(), Overdue: some(), Ended: some(),
			}
		}
		if !some() {
			i.Endpoint = Endpoint{ClusterID: id(), MemberID: ID(0xa0 + n), Leader: id(), Version: version()}
			if r.IntN(8) == 0 {
				i.Endpoint.Alarms = []Alarm{AlarmCorrupt, AlarmNoSpace}[:1+r.IntN(2)]
			}
		}
		if o.Bootstrapping != nil && !some() {
			o.Bootstrapping[i.Name] = uid(uint8(r.IntN(3)))
		}
		if o.Reach == ReachQuorum && !some() {
			o.Members = append(o.Members, Member{ID: ID(0xa0 + n), Name: i.Name, PeerURLs: []string{"http://" + i.Name}})
		}
		o.Instances = append(o.Instances, i)
	}
	if r.IntN(8) == 0 {
		o.Members = append(o.Members, Member{ID: 0xff, Name: "stranger"})
	}
	if some() {
		o.Pending = []string{"options", "storage.size"}
	}
	return d, o
}
