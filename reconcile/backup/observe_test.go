package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDescribed: how a Job has ended.
func TestDescribed(t *testing.T) {
	t.Parallel()
	type end struct {
		Ended              time.Time
		Succeeded, Overran bool
	}
	cases := map[string]struct {
		reason string
		args   []batchv1.JobCondition
		want   end
	}{
		"Runs": {reason: "It has not"},
		"Stopping": {
			reason: "Its Pod has not ended yet",
			args:   []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded}},
		},
		"Complete": {
			reason: "Well",
			args:   []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(born)}},
			want:   end{Ended: born, Succeeded: true},
		},
		"Failed": {
			reason: "Its Pod has failed",
			args:   []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded, LastTransitionTime: metav1.NewTime(born)}},
			want:   end{Ended: born},
		},
		"Overran": {
			reason: "It took longer than activeDeadlineSeconds",
			args:   []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded, LastTransitionTime: metav1.NewTime(born)}},
			want:   end{Ended: born, Overran: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			got := described(o.Backup, &batchv1.Job{Status: batchv1.JobStatus{Conditions: tc.args}})
			if diff := cmp.Diff(tc.want, end{got.Ended, got.Succeeded, got.Overran}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
