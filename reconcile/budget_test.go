package reconcile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestKeepsAll: no drain takes a member while Quorate has one away, and none is held up for ever.
func TestKeepsAll(t *testing.T) {
	t.Parallel()
	do := func(action membership.Action) membership.Step {
		return membership.Step{Action: action, Members: []string{"db-2"}, Reason: membership.Changing}
	}
	update := func(change membership.Change) membership.Step {
		step := do(membership.Update)
		step.Change = change
		return step
	}
	down := func(seen *observed) { seen.Instances[2].Endpoint = membership.Endpoint{} }
	overdue := func(seen *observed) {
		down(seen)
		seen.Instances[2].Pod.Problem, seen.Instances[2].Pod.Overdue = "cannot be scheduled", true
	}
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		step   membership.Step
		raised bool
		want   bool
	}{
		"Rest":        {reason: "a drain may take one that can be spared", step: do(membership.None), raised: true},
		"Image":       {reason: "before it is restarted", step: update(membership.ChangeImage), want: true},
		"Pod":         {reason: "before it is recreated", step: update(membership.ChangePod), want: true},
		"Resources":   {reason: "nothing is restarted", step: update(membership.ChangeResources)},
		"PutBack":     {reason: "it is restarted as well", step: do(membership.PutBack), want: true},
		"Stop":        {reason: "its Pod goes", step: do(membership.Stop), want: true},
		"AddLearner":  {reason: "one more voter needs one more for a quorum", step: do(membership.AddLearner), want: true},
		"Remove":      {reason: "one voter less is to spare", step: do(membership.Remove), want: true},
		"MoveLeader":  {reason: "the first part of that", step: do(membership.MoveLeader), want: true},
		"Learner":     {reason: "it is about to vote", step: do(membership.Wait), seen: func(seen *observed) { seen.Members[2].Learner = true }, want: true},
		"Announced":   {reason: "it is being changed, whatever has become of the budget", step: do(membership.Start), seen: func(seen *observed) { seen.Instances[2].Volume.Next = membership.Version{Major: 3, Minor: 7, Patch: 3} }, want: true},
		"Restarts":    {reason: "it has not answered since", step: do(membership.Wait), raised: true, seen: down, want: true},
		"Unproved":    {reason: "an answer is no proof", step: do(membership.Wait), raised: true, seen: func(seen *observed) { seen.Instances[2].Pod.Unproved = true }, want: true},
		"Between":     {reason: "the next one comes at once: no writes back and forth", step: do(membership.Discard), raised: true, want: true},
		"NoLeader":    {reason: "which member is away is not known meanwhile", step: do(membership.Wait), raised: true, seen: func(seen *observed) { seen.Reach = membership.ReachSome }, want: true},
		"Evicted":     {reason: "a drain has taken it, and the quorum rule holds", step: do(membership.Wait), seen: down},
		"EvictedBack": {reason: "nor is the budget written for it", step: do(membership.Start), seen: down},
		"Volumes":     {reason: "all are back, and file systems may take long to grow", step: do(membership.Wait), raised: true},
		"Overdue":     {reason: "waiting does not bring it back, and a drain is not held up for it", step: do(membership.Wait), raised: true, seen: overdue},
		"Stalled":     {reason: "only a person brings that to an end", step: do(membership.Stall), raised: true, seen: down},
		"Hibernating": {reason: "all go", step: membership.Step{Action: membership.Stop, Reason: membership.Hibernating}, raised: true},
		"Forming":     {reason: "there is nothing to lose yet", step: do(membership.Start), raised: true, seen: func(seen *observed) { *seen = observed{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			if tc.seen != nil {
				tc.seen(&seen)
			}
			if got := keepsAll(seen, tc.step, tc.raised); got != tc.want {
				t.Errorf("%s: keeps all: %t", tc.reason, got)
			}
		})
	}
}

