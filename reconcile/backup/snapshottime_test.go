package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestSnapshotTime: a node whose clock is wrong neither hides that there has been no good snapshot
// for long, nor makes an old one the newest.
func TestSnapshotTime(t *testing.T) {
	t.Parallel()
	made := clock(9, 0)
	cases := map[string]struct {
		reason string
		taken  time.Time
		want   time.Time
	}{
		"True":   {reason: "it was taken between", taken: made.Add(time.Minute), want: made.Add(time.Minute)},
		"Ahead":  {reason: "the clock of the node is a year ahead", taken: made.AddDate(1, 0, 0), want: made},
		"Behind": {reason: "the clock of the node is an hour behind", taken: made.Add(-time.Hour), want: made},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
			b.Status.TakenAt, b.Status.VerifiedAt = instant(tc.taken), instant(tc.taken)
			b.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(made.Add(2 * time.Minute))}}
			if diff := cmp.Diff(tc.want, snapshotTime(b)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			status := scheduleStatus(Scheduled{Schedule: nightly().Schedule, Backups: []api.EtcdBackup{*b}}, ScheduleStep{})
			if diff := cmp.Diff(instant(tc.want), status.LastSuccessfulTime); diff != "" {
				t.Errorf("%s: lastSuccessfulTime: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
