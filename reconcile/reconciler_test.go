package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

func TestObstacle(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	quota := apierrors.NewForbidden(pods, "db-0", errors.New("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"))
	ending := apierrors.NewForbidden(pods, "db-0", errors.New("unable to create new content in namespace ns because it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "db-0", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	conflict := apierrors.NewConflict(pods, "db-0", errors.New("changed"))
	stall := func(reason membership.Reason, message string) membership.Step {
		return membership.Step{Action: membership.Stall, Reason: reason, Message: message}
	}
	wait := func(message string) membership.Step {
		return membership.Step{Action: membership.Wait, Reason: membership.Terminating, Message: message}
	}
	cases := map[string]struct {
		reason string
		err    error
		moves  bool            // the planned step prepares a successor
		want   membership.Step // the zero Step: another try may get past it
	}{
		"None":     {reason: "nothing stands against it"},
		"Conflict": {reason: "a fresh look helps", err: conflict},
		"Busy":     {reason: "a later try helps", err: apierrors.NewTooManyRequests("busy", 1)},
		"Webhook":  {reason: "a webhook may come back", err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"Foreign": {
			reason: "a person must decide", err: &foreignError{"Service", "db", "Deployment web"},
			want: stall(membership.ForeignObject, "Service db exists and belongs to Deployment web; delete it if nothing needs it, or create this EtcdCluster under another name"),
		},
		"InvalidSpec": {
			reason: "the spec must be mended", err: &invalidError{errors.New("etcd 3.6.16 has no flag foo; leave it out")},
			want: stall(membership.InvalidSpec, "etcd 3.6.16 has no flag foo; leave it out"),
		},
		"Quota": {
			reason: "the message says what to raise, and nothing of our own calls", err: fmt.Errorf("apply Pod db-0: %w", quota),
			want: stall("Refused", `the API server refuses what the spec asks for: pods "db-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`),
		},
		"QuotaForbidsMoving": {
			reason: "it says for which member the volume is", err: fmt.Errorf("apply Pod db-0: %w", quota), moves: true,
			want: stall("Refused", `the API server refuses what the spec asks for: pods "db-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3, while preparing the volume of db-3, to take the place of db-2, whose volume is being deleted`),
		},
		"Invalid": {
			reason: "the API server knows better than the schema", err: fmt.Errorf("apply Pod db-0: %w", invalid),
			want: stall("Refused", `the API server refuses what the spec asks for: Pod "db-0" is invalid: spec: Required value`),
		},
		"Terminating": {
			reason: "what is going must be gone first", err: &terminatingError{"Service", "db"},
			want: wait("waiting for the earlier Service db to be gone"),
		},
		"Namespace": {
			reason: "there is nothing to do about a namespace that is going", err: fmt.Errorf("apply Pod db-0: %w", ending),
			want: wait("the namespace is being deleted"),
		},
		"Later": {
			reason: "etcd takes it in some seconds, and what is waited for is named", err: fmt.Errorf("add learner at etcd 10.0.0.1:2379: %w: %w", membership.ErrLater, errors.New("unhealthy cluster")),
			want: membership.Step{
				Action: membership.Wait, Reason: membership.ScalingUp,
				Message: "adding db-3 as a learner: etcd wants its members to be connected, and in step, for some seconds first",
			},
		},
		"InFlight": {
			reason: "nothing is begun while it is not known what becomes of another operation", err: errInFlight,
			want: membership.Step{
				Action: membership.Wait, Reason: membership.ScalingUp, Message: "waiting for an earlier operation to end, before adding db-3 as a learner",
			},
		},
		"Queued": {
			reason: "it says what it waits for, which flag that is, and what comes then", err: queuedError{limit: 10},
			want: membership.Step{
				Action: membership.Wait, Reason: "Queued",
				Message: "waiting for its turn behind other clusters, of which at most 10 change at a time (--max-changing); then adding db-3 as a learner",
			},
		},
		"QueuedForLong": {
			reason: "it says which clusters keep it waiting", err: queuedError{limit: 10, slow: "a, 2 in other namespaces"},
			want: membership.Step{
				Action: membership.Wait, Reason: "Queued",
				Message: "waiting for its turn behind other clusters, of which at most 10 change at a time (--max-changing); of those, a, 2 in other namespaces took no step for more than a minute; then adding db-3 as a learner",
			},
		},
		"Changed": {reason: "a fresh look helps", err: fmt.Errorf("%w: now it is None", apply.ErrChanged)},
		"SeveralAtOnce": {
			reason: "the first that only a person can change decides", err: errors.Join(quota, conflict),
			want: stall("Refused", `the API server refuses what the spec asks for: pods "db-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`),
		},
	}
	planned := membership.Step{
		Action: membership.AddLearner, Reason: membership.ScalingUp, Members: []string{"db-3"}, Message: "adding db-3 as a learner",
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planned := planned
			if tc.moves {
				planned.Reason, planned.Message = membership.Moving, "preparing the volume of db-3, to take the place of db-2, whose volume is being deleted"
			}
			got, ok := obstacle(tc.err, planned)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != (tc.want.Action != "") {
				t.Errorf("%s: %t, -want +got:\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestAfter(t *testing.T) {
	cases := map[string]struct {
		reason string
		step   membership.Step
		lately bool
		want   time.Duration
	}{
		"Forming":    {reason: "etcd elects a leader within a second or two", step: membership.Step{Action: membership.Wait, Reason: membership.Bootstrapping}, want: whileForming},
		"Bootstrap":  {reason: "the Pods' events are faster", step: membership.Step{Action: membership.Bootstrap, Reason: membership.Bootstrapping}, want: afterAct},
		"Record":     {reason: "the next step follows at once", step: membership.Step{Action: membership.Record, Reason: membership.Formed}, want: afterAct},
		"AddLearner": {reason: "no watch tells of what etcd did", step: membership.Step{Action: membership.AddLearner, Reason: membership.ScalingUp}, want: afterChange},
		"Promote":    {reason: "no watch tells of what etcd did", step: membership.Step{Action: membership.Promote, Reason: membership.Joining}, want: afterChange},
		"Remove":     {reason: "no watch tells of what etcd did", step: membership.Step{Action: membership.Remove, Reason: membership.MemberLost}, want: afterChange},
		"MoveLeader": {reason: "no watch tells of what etcd did", step: membership.Step{Action: membership.MoveLeader, Reason: membership.ScalingDown}, want: afterChange},
		"Join":       {reason: "the events of its Pod are faster", step: membership.Step{Action: membership.Join, Reason: membership.Joining}, want: afterAct},
		"Provision":  {reason: "the events of its Pods are faster", step: membership.Step{Action: membership.Provision, Reason: membership.ScalingUp}, want: afterAct},
		"Discard":    {reason: "the events of its volume are faster", step: membership.Step{Action: membership.Discard, Reason: membership.Retiring}, want: afterAct},
		"Disarm":     {reason: "the next look shows whether it was raised again", step: membership.Step{Action: membership.Disarm, Reason: membership.CorruptMember}, want: afterAct},
		"CatchingUp": {reason: "a learner is quick", step: membership.Step{Action: membership.Wait, Reason: membership.Joining}, lately: true, want: whileJoining},
		"FarBehind":  {reason: "one that takes its time is looked at less often", step: membership.Step{Action: membership.Wait, Reason: membership.Joining}, want: whileForming},
		"Elsewhere":  {reason: "many clusters may form at once", step: membership.Step{Action: membership.Wait, Reason: membership.Bootstrapping}, lately: true, want: whileForming},
		"Growing":    {reason: "what etcd refuses it takes a moment later", step: membership.Step{Action: membership.Wait, Reason: membership.ScalingUp}, want: whileForming},
		"Shrinking":  {reason: "what etcd refuses it takes a moment later", step: membership.Step{Action: membership.Wait, Reason: membership.ScalingDown}, want: whileForming},
		"Wait":       {reason: "etcd cannot be watched", step: membership.Step{Action: membership.Wait, Reason: membership.MemberDown}, want: whileWaiting},
		"Queued":     {reason: "the cluster that had a turn wakes the next", step: membership.Step{Action: membership.Wait, Reason: "Queued"}, want: atRest},
		"Stall":      {reason: "a person is not that fast", step: membership.Step{Action: membership.Stall, Reason: membership.DataLost}, want: atRest},
		"Healthy":    {reason: "the health of etcd is looked at from time to time", step: membership.Step{Action: membership.None, Reason: membership.Healthy}, want: atRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, after(tc.step, tc.lately)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReconcileErrors holds what a pass does when a write fails: what a person must know is in the
// status, what a fresh look mends is not, and nothing is tried again without a pause.
func TestReconcileErrors(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	conflict := apierrors.NewConflict(claims, "db-0", errors.New("changed"))
	quota := apierrors.NewForbidden(claims, "db-0", errors.New("exceeded quota"))
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	on := func(kind string, err error) func(write) error {
		return func(w write) error {
			if w.Kind == kind {
				return err
			}
			return nil
		}
	}
	type result struct {
		Status  bool // it was written
		Failed  bool
		Requeue time.Duration
	}
	cases := map[string]struct {
		reason string
		refuse func(write) error
		want   result
	}{
		"Fine":           {reason: "volumes are provisioned", refuse: on("", nil), want: result{Status: true, Requeue: afterAct}},
		"Refused":        {reason: "the status says why, and no error makes controller-runtime try on", refuse: on("PersistentVolumeClaim", quota), want: result{Status: true, Requeue: atRest}},
		"Conflict":       {reason: "another look comes soon, and the status is made of that", refuse: on("PersistentVolumeClaim", conflict), want: result{Requeue: afterConflict}},
		"Broken":         {reason: "controller-runtime tries again with growing pauses", refuse: on("PersistentVolumeClaim", broken), want: result{Status: true, Failed: true}},
		"StatusConflict": {reason: "another look comes soon", refuse: on("status", conflict), want: result{Requeue: afterConflict}},
		"StatusBroken":   {reason: "controller-runtime tries again with growing pauses", refuse: on("status", broken), want: result{Failed: true}},
		"StatusGone":     {reason: "the EtcdCluster was deleted meanwhile", refuse: on("status", apierrors.NewNotFound(claims, "db")), want: result{Requeue: afterAct}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.ResourceVersion = ""
			s := newStub(t, tc.refuse, c)
			r, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
			got := result{Failed: err != nil, Requeue: r.RequeueAfter}
			for _, w := range s.writes {
				got.Status = got.Status || w.Kind == "status"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: error %v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