// TestBudgetLeft: a pass in which no member is changed after all leaves no budget that holds up
// drains.
func TestBudgetLeft(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "db", errors.New("by policy"))
	refusing := func(verb, kind string) func(write) error {
		return func(w write) error {
			if w.Verb == verb && w.Kind == kind {
				return forbidden
			}
			return nil
		}
	}
	upgrading := func(w *world) { w.upgrading() }
	options := func(w *world) { w.cluster.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))} }
	cases := map[string]struct {
		reason  string
		given   func(*world)
		foreign bool // the Service for clients has another owner
		refuse  func(write) error
		stalled string
		want    []int32
	}{
		"Changed":        {reason: "it is raised before the member is touched", given: upgrading, want: []int32{3}},
		"ForeignService": {reason: "no member is changed before a person has acted", given: upgrading, foreign: true, stalled: api.ReasonForeignObject, want: []int32{2}},
		"ServiceRefused": {reason: "the same", given: upgrading, refuse: refusing("apply", "Service"), stalled: api.ReasonRefused, want: []int32{2}},
		"DeleteRefused":  {reason: "the Pod stays", given: options, refuse: refusing("delete", "Pod"), stalled: api.ReasonRefused, want: []int32{3, 2}},
		"ImageRefused":   {reason: "in earnest only", given: upgrading, refuse: refusing("apply", "Pod"), stalled: api.ReasonRefused, want: []int32{3, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			w.managed()
			objects := w.objects()
			if tc.foreign {
				service := &corev1.Service{ObjectMeta: child(w.cluster.ClientServiceName(), "service")}
				objects = append(objects, owned(service, "apps/v1", "Deployment", "web", "web"))
			}
			s := newStub(t, tc.refuse, objects...)
			s.Dial = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil })
			if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: turnOf("db")}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.budgets); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			stalled := ""
			if condition := meta.FindStatusCondition(s.status[len(s.status)-1].Conditions, api.ConditionStalled); condition != nil {
				stalled = condition.Reason
			}
			if diff := cmp.Diff(tc.stalled, stalled); diff != "" {
				t.Errorf("%s: stalled: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBudgetSuspended: a budget that was raised for a change stays so while the cluster is
// suspended, and the status says what that holds up.
func TestBudgetSuspended(t *testing.T) {
	t.Parallel()
	const held = "; meanwhile PodDisruptionBudget db keeps all 3 members, and no node with one is drained: set spec.suspend to false, or minAvailable of the budget to 2"
	rests := membership.Step{Action: membership.None, Reason: membership.Healthy, Message: "3 healthy members"}
	next := membership.Step{Action: membership.None, Reason: membership.Suspended, Message: "suspended by spec.suspend; without it: changing db-2"}
	type args struct {
		goesOn bool
		keeps  int32 // 0: there is no budget
		step   membership.Step
	}
	cases := map[string]struct {
		reason string
		args   args
		want   membership.Step
	}{
		"Quorum": {reason: "one may be drained", args: args{keeps: 2, step: next}, want: next},
		"None":   {reason: "nothing keeps them", args: args{step: next}, want: next},
		"GoesOn": {reason: "the change comes to an end by itself", args: args{goesOn: true, keeps: 3, step: rests}, want: rests},
		"Raised": {reason: "what comes next is told as well", args: args{keeps: 3, step: next}, want: membership.Step{Action: membership.None, Reason: membership.Suspended, Message: next.Message + held}},
		"AtRest": {
			reason: "nothing but the budget is left of the change", args: args{keeps: 3, step: rests},
			want: membership.Step{Action: membership.None, Reason: membership.Suspended, Message: "suspended by spec.suspend" + held},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Spec.Suspend = "c0", !tc.args.goesOn
			var live []client.Object
			if tc.args.keeps > 0 {
				b := &policyv1.PodDisruptionBudget{ObjectMeta: child("db", "budget")}
				b.Spec.MinAvailable = new(intstr.FromInt32(tc.args.keeps))
				live = append(live, b)
			}
			s := newStub(t, nil, live...)
			got, err := s.keptRaised(t.Context(), c, seen, tc.args.step)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if len(s.writes) > 0 {
				t.Errorf("%s: it writes %v", tc.reason, s.writes)
			}
		})
	}
}

// TestHeldUp: where no drain ever takes a member, the status says so, and what to do.
func TestHeldUp(t *testing.T) {
	t.Parallel()
	const waits = "; a drain of a node with a member waits, because a cluster of %d has none to spare: set spec.replicas to 3, or spec.disruptionBudget.mode to Disabled"
	rest := membership.Step{Action: membership.None, Reason: membership.Healthy, Message: "healthy"}
	cases := map[string]struct {
		reason  string
		members int
		mode    api.DisruptionBudgetMode
		step    membership.Step
		want    string
	}{
		"One":      {reason: "its only member", members: 1, step: rest, want: "healthy" + fmt.Sprintf(waits, 1)},
		"Two":      {reason: "one of two is no quorum", members: 2, step: rest, want: "healthy" + fmt.Sprintf(waits, 2)},
		"Three":    {reason: "one of three is to spare", members: 3, step: rest, want: "healthy"},
		"Disabled": {reason: "no budget selects it", members: 1, mode: api.DisruptionBudgetDisabled, step: rest, want: "healthy"},
		"Changes": {
			reason: "what goes on is said first", members: 1,
			step: membership.Step{Action: membership.Update, Reason: membership.Changing, Message: "changes"}, want: "changes",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := observed{}
			seen.Reach = membership.ReachQuorum
			for range tc.members {
				seen.Members = append(seen.Members, membership.Member{})
			}
			c := &api.EtcdCluster{}
			c.Spec.DisruptionBudget = &api.DisruptionBudget{Mode: tc.mode}
			if diff := cmp.Diff(tc.want, drainBlocked(c, seen, tc.step).Message); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
