package reconcile

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestLossAsSeen: an operator takes over a cluster whose majority is lost, and whose status another
// one has written. However its clock is set, it waits for as long as the spec says.
func TestLossAsSeen(t *testing.T) {
	type result struct{ Long, Lately, LostLately bool }
	at := func(d time.Duration) func(*api.EtcdCluster, time.Time) {
		return func(c *api.EtcdCluster, now time.Time) {
			since := metav1.NewTime(now.Add(d))
			c.Status.QuorumLoss = &api.QuorumLoss{ClusterID: "c0", Since: since, LostSince: &since}
			c.Status.Conditions = []metav1.Condition{{
				Type: api.ConditionAvailable, Status: metav1.ConditionFalse, LastTransitionTime: since,
			}}
		}
	}
	young, old := result{Lately: true, LostLately: true}, result{Long: true}
	for name, tc := range map[string]struct {
		reason string
		args   func(*api.EtcdCluster, time.Time) // as it is seen first
		later  func(*api.EtcdCluster, time.Time) // as it is seen after five minutes more; nil: the same
		wait   time.Duration
		want   result
	}{
		"ClockAhead":  {reason: "the loss is a second old, and this clock is 11 minutes ahead", args: at(-11*time.Minute - time.Second), want: young},
		"ClockBehind": {reason: "this clock is an hour behind", args: at(time.Hour), want: young},
		"Almost":      {reason: "the time is almost over", args: at(-time.Hour), wait: 10*time.Minute - time.Second, want: result{LostLately: true}},
		"Over":        {reason: "it was seen for ten minutes", args: at(-time.Second), wait: 10 * time.Minute, want: old},
		"OverBehind":  {reason: "a clock that is behind holds up nothing", args: at(time.Hour), wait: 10 * time.Minute, want: old},
		"Another": {
			reason: "it was over for a while, and then it was lost again", args: at(-time.Hour), later: at(-time.Hour + time.Minute), wait: 6 * time.Minute,
			want: result{LostLately: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				c := newCluster()
				c.Status.ClusterID = "c0"
				c.Spec.Recovery = &api.Recovery{QuorumLoss: api.QuorumLossFromBackup}
				c.Status.Restore = inPhase(api.RestorePending, refusing, func(r *api.ClusterRestore) { r.OnQuorumLoss = true })
				s := newStub(t, nil)
				s.StallAfter, s.ServerTime = time.Minute, &ServerTime{}
				s.ServerTime.note(now.UTC().Format(http.TimeFormat), now)
				tc.args(c, now)
				s.limits(c, now)
				if tc.later != nil {
					time.Sleep(5 * time.Minute) //nolint:forbidigo // on a clock of the test
					tc.later(c, time.Now())
					s.limits(c, time.Now())
				}
				time.Sleep(tc.wait) //nolint:forbidigo // on a clock of the test
				l := s.limits(c, time.Now())
				p := inPlace(c, l)
				got := result{lossFacts(c, l).Long, p.Lately, p.LostLately}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
