package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// notStarted is a learner that etcd lists, and whose volume it was given to, before anything has
// run there.
func notStarted(i *Instance) {
	silent(i)
	i.Volume = Volume{UID: i.Volume.UID, Joins: i.ID, Version: etcd36}
	i.Pod.Problem, i.Pod.NeverRan = "cannot be scheduled", true
}

// TestPlanQuorumLossWhileMembersMayComeBack: nothing is restored while the voters that have their
// data are a quorum.
func TestPlanQuorumLossWhileMembersMayComeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
		want   Action
	}{
		"LearnerNotStarted": {
			reason: "A cluster of one grows. Its node is off; the learner has no data to lose, and no vote",
			base:   formed1,
			args:   []change{size(3), learner(1), nobodyAnswers, on(1, notStarted), on(0, awayLong), asksFor(false, true), lostLong},
			want:   Wait,
		},
		"LearnerGone": {
			reason: "A cluster of one grows. Its node is off, and the volume of the learner was deleted: nothing tells any more that it has no vote",
			base:   formed1,
			args:   []change{size(3), learner(1), nobodyAnswers, on(1, gone), on(0, awayLong), asksFor(false, true), lostLong},
			want:   Stall,
		},
		"LearnerOfFour": {
			reason: "Of three voters two have their data, one of them on a node that is off. The learner that has not started counts for nothing",
			base:   formed3,
			args: []change{
				size(4), learner(3), noQuorum, on(3, notStarted), on(0, gone), on(1, silent), on(1, awayLong), asksFor(false, true), lostLong,
			},
			want: Wait,
		},
		"OnlyLearnerLeft": {
			reason: "The only voter is gone. What a learner has that may not have caught up is restored by a person, not by itself",
			base:   formed1,
			args:   []change{size(3), learner(1), nobodyAnswers, on(0, gone), asksFor(true, false), lostLong},
			want:   Stall,
		},
		"StatusLostAfterShrinking": {
			reason: "A cluster that has shrunk from three to one, and whose status was lost: its only member is down, with its data",
			base:   formed1,
			args: []change{
				on(0, func(i *Instance) { i.Volume.First.Size = 3 }), nobodyAnswers, forgotten, on(0, overdue), on(0, awayLong),
				func(_ *Desired, o *Observed) { o.add(1); o.add(2) }, asksFor(false, true), lostLong,
			},
			want: Stall,
		},
		"CreatedBeforeStatusLost": {
			reason: "The same, and an EtcdRestore was created for a loss before: it does not begin on a guess",
			base:   formed1,
			args: []change{
				on(0, func(i *Instance) { i.Volume.First.Size = 3 }), nobodyAnswers, forgotten, on(0, overdue), on(0, awayLong),
				func(_ *Desired, o *Observed) { o.add(1); o.add(2) }, asks(), found(monday), asksFor(false, true), func(_ *Desired, o *Observed) { o.InPlace.OnLoss = true },
			},
			want: Stall,
		},
		"PodsReady": {
			reason: "The operator reaches no member, and their kubelets find that all three serve: claims were taken away under running Pods",
			base:   formed3,
			args: []change{
				nobodyAnswers, on(1, noVolume), on(2, noVolume), onAll(func(i *Instance) { i.Pod.Ready, i.Pod.ReadyLong = true, true }),
				asksFor(false, true), lostLong,
			},
			want: Stall,
		},
		"OfAPersonUnderWay": {
			reason: "A person has made an EtcdRestore already, and its snapshot is being looked for",
			base:   formed3,
			args: []change{
				noQuorum, on(1, gone), on(2, gone), asks(), func(_ *Desired, o *Observed) { o.Search = Search{Begun: true} }, asksFor(false, true), lostLong,
			},
			want: Stall,
		},
		"OfAPersonBlocked": {
			reason: "or something is in its way",
			base:   formed3,
			args: []change{
				noQuorum, on(1, gone), on(2, gone), asks(), func(_ *Desired, o *Observed) { o.Search = Search{Begun: true, Problem: "access denied"} }, asksFor(false, true), lostLong,
			},
			want: Stall,
		},
		"OfAPersonNew": {
			reason: "or it was made a moment ago, and the status of the EtcdCluster does not have it yet",
			base:   formed3,
			args:   []change{noQuorum, on(1, gone), on(2, gone), asksFor(false, true), lostLong, func(_ *Desired, o *Observed) { o.Loss.Another = true }},
			want:   Stall,
		},
		"CameBackMeanwhile": {
			reason: "An EtcdRestore was created for the loss. Its snapshot was found after the volumes came back, and the members are starting",
			base:   formed3,
			args: []change{
				noQuorum, asks(), found(monday), asksFor(false, true), lostLong, recovering, func(_ *Desired, o *Observed) { o.InPlace.OnLoss = true },
			},
			want: Wait,
		},
		"LostAgain": {
			reason: "An EtcdRestore was created for the loss. The volumes came back before it began, and are gone again: they may come back once more",
			base:   formed3,
			args: []change{
				noQuorum, on(1, gone), on(2, gone), asks(), found(monday), asksFor(false, true), lostLong, recovering, func(_ *Desired, o *Observed) { o.InPlace.OnLoss, o.InPlace.LostLately = true, true },
			},
			want: Stall,
		},
		"LostAgainLong": {
			reason: "They did not",
			base:   formed3,
			args: []change{
				noQuorum, on(1, gone), on(2, gone), asks(), found(monday), asksFor(false, true), lostLong, recovering, func(_ *Desired, o *Observed) { o.InPlace.OnLoss = true },
			},
			want: Replace,
		},
		"OnlyInDoubt": {
			reason: "What is left is a volume that was restored: none is taken as a survivor (reconcile/survivor.go), so none is promised",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, restored), on(1, gone), on(2, gone), asksFor(true, false), lostLong},
			want:   Stall,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			got := Plan(d, o)
			if diff := cmp.Diff(tc.want, got.Action); diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, got.Message)
			}
		})
	}
}

// TestCopiedOfThatVolume: the claim of the survivor was created again under its name after it was
// chosen.
func TestCopiedOfThatVolume(t *testing.T) {
	d, o := formed3()
	o.Former, o.Instances, o.ClusterID, o.Reach, o.Members, o.Remembered = o.Instances, nil, 0, ReachNone, nil, false
	for n := range o.Former {
		noPod(&o.Former[n])
		o.Former[n].Volume.Aside = "back-uid"
	}
	s := DataOf("m-0", "volume-0")
	o.Snapshot, o.InPlace = s, InPlace{Name: "back", UID: "back-uid", Begun: true}
	d.Token, d.Base, d.Restore = "back-uid", 3, true
	f := First{Token: "back-uid", Size: 1, Base: 3, Snapshot: s.ID()}
	o.Instances = []Instance{{Name: "m-3", Ordinal: 3, Volume: Volume{UID: "volume-3", First: f}}}
	if got := Plan(d, o); got.Action != CopyData {
		t.Fatalf("with the volume that was chosen: %s, want CopyData", got)
	}
	o.Former[0].Volume = Volume{UID: "another", Aside: "back-uid"} // whatever is on it
	if got := Plan(d, o); got.Action != Stall {
		t.Errorf("with another volume of that name: %s, want a Stall: %s", got.Action, got.Message)
	}
	o.Former = o.Former[1:]
	if got := Plan(d, o); got.Action != Stall {
		t.Errorf("with no volume of that name: %s, want a Stall: %s", got.Action, got.Message)
	}
}
