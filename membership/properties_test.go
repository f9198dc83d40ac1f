package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlanIgnoresNames shows what the exploration builds on when it takes states that differ only
// in which member is which for one: members that change places change places in the step, and
// nothing else changes.
func TestPlanIgnoresNames(t *testing.T) {
	t.Parallel()
	b := bound{sizes: []uint8{3}, first: 3, states: 200_000, safety: true, budget: budget{losses: 1}}
	p := planner{phases: Phases}
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

// FuzzPlan: whatever the facts, Plan decides, decides the same again, does not care for the order
// of etcd's list, changes nothing that it was given, and keeps the promises that need no history.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seedOf(seed))
	}
	f.Fuzz(func(t *testing.T, seed []byte) { checkPlan(t, seed) })
}

func seedOf(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

func checkPlan(t *testing.T, seed []byte) Step {
	t.Helper()
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
	return step
}

// TestAnything is the same for many more facts, and shows that they reach every action, so that its
// promises are put to the test.
func TestAnything(t *testing.T) {
	t.Parallel()
	want := []string{
		"AddLearner ScalingUp", "Bootstrap Bootstrapping", "Disarm CorruptMember", "Disarm Alarm", "Discard Retiring", "Join Joining", "MoveLeader ScalingDown",
		"None Healthy", "Promote Joining", "Provision Provisioning", "Provision ScalingUp", "Record Recording",
		"Remove CorruptMember", "Remove MemberFailed", "Remove MemberLost", "Remove ScalingDown", "Stall Alarm", "Stall DataLost",
		"Start Starting", "Stop Hibernating", "Stop Replacing", "Stop BackOff", "Stop Retiring", "Wait Joining", "Wait MemberDown", "Wait QuorumLost", "Wait ScalingUp",
		"Update Changing", "PutBack ChangeFailed", "Downgrade Downgrading", "CancelDowngrade Downgrading", "Wait Changing", "Wait Downgrading",
		"Provision Moving", "AddLearner Moving", "Remove Moving", "MoveLeader Moving", "Wait Moving", "Stall VolumeTooSmall", "Stall QuotaTooSmall",
		"Find Restoring", "Choose Restoring", "Wait Restoring", "Stall RestoreFailed",
		"Stall VolumeReplaced", "Stop VolumeReplaced",
		"Stall ChangeFailed", "Stall VersionNotAllowed", "Stall VersionMismatch", "Stall ChangeNotSupported",
		"BackUp BackingUp", "Wait BackingUp", "Stall BackupFailed",
		"MoveLeader CorruptMember", "Stall DataDiffers", "Wait DataDiffers", "Wait Alarm",
	}
	got := map[string]int{}
	for n := range uint64(8192) {
		s := checkPlan(t, seedOf(n))
		got[string(s.Action)+" "+string(s.Reason)]++
	}
	for _, what := range want {
		if got[what] == 0 {
			t.Errorf("%s never comes: %v", what, got)
		}
	}
}

// promises that need no history: what a step never does, by whichever rule and whatever for.
func promises(d Desired, o Observed, s Step) error {
	has := slices.Contains[[]Action]
	switch {
	case s.Reason == "" || s.Message == "":
		return errors.New("it does not say why")
	case s.Acts() && (d.Suspended || d.Deleting):
		return errors.New("it acts on what is suspended or being deleted")
	case s.Acts() && (len(s.Members) == 0) != has([]Action{Disarm, Downgrade, CancelDowngrade, Find, Choose, BackUp}, s.Action):
		return errors.New("it acts on no member")
	case s.ChangesMembership() && (len(s.Members) != 1 || o.Reach != ReachQuorum):
		return errors.New("it changes the membership of several, or without a linearizable list")
	case s.Action != Disarm && has([]Action{Join, Promote, Remove, MoveLeader}, s.Action) != (s.ID != 0):
		return errors.New("it does not say which member of etcd's, or says so where it needs none")
	case has([]Action{Update, PutBack}, s.Action) && len(s.Members) != 1:
		return errors.New("it changes several")
	case has([]Action{Bootstrap, Start, Join, Provision, Update, Downgrade}, s.Action) && s.Version == (Version{}) && d.Version != (Version{}):
		return errors.New("it does not say which version")
	case s.Action == Bootstrap && (o.Formed() || s.First.Size == 0):
		return errors.New("a first start of what has formed, or of no member")
	case s.Action == Provision && o.Formed() != (s.First == First{}):
		return errors.New("members to come of what has not formed, or first members of what has")
	case has([]Action{Find, Choose}, s.Action) && (o.Formed() || !d.Restore || o.Snapshot != Snapshot{}):
		return errors.New("a snapshot is looked for, or chosen, by what has formed, has one, or needs none")
	case s.Action == Choose && (s.Snapshot != o.Search.Found || s.Snapshot == Snapshot{}):
		return errors.New("it chooses what was not found")
	case has([]Action{Provision, Bootstrap}, s.Action) && !o.Formed() && d.Restore && s.First.Snapshot == "":
		return errors.New("a cluster that is to start from a snapshot starts empty")
	case s.Action == AddLearner && slices.ContainsFunc(o.Members, func(m Member) bool { return m.Learner }):
		return errors.New("there is a learner already")
	}
	if err := errors.Join(promisesChange(d, o, s), promisesMove(d, o, s), promisesHash(o, s), promisesSpace(d, o, s), promisesBackup(d, o, s), promisesPhase(o, s)); err != nil {
		return err
	}
	for _, name := range s.Members {
		if err := promisesMember(d, o, s, name); err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
	}
	return nil
}

func promisesMember(d Desired, o Observed, s Step, name string) error {
	n := slices.IndexFunc(o.Instances, func(i Instance) bool { return i.Name == name })
	if n < 0 {
		if slices.Contains(o.Fresh, name) && (s.Action == Provision && s.First == First{} || s.Action == AddLearner && d.Ephemeral) {
			return nil
		}
		return errors.New("no member is called so")
	}
	i := o.Instances[n]
	m := listing(o, i.ID)
	serving, rest := others(o, i.ID)
	switch {
	case s.Acts() && (i.Pod.Foreign || i.Volume.Foreign):
		return errors.New("it has another owner")
	case s.ID != 0 && (m == nil || s.ID != i.ID):
		return errors.New("it is not the member that etcd is told of")
	case s.Action == Start && (i.Pod.Exists() || !i.Volume.Stays() || !o.Formed() || i.Volume.Retired || !i.Volume.Recorded() && i.Volume.First == First{}):
		return errors.New("it is started twice, without its data, or before the cluster has formed")
	case i.Volume.Replaced && slices.Contains([]Action{Start, Record, Join, Promote, Provision, Discard, PutBack, Expand}, s.Action):
		return errors.New("its volume is another object than its record names")
	case i.Volume.InDoubt() && s.Action == Remove && slices.Contains([]Reason{MemberLost, MemberFailed}, s.Reason) && m != nil && !m.Learner:
		return errors.New("it is given up for a volume that a person may accept")
	case s.Action == Bootstrap && i.Pod.Exists():
		return errors.New("it is started twice")
	case s.Action == Provision && i.Volume.Recorded() && i.Volume.Stays():
		return errors.New("its volume has data")
	case s.Action == Provision && o.Formed() && (!i.Volume.Spare || i.Pod.Exists() || m != nil):
		return errors.New("it is no spare, or has a Pod")
	case s.Action == Record && (!i.Endpoint.Answered() || !i.Volume.Exists()):
		return errors.New("nothing is proved")
	case s.Action == Stop && (!i.Pod.Exists() || i.Pod.Terminating):
		return errors.New("it is stopped twice")
	case s.Action == Stop && d.Size > 0 && (m != nil || s.Reason != Retiring) && i.Endpoint.Answered() && i.Pod.Expired == "":
		return errors.New("it is stopped though it serves")
	case s.Action == Stop && s.Reason == Changing && (i.Pod.Expired == "" || d.Ephemeral || i.Volume.Terminating || i.Volume.Replaced):
		return errors.New("it trusts an authority that is valid, or its data goes with its Pod")
	case s.Reason == BackOff && (o.Reach == ReachQuorum || !i.Pod.BackOff || i.Pod.Young):
		return errors.New("its kubelet's back-off is nothing to act on")
	case s.Reason == BackOff && (d.Ephemeral || i.Volume.Terminating):
		return errors.New("its data goes with its Pod")
	case (s.Action == Discard || s.Reason == Retiring) && m != nil:
		return errors.New("it is a member")
	case s.Action == Discard && (!i.Volume.Stays() || i.Volume.Retired):
		return errors.New("its volume is discarded twice")
	case s.Action == Discard && !i.Volume.Spare && serving < rest:
		return errors.New("its data is deleted while not all others serve")
	case s.Action == AddLearner && (m != nil || !i.Volume.Spare || !i.Volume.Stays() || !i.Pod.Provisioned):
		return errors.New("it is a member already, or not prepared")
	case s.Action == Join && (!m.Learner || i.Pod.Exists() && (!i.Pod.Provisions || i.Pod.Terminating) || i.Volume.Terminating || i.Volume.Recorded()):
		return errors.New("it is a voter, runs already, or its volume is not blank")
	case s.Action == Promote && (!m.Learner || !i.Endpoint.Answered() || i.Endpoint.Leader == 0 || i.Volume.MemberID != i.ID || i.Pod.Unfenced):
		return errors.New("it is no learner, does not serve, or could start empty as a voter")
	case s.Action == Promote && rest > 1 && serving < Quorum(rest+1):
		return errors.New("with it the members that serve may be no quorum")
	case s.Action == Remove && !m.Learner && (rest == 0 || serving < Quorum(rest)):
		return errors.New("without it the members that serve are no quorum")
	case s.Action == Update && (m == nil || m.Learner || i.Pod.Terminating || i.Pod.Changing || !i.Pod.Exists() || s.Change == ChangeNone):
		return errors.New("it is no voter, on its way already, or there is nothing to change")
	case s.Action == Update && (rest != serving || !i.Serves() || rest == 1 && s.Change != ChangeResources):
		return errors.New("it is taken away while another one is away, or cannot be spared")
	case s.Action == Update && s.Change == ChangePod && d.Ephemeral:
		return errors.New("its data goes with its Pod")
	case s.Action == Repair && (!d.Ephemeral || i.Endpoint.Answered() || !i.Pod.Exists() || i.Pod.Terminating || s.Change != ChangeImage && s.Change != ChangeResources):
		return errors.New("its data is on a volume, or it needs no repair in place")
	case s.Action == PutBack && (i.Endpoint.Answered() && (!i.Pod.Away || i.Endpoint.Version != i.Volume.Version) || i.Pod.Terminating || !i.Pod.Changing && len(i.Pod.Untried) == 0 && i.Volume.Next == Version{}):
		return errors.New("it was not changed, or is coming up with what it was changed to")
	case s.Action == PutBack && !i.Pod.Failing && !i.Pod.Starved && !i.Pod.IdleLong && (!i.Pod.Idle || !i.unwanted()) && (!i.Pod.NeverRan || !i.Pod.Overdue && !i.Pod.Outdated) && (!i.Pod.Ended || !i.Pod.Outdated):
		return errors.New("it may yet come up with what it was changed to")
	case s.Action == PutBack && !i.Pod.Away && !i.Pod.Failing && !i.Pod.Starved && !i.Pod.IdleLong && !i.Pod.NeverRan && i.StillWanted():
		return errors.New("nothing but a reverted spec rolls it back, and the spec still asks for it")
	case s.Action == MoveLeader && (m.Learner || i.Endpoint.Leader == 0 || i.Endpoint.Leader == i.ID):
		return errors.New("it cannot lead, or does already")
	default:
		return nil
	}
}

// promisesChange are those about what members run.
func promisesChange(d Desired, o Observed, s Step) error {
	if s.Action != Update && s.Action != Downgrade {
		return nil
	}
	var running []Version
	var under Version
	for _, i := range o.Instances {
		m := listing(o, i.ID)
		if m == nil || m.Learner {
			continue
		}
		v := i.Endpoint.Version
		running = append(running, v)
		if under == (Version{}) {
			under = i.Endpoint.Downgrade
		}
		if v.Minor > s.Version.Minor+1 || v.Minor < s.Version.Minor-1 {
			return errors.New("members of minors that are not neighbours")
		}
		if s.Action == Update && i.Pod.Changing {
			return errors.New("another one is on its way")
		}
		if s.Action == Update && i.Leads() && slices.Contains(s.Members, i.Name) && slices.ContainsFunc(o.Instances, func(j Instance) bool {
			other := listing(o, j.ID)
			return other != nil && !other.Learner && !j.Leads() && j.Pod.Change != ChangeNone && (!o.full() || j.widens())
		}) {
			return errors.New("the leader comes before a follower")
		}
	}
	lowest := slices.MinFunc(running, Version.Compare)
	ready := !slices.ContainsFunc(o.Instances, func(i Instance) bool {
		m := listing(o, i.ID)
		return m != nil && !m.Learner && i.Endpoint.Storage.Minor != s.Version.Minor
	})
	switch {
	case s.Action == Update && d.GivenUp != "":
		return errors.New("it was tried before, and given up")
	case slices.ContainsFunc(o.Members, func(m Member) bool { return m.Learner }):
		return errors.New("a learner is not yet one or the other")
	case s.Action == Downgrade && (s.Version.Minor != lowest.Minor-1 || under != Version{}):
		return errors.New("a downgrade to what runs, or one that is under way")
	case s.Action == Update && s.Version.Minor < lowest.Minor && (under == Version{} || !ready):
		return errors.New("an earlier minor whose data is not prepared")
	}
	return nil
}

// listing and others count again what the rules count.

func listing(o Observed, id ID) *Member {
	for _, m := range o.Members {
		if m.ID == id && o.Reach == ReachQuorum {
			return &m
		}
	}
	return nil
}

// others are the voters but for that one, and how many of them serve.
func others(o Observed, but ID) (serving, voters int) {
	for _, m := range o.Members {
		if m.Learner || m.ID == but {
			continue
		}
		voters++
		if slices.ContainsFunc(o.Instances, func(i Instance) bool { return i.ID == m.ID && i.Serves() }) {
			serving++
		}
	}
	return serving, voters
}
