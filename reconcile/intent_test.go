package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// aboutNow: two times are the same where a test cannot know them to the second.
var aboutNow = cmp.Comparer(func(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Sub(b.Time).Abs() < time.Minute
})

// operation that we decided so long ago.
func operation(step membership.Action, member string, ago time.Duration, targets ...api.OperationTarget) *api.Operation {
	return &api.Operation{
		Step: string(step), Generation: 7, MemberID: member, Holder: "us", Since: new(metav1.NewTime(time.Now().Add(-ago))), Targets: targets,
	}
}

// theirs is an operation of another operator.
func theirs(op *api.Operation) *api.Operation {
	op.Holder = "another"
	return op
}

// stored is an operation as it comes of the API server, in whole seconds.
func stored(op *api.Operation) *api.Operation {
	op.Since = new(metav1.NewTime(op.Since.Truncate(time.Second)))
	return op
}

func target(member, uid string) api.OperationTarget {
	return api.OperationTarget{Member: member, UID: uid}
}

// spare puts a volume for a member to come into the facts, prepared.
func spare(seen *observed, n int) {
	name := newCluster().MemberName(n)
	seen.claims[name], seen.pods[name] = newClaim(name), newPod(name)
	seen.pods[name].Spec.Containers = []corev1.Container{{Name: render.Container, Image: render.Image(newCluster(), newCluster().Spec.Version)}}
	if made, err := render.Pod(newCluster(), render.Member{Name: name, Version: newCluster().Spec.Version}); err == nil {
		seen.pods[name].Annotations[api.AnnotationRevision] = made.Annotations[api.AnnotationRevision]
	}
	seen.Instances = append(seen.Instances, membership.Instance{
		Name: name, Ordinal: n, Volume: membership.Volume{UID: "claim-of-" + name, Spare: true},
		Pod: membership.Pod{UID: "pod-of-" + name, Provisions: true, Provisioned: true},
	})
	seen.Fresh = fresh(n + 1)
}

// learner makes a spare of the facts a learner with the ID a3 that has yet to start.
func learner(seen *observed, name string) {
	for n := range seen.Instances {
		if i := &seen.Instances[n]; i.Name == name {
			i.ID, i.Volume.Spare, i.Volume.Joins = 0xa3, false, 0xa3
			i.Pod.Provisions, i.Pod.Provisioned = false, false
		}
	}
	seen.Members = append(seen.Members, membership.Member{
		ID: 0xa3, PeerURLs: []string{newCluster().PeerURL(name)}, Learner: true,
	})
}

