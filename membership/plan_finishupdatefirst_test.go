package membership

import (
	"cmp"
	"testing"
)

// What the exploration of changes has taught: no member comes or goes, and no downgrade is left on,
// where that would keep a member from starting.

func data(minor int) change {
	return onAll(func(i *Instance) { i.Endpoint.Storage = Version{3, minor, 0} })
}

func toFive(d *Desired, o *Observed) {
	d.Version = Version{3, 5, 35}
	onAll(func(i *Instance) { i.Pod.Change, i.Pod.Parts = ChangeImage, []string{"version"} })(d, o)
}

func downgrading(minor int) change {
	return onAll(func(i *Instance) {
		i.Endpoint.Downgrade, i.Volume.Replays = Version{3, minor, 0}, cmp.Or(i.Volume.Replays, ReplaysAny)
	})
}

func TestPlanFinishUpdateFirst(t *testing.T) {
	two := func() (Desired, Observed) {
		d, o := formed3()
		d.Size, o.Instances, o.Members = 2, o.Instances[:2], o.Members[:2]
		return d, o
	}
	toGo := on(1, func(i *Instance) { i.Volume.Next = Version{3, 5, 35}; silent(i) })
	testPlan(t, map[string]planCase{
		"LostMeanwhile": {
			reason: "The cluster's version must not rise before the member arrives that is being changed",
			base:   formed3,
			args:   []change{toFive, data(5), downgrading(5), toGo, on(2, gone)},
			want: Step{
				Action: Wait, Reason: Changing,
				Message: "waiting for updated members before the membership changes: m-1 does not answer",
			},
		},
		"LostBefore": {
			reason: "No member is being changed: the downgrade makes way for the successor",
			base:   formed3,
			args:   []change{toFive, data(5), downgrading(5), on(2, gone)},
			want: Step{
				Action: CancelDowngrade, Reason: Downgrading,
				Message: "taking back the downgrade until the members are complete again",
			},
		},
		"NotRisen": {
			reason: "etcd would refuse to go back from a version to which it has not come",
			base:   formed3,
			args:   []change{toFive, data(5)},
			want: Step{
				Action: Wait, Reason: Downgrading,
				Message: "waiting for the storage version to reach 3.6 before the downgrade: m-0, m-1, m-2",
			},
		},
		"Risen": {
			reason: "etcd can be asked to go back",
			base:   formed3,
			args:   []change{toFive, data(6)},
			want: Step{
				Action: Downgrade, Version: Version{3, 5, 35}, Reason: Downgrading,
				Message: "having etcd make its data readable for 3.5",
			},
		},
		"OfTwo": {
			reason: "A downgrade is not begun that cannot be carried out",
			base:   two,
			args:   []change{toFive, data(6)},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "cannot restart m-1 (spec.version) without losing the quorum of 2 members: set spec.replicas to 3 for the update, or to 1",
			},
		},
		"OfTwoBegun": {
			reason: "Nor is it left on",
			base:   two,
			args:   []change{toFive, data(5), downgrading(5)},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade: none of 2 members can be restarted without losing the quorum"},
		},
		"GivenUp": {
			reason: "What was tried in vain leaves no downgrade behind",
			base:   formed3,
			args:   []change{toFive, data(5), downgrading(5), func(d *Desired, _ *Observed) { d.GivenUp = "m-1: with etcd 3.5.35 it exited with code 1" }},
			want:   Step{Action: CancelDowngrade, Reason: ChangeFailed, Message: "taking back the downgrade: m-1: with etcd 3.5.35 it exited with code 1"},
		},
		"NoWayFromHere": {
			reason: "Nor does a spec that cannot be reached",
			base:   formed3,
			args:   []change{toFive, data(5), downgrading(5), func(d *Desired, _ *Observed) { d.Version = Version{3, 4, 45} }},
			want:   Step{Action: CancelDowngrade, Reason: Downgrading, Message: "taking back the downgrade to 3.5"},
		},
	})
}

// TestHopUnanswered: the only member does not come up with what it was changed to, and what it ran
// before tells the way.
func TestHopUnanswered(t *testing.T) {
	t.Parallel()
	d, o := formed1()
	nobodyAnswers(&d, &o)
	d.Version = etcd37
	o.Instances[0].Volume.Version = Version{3, 5, 35}
	if got, want := Hop(d, o), (Version{3, 6, 16}); got != want {
		t.Errorf("the next version is %s, want %s", got, want)
	}
}
