package contract

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	condition := func(kind string, value metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: value, ObservedGeneration: 2, Reason: "Reason", Message: "message"}
	}
	served := []metav1.Condition{condition(api.ConditionAvailable, metav1.ConditionTrue), condition(api.ConditionDegraded, metav1.ConditionFalse)}
	with := func(more ...metav1.Condition) []metav1.Condition { return append(served[:2:2], more...) }
	cases := map[string]struct {
		reason     string
		observed   int64
		conditions []metav1.Condition
		want       status.Status
		breaches   int
	}{
		"Fresh":       {reason: "not looked at yet", observed: -1, want: status.InProgressStatus},
		"Ready":       {reason: "all is well", observed: 2, conditions: with(condition(api.ConditionReady, metav1.ConditionTrue)), want: status.CurrentStatus},
		"Old":         {reason: "the spec is newer", observed: 1, conditions: nil, want: status.InProgressStatus, breaches: 3},
		"Reconciling": {reason: "at work", observed: 2, conditions: with(condition(api.ConditionReady, metav1.ConditionFalse), condition(api.ConditionReconciling, metav1.ConditionTrue)), want: status.InProgressStatus},
		"Stalled":     {reason: "a person must act", observed: 2, conditions: with(condition(api.ConditionReady, metav1.ConditionFalse), condition(api.ConditionStalled, metav1.ConditionTrue)), want: status.FailedStatus},
		"Both": {
			reason: "a cluster cannot be at work and stuck", observed: 2, want: status.InProgressStatus, breaches: 2,
			conditions: with(condition(api.ConditionReady, metav1.ConditionFalse), condition(api.ConditionReconciling, metav1.ConditionTrue), condition(api.ConditionStalled, metav1.ConditionTrue)),
		},
		"NoReady": {reason: "kstatus takes a status without Ready for current", observed: 2, conditions: served, want: status.CurrentStatus, breaches: 2},
		"False": {
			reason: "abnormal conditions are there only while True", observed: 2, want: status.CurrentStatus, breaches: 1,
			conditions: with(condition(api.ConditionReady, metav1.ConditionTrue), condition(api.ConditionStalled, metav1.ConditionFalse)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: api.EtcdClusterStatus{ObservedGeneration: tc.observed, Conditions: tc.conditions}}
			got, breaches := Check(c)
			if got != tc.want || len(breaches) != tc.breaches {
				t.Errorf("%s: Check(...) = %s, %q; want %s, %d breaches", tc.reason, got, breaches, tc.want, tc.breaches)
			}
		})
	}
}
