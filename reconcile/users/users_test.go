package users

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestConditions: what is said is read by kstatus, and what held before and does not any more is
// gone.
func TestConditions(t *testing.T) {
	t.Parallel()
	const reason, message = "Reason", "message"
	condition := func(kind string, value metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: 2}
	}
	cases := map[string]struct {
		reason  string
		args    said
		want    []metav1.Condition
		kstatus status.Status
	}{
		"Ready":   {reason: "it is applied", args: said{ready: true}, want: []metav1.Condition{condition(api.ConditionReady, metav1.ConditionTrue)}, kstatus: status.CurrentStatus},
		"Waits":   {reason: "it is tried again", args: said{}, want: []metav1.Condition{condition(api.ConditionReady, metav1.ConditionFalse), condition(api.ConditionReconciling, metav1.ConditionTrue)}, kstatus: status.InProgressStatus},
		"Stalled": {reason: "a person must act", args: said{stalled: true}, want: []metav1.Condition{condition(api.ConditionReady, metav1.ConditionFalse), condition(api.ConditionStalled, metav1.ConditionTrue)}, kstatus: status.FailedStatus},
	}
	for name, tc := range cases {
		for _, before := range [][]metav1.Condition{nil, {{Type: api.ConditionReconciling, Status: metav1.ConditionTrue}}, {{Type: api.ConditionStalled, Status: metav1.ConditionTrue}}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				args := tc.args
				args.reason, args.message = reason, message
				u := &api.EtcdUser{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
				u.Status.ObservedGeneration, u.Status.Conditions = 2, conditions(before, 2, args)
				sorted := cmpopts.SortSlices(func(a, b metav1.Condition) bool { return a.Type < b.Type })
				if diff := cmp.Diff(tc.want, u.Status.Conditions, sorted, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
				raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
				if err != nil {
					t.Fatal(err)
				}
				judged, err := status.Compute(&unstructured.Unstructured{Object: raw})
				if err != nil {
					t.Fatal(err)
				}
				if judged.Status != tc.kstatus {
					t.Errorf("%s: kstatus: want %s, got %s", tc.reason, tc.kstatus, judged.Status)
				}
			})
		}
	}
}

// TestRests: while a cluster cannot be asked, what was applied counts as applied, and a newer spec
// does not.
func TestRests(t *testing.T) {
	t.Parallel()
	wait := waiting("waiting", time.Second)
	applied := said{ready: true, reason: api.ReasonApplied, message: "applied"}
	type args struct {
		before     []metav1.Condition
		generation int64
		what       said
	}
	kept := applied
	kept.after = time.Second
	wrong := said{stalled: true, reason: api.ReasonInvalidSpec, message: "no TLS"}
	cases := map[string]struct {
		reason string
		args   args
		want   said
	}{
		"New":     {reason: "nothing was applied yet", args: args{generation: 1, what: wait}, want: wait},
		"Applied": {reason: "it holds still", args: args{before: conditions(nil, 1, applied), generation: 1, what: wait}, want: kept},
		"Changed": {reason: "the newer spec is not applied", args: args{before: conditions(nil, 1, applied), generation: 2, what: wait}, want: wait},
		"Wrong":   {reason: "what a person must do is said", args: args{before: conditions(nil, 1, applied), generation: 1, what: wrong}, want: wrong},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, rests(tc.args.before, tc.args.generation, tc.args.what), cmp.AllowUnexported(said{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPermissions: the ranges of a spec are those that etcd writes.
func TestPermissions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []api.Permission
		want   []membership.Permission
	}{
		"Key":    {reason: "one key", args: []api.Permission{{Access: api.AccessRead, Key: new("a")}}, want: []membership.Permission{{Key: "a", Access: membership.AccessRead}}},
		"Prefix": {reason: "up to the next", args: []api.Permission{{Access: api.AccessWrite, Prefix: new("/a/")}}, want: []membership.Permission{{Key: "/a/", End: "/a0", Access: membership.AccessWrite}}},
		"All":    {reason: "the empty prefix", args: []api.Permission{{Access: api.AccessRead, Prefix: new("")}}, want: []membership.Permission{{Key: "\x00", End: "\x00", Access: membership.AccessRead}}},
		"Range":  {reason: "as it is written", args: []api.Permission{{Access: api.AccessRead, From: new("a"), To: new("b")}}, want: []membership.Permission{{Key: "a", End: "b", Access: membership.AccessRead}}},
		"NoEnd":  {reason: "to the last key", args: []api.Permission{{Access: api.AccessRead, From: new("a")}}, want: []membership.Permission{{Key: "a", End: "\x00", Access: membership.AccessRead}}},
		"Both": {
			reason: "two for the same keys", args: []api.Permission{{Access: api.AccessRead, Key: new("a")}, {Access: api.AccessWrite, Key: new("a")}},
			want: []membership.Permission{{Key: "a", Access: membership.AccessReadWrite}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, permissions(&api.EtcdRole{Spec: api.EtcdRoleSpec{Permissions: tc.args}})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