func TestPendingOperation(t *testing.T) {
	timeless := func(op *api.Operation) *api.Operation {
		op.Since = nil
		return op
	}
	stop := func() *api.Operation {
		return operation(membership.Stop, "", 0, target("db-0", "pod-of-db-0"), target("db-2", "pod-of-db-2"))
	}
	discard := func() *api.Operation { return operation(membership.Discard, "", 0, target("db-2", "claim-of-db-2")) }
	bootstrap := func() *api.Operation { return operation(membership.Bootstrap, "", 0, target("db-0", "claim-of-db-0")) }
	add := func() *api.Operation { return operation(membership.AddLearner, "", 0, target("db-3", "claim-of-db-3")) }
	promote := func() *api.Operation { return operation(membership.Promote, "a3", 0, target("db-3", "claim-of-db-3")) }
	remove := func() *api.Operation { return operation(membership.Remove, "a2", 0, target("db-2", "claim-of-db-2")) }
	move := func() *api.Operation {
		return operation(membership.MoveLeader, "a0", 0, target("db-0", "claim-of-db-0"))
	}
	change := func() *api.Operation { return operation(membership.Update, "", 0, target("db-2", "pod-of-db-2")) }
	back := func() *api.Operation { return operation(membership.PutBack, "", 0, target("db-2", "pod-of-db-2")) }
	differs := func(change func(*membership.Instance)) func(*observed) {
		return func(seen *observed) {
			seen.Instances[2].Pod.Change = membership.ChangeImage
			change(&seen.Instances[2])
		}
	}
	joining := func(seen *observed) { spare(seen, 3); learner(seen, "db-3") }
	unlisted := func(seen *observed) { seen.Reach, seen.Members = membership.ReachSome, nil }
	without := func(n int) func(*observed) {
		return func(seen *observed) { seen.Members = append(seen.Members[:n:n], seen.Members[n+1:]...) }
	}

	cases := map[string]struct {
		reason  string
		op      *api.Operation
		age     time.Duration
		seen    func(*observed)
		pending bool
	}{
		"None": {reason: "nothing is under way"},

		"BootstrapForming":    {reason: "until the cluster has formed, however long it takes", op: bootstrap(), age: 3600 * time.Second, seen: empty, pending: true},
		"BootstrapOfOldTimes": {reason: "an earlier release wrote no time", op: timeless(bootstrap()), seen: empty, pending: true},
		"BootstrapFormed":     {reason: "the first start is over", op: bootstrap()},

		"StopRunning":  {reason: "the Pods are still there", op: stop(), pending: true},
		"StopHalfDone": {reason: "one of two is still there", op: stop(), seen: func(seen *observed) { seen.Instances[2].Pod = membership.Pod{} }, pending: true},
		"StopTerminating": {reason: "both are going", op: stop(), seen: func(seen *observed) {
			seen.Instances[0].Pod.Terminating, seen.Instances[2].Pod.Terminating = true, true
		}},
		"StopGone":      {reason: "one is gone, and another Pod has taken the other's place", op: stop(), seen: func(seen *observed) { seen.Instances[0].Pod.UID, seen.Instances[2].Pod = "another", membership.Pod{} }},
		"StopForgotten": {reason: "not even the names are known any more", op: stop(), seen: func(seen *observed) { seen.Instances = seen.Instances[1:2] }},
		"StopExpired":   {reason: "it had time enough", op: stop(), age: 16 * time.Second},

		"DiscardThere":       {reason: "the volume is still there", op: discard(), pending: true},
		"DiscardTerminating": {reason: "it is going", op: discard(), seen: func(seen *observed) { seen.Instances[2].Volume.Terminating = true }},
		"DiscardGone":        {reason: "it is gone", op: discard(), seen: func(seen *observed) { seen.Instances[2].Volume = membership.Volume{} }},
		"DiscardAnother":     {reason: "it is another one", op: discard(), seen: func(seen *observed) { seen.Instances[2].Volume.UID = "another" }},
		"DiscardRetired":     {reason: "it is marked", op: discard(), seen: func(seen *observed) { seen.Instances[2].Volume.Retired = true }},
		"DiscardExpired":     {reason: "it had time enough", op: discard(), age: 16 * time.Second},

		"AddUnlisted": {reason: "etcd does not list it yet", op: add(), seen: func(seen *observed) { spare(seen, 3) }, pending: true},
		"AddListed":   {reason: "etcd lists it", op: add(), seen: joining},
		"AddNoList":   {reason: "what is remembered of it is no proof", op: add(), seen: func(seen *observed) { joining(seen); unlisted(seen) }, pending: true},
		"AddExpired":  {reason: "no request can still be under way", op: add(), age: 16 * time.Second, seen: func(seen *observed) { spare(seen, 3) }},

		"PromoteLearner": {reason: "it has no vote yet", op: promote(), seen: joining, pending: true},
		"PromoteVoter":   {reason: "it has one", op: promote(), seen: func(seen *observed) { joining(seen); seen.Members[3].Learner = false }},
		"PromoteRemoved": {reason: "there is none left to get one", op: promote()},
		"PromoteNoList":  {reason: "it is not known", op: promote(), seen: func(seen *observed) { joining(seen); unlisted(seen) }, pending: true},
		"PromoteExpired": {reason: "no request can still be under way", op: promote(), age: 16 * time.Second, seen: joining},

		"RemoveListed":  {reason: "etcd lists it", op: remove(), pending: true},
		"RemoveGone":    {reason: "etcd does not", op: remove(), seen: without(2)},
		"RemoveNoList":  {reason: "no list is no list without it", op: remove(), seen: unlisted, pending: true},
		"RemoveExpired": {reason: "no request can still be under way", op: remove(), age: 16 * time.Second},

		"MoveFollower": {reason: "another one leads", op: move(), pending: true},
		"MoveLeads":    {reason: "it leads", op: move(), seen: func(seen *observed) { seen.Instances[0].Endpoint.Leader = 0xa0 }},
		"MoveRemoved":  {reason: "it will never lead", op: move(), seen: without(0)},
		"MoveNoList":   {reason: "it is not known", op: move(), seen: unlisted, pending: true},
		"MoveExpired":  {reason: "no request can still be under way", op: move(), age: 16 * time.Second},

		"UpdateThere":       {reason: "its Pod is what it was", op: change(), seen: differs(func(*membership.Instance) {}), pending: true},
		"UpdateTerminating": {reason: "it is going, and another one comes", op: change(), seen: differs(func(i *membership.Instance) { i.Pod.Terminating = true })},
		"UpdateAnother":     {reason: "it is another one", op: change(), seen: differs(func(i *membership.Instance) { i.Pod.UID = "another" })},
		"UpdateChanging":    {reason: "its image has been changed", op: change(), seen: differs(func(i *membership.Instance) { i.Pod.Changing = true })},
		"UpdateChanged":     {reason: "it is what the spec asks for", op: change(), seen: differs(func(i *membership.Instance) { i.Pod.Change = membership.ChangeNone })},
		"UpdateExpired":     {reason: "it had time enough", op: change(), age: 16 * time.Second, seen: differs(func(*membership.Instance) {})},

		"PutBackThere":       {reason: "it has the image that it does not come up with", op: back(), seen: differs(func(i *membership.Instance) { i.Pod.Changing, i.Pod.Change = true, membership.ChangeNone }), pending: true},
		"PutBackNext":        {reason: "its volume says still what comes next", op: back(), seen: differs(func(i *membership.Instance) { i.Volume.Next.Major, i.Pod.Change = 3, membership.ChangeNone }), pending: true},
		"PutBackImage":       {reason: "it has its former image, which is not what the spec asks for", op: back(), seen: differs(func(*membership.Instance) {})},
		"PutBackTerminating": {reason: "it is going, and another one comes", op: back(), seen: differs(func(i *membership.Instance) { i.Pod.Changing, i.Pod.Terminating = true, true })},
		"PutBackAnother":     {reason: "it is another one", op: back(), seen: differs(func(i *membership.Instance) { i.Pod.Changing, i.Pod.UID = true, "another" })},

		"Young":      {reason: "a request may be under way for all of its life", op: remove(), age: 14 * time.Second, pending: true},
		"OtherClock": {reason: "the clock of its holder says nothing", op: operation(membership.Remove, "a2", -time.Hour, target("db-2", "claim-of-db-2")), age: 16 * time.Second},
		"Timeless":   {reason: "it is not known when it was begun, so that an earlier release did", op: timeless(remove())},
		"Unknown":    {reason: "what has no known end holds up nothing", op: operation("Restore", "", 0, target("db-0", "x"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			if tc.seen != nil {
				tc.seen(&seen)
			}
			var want *api.Operation
			if tc.pending {
				want = tc.op.DeepCopy()
			}
			if diff := cmp.Diff(want, pendingOperation(tc.op, seen, tc.age)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIntend(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "etcdclusters"}, "db", errors.New("changed"))
	refused := func(write) error { return conflict }
	add := membership.Step{Action: membership.AddLearner, Reason: membership.ScalingUp, Members: []string{"db-3"}}
	remove := membership.Step{Action: membership.Remove, Reason: membership.ScalingDown, Members: []string{"db-2"}, ID: 0xa2}
	stop := membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Members: []string{"db-0", "db-1", "db-2"}}
	bootstrap := membership.Step{Action: membership.Bootstrap, Members: []string{"db-1"}, First: membership.First{Token: "cluster", Size: 2}}
	written := []write{{Verb: "apply", Kind: "status"}}
	decided := func(step membership.Action, member string, targets ...api.OperationTarget) *api.Operation {
		op := operation(step, member, 0, targets...)
		op.Generation = 7
		return op
	}
	removing := func(ago time.Duration) *api.Operation {
		return operation(membership.Remove, "a2", ago, target("db-2", "claim-of-db-2"))
	}

	type result struct {
		Writes    []write
		Operation *api.Operation
		Next      int32
		Err       error
	}
	cases := map[string]struct {
		reason string
		before *api.Operation
		first  time.Duration // how long ago this process saw it first
		next   int32         // what the status says
		seen   func(*observed)
		step   membership.Step
		uid    func(membership.Instance) string
		refuse func(write) error
		etcd   error // what it answered to the request of the operation before
		want   result
	}{
		"First": {
			reason: "nothing else is under way", step: remove, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.Remove, "a2", target("db-2", "claim-of-db-2")), Next: 3},
		},
		"OfPods": {
			reason: "Pods are stopped by their own UIDs", step: stop, uid: podUID,
			want: result{Writes: written, Operation: decided(membership.Stop, "", target("db-0", "pod-of-db-0"), target("db-1", "pod-of-db-1"), target("db-2", "pod-of-db-2")), Next: 3},
		},
		"OfAllFirstMembers": {
			reason: "a first start names the volumes of all its members, whose Pods are there or not", seen: empty, step: bootstrap, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.Bootstrap, "", target("db-0", ""), target("db-1", "")), Next: 3},
		},
		"Newcomer": {
			reason: "its volume is named, and its ordinal is used up", seen: func(seen *observed) { spare(seen, 3) }, step: add, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.AddLearner, "", target("db-3", "claim-of-db-3")), Next: 4},
		},
		"NewcomerInMemory": {
			reason: "nothing of it is there yet, and all the same its name is used up", step: add, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.AddLearner, "", target("db-3", "")), Next: 4},
		},
		"HighWater": {
			reason: "ordinals that were once used are never used again", next: 9, step: remove, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.Remove, "a2", target("db-2", "claim-of-db-2")), Next: 9},
		},
		"Same": {
			reason: "it is written down already, for an earlier spec", before: removing(0), next: 3, step: remove, uid: volumeUID,
			want: result{Operation: removing(0), Next: 3},
		},
		"SameStop": {
			reason: "there is no second look before a Pod goes: that the write succeeds shows that the spec is the newest", step: stop, uid: podUID,
			before: operation(membership.Stop, "", 0, target("db-0", "pod-of-db-0"), target("db-1", "pod-of-db-1"), target("db-2", "pod-of-db-2")),
			want:   result{Writes: written, Operation: decided(membership.Stop, "", target("db-0", "pod-of-db-0"), target("db-1", "pod-of-db-1"), target("db-2", "pod-of-db-2")), Next: 3},
		},
		"SameStopStored": {
			reason: "so it is in the second in which that was written: what is written is never what is stored, which would not be sent", step: stop, uid: podUID, next: 3,
			before: stored(operation(membership.Stop, "", 0, target("db-0", "pod-of-db-0"), target("db-1", "pod-of-db-1"), target("db-2", "pod-of-db-2"))),
			want:   result{Writes: written, Operation: decided(membership.Stop, "", target("db-0", "pod-of-db-0"), target("db-1", "pod-of-db-1"), target("db-2", "pod-of-db-2")), Next: 3},
		},
		"SameOfAnother": {
			reason: "doing it twice does no harm, but it is to be seen which operator does it", before: theirs(removing(0)), step: remove, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.Remove, "a2", target("db-2", "claim-of-db-2")), Next: 3},
		},
		"AnotherVolume": {
			reason: "no member is added with another volume than the one that was meant", step: add, uid: volumeUID,
			before: theirs(operation(membership.AddLearner, "", 0, target("db-3", "claim-of-db-3"))),
			seen:   func(seen *observed) { spare(seen, 3); seen.Instances[3].Volume.UID = "another" },
			want:   result{Operation: theirs(operation(membership.AddLearner, "", 0, target("db-3", "claim-of-db-3"))), Err: errInFlight},
		},
		"AnotherMember": {
			reason: "one at a time", before: theirs(operation(membership.Remove, "a1", 0, target("db-1", "claim-of-db-1"))), step: remove, uid: volumeUID,
			want: result{Operation: theirs(operation(membership.Remove, "a1", 0, target("db-1", "claim-of-db-1"))), Err: errInFlight},
		},
		"AnotherStep": {
			reason: "a Pod is not stopped either while a member may be about to go", before: theirs(removing(0)), step: stop, uid: podUID,
			want: result{Operation: theirs(removing(0)), Err: errInFlight},
		},
		"Unanswered": {
			reason: "our own request may still take effect where etcd has not answered", before: removing(0), step: stop, uid: podUID,
			etcd: errors.New("context deadline exceeded"), want: result{Operation: removing(0), Err: errInFlight},
		},
		"UnansweredSame": {
			reason: "the same request may be made again", before: removing(0), next: 3, step: remove, uid: volumeUID,
			etcd: errors.New("context deadline exceeded"), want: result{Operation: removing(0), Next: 3},
		},
		"UnansweredVolumeGone": {
			reason: "it is the same request though the member's volume has gone meanwhile", before: removing(0), next: 3, step: remove, uid: volumeUID,
			seen: func(seen *observed) { seen.Instances[2].Volume = membership.Volume{} },
			etcd: errors.New("context deadline exceeded"), want: result{Operation: removing(0), Next: 3},
		},
		"Answered": {
			reason: "what etcd has refused has no effect any more", before: removing(0), step: add, uid: volumeUID, etcd: membership.ErrLater,
			want: result{Writes: written, Operation: decided(membership.AddLearner, "", target("db-3", "")), Next: 4},
		},
		"Expired": {
			reason: "what comes of it has come", before: theirs(removing(16 * time.Second)), first: 16 * time.Second, step: stop, uid: podUID,
			want: result{Writes: written, Operation: decided(membership.Stop, "", target("db-0", "pod-of-db-0"), target("db-1", "pod-of-db-1"), target("db-2", "pod-of-db-2")), Next: 3},
		},
		"Done": {
			reason: "its effect is seen", before: theirs(operation(membership.Remove, "a9", 0, target("db-9", "claim-of-db-9"))), step: remove, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.Remove, "a2", target("db-2", "claim-of-db-2")), Next: 3},
		},
		"AfterStop": {
			reason: "a Pod that goes holds up nothing", before: theirs(operation(membership.Stop, "", 0, target("db-2", "pod-of-db-2"))), step: remove, uid: volumeUID,
			want: result{Writes: written, Operation: decided(membership.Remove, "a2", target("db-2", "claim-of-db-2")), Next: 3},
		},
		"WhileForming": {
			reason: "what is written about a first start stays until the cluster has formed", seen: empty,
			before: operation(membership.Bootstrap, "", time.Hour, target("db-0", "x")),
			step:   membership.Step{Action: membership.Stop, Reason: membership.Replacing, Members: []string{"db-0"}}, uid: podUID,
			want: result{Operation: operation(membership.Bootstrap, "", time.Hour, target("db-0", "x"))},
		},
		"Conflict": {
			reason: "another operator was first", step: remove, uid: volumeUID, refuse: refused, want: result{Err: conflict},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.Operation, c.Status.NextOrdinal = tc.before, tc.next
			if tc.seen != nil {
				tc.seen(&seen)
			}
			s := newStub(t, tc.refuse)
			s.settle(c, tc.etcd)
			s.begun(c, time.Now().Add(-tc.first))
			err := s.intend(t.Context(), c, seen, tc.step, tc.uid)
			if !errors.Is(err, tc.want.Err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.want.Err)
			}
			got := result{Writes: s.writes, Operation: c.Status.Operation, Next: c.Status.NextOrdinal, Err: tc.want.Err}
			if diff := cmp.Diff(tc.want, got, aboutNow, cmp.Comparer(errors.Is)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
