package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestSinceWhen holds since when the status says that a member is down, and that its volume is
// empty.
func TestSinceWhen(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC))
	earlier := metav1.NewTime(now.Add(-time.Minute))
	type times struct{ Down, Empty *metav1.Time }
	both := times{&earlier, &earlier}
	cases := map[string]struct {
		reason string
		before times
		seen   membership.Instance
		want   times
	}{
		"Serves":     {reason: "nothing is wrong", seen: membership.Instance{Endpoint: membership.Endpoint{MemberID: 1}}},
		"Silent":     {reason: "its Pod has no problem: the network may be at fault"},
		"Ready":      {reason: "its kubelet finds that it serves", before: both, seen: membership.Instance{Pod: membership.Pod{Ready: true, Problem: "x"}}},
		"Answers":    {reason: "it is back", before: both, seen: membership.Instance{Endpoint: membership.Endpoint{MemberID: 1}}},
		"Publishes":  {reason: "it has found its data", before: both, seen: membership.Instance{Endpoint: membership.Endpoint{Publishing: 1}}},
		"Crashed":    {reason: "it is seen for the first time", seen: membership.Instance{Pod: membership.Pod{Problem: "x"}}, want: times{Down: &now}},
		"Crashing":   {reason: "it was seen before", before: times{Down: &earlier}, seen: membership.Instance{Pod: membership.Pod{Problem: "x"}}, want: times{Down: &earlier}},
		"TriedAgain": {reason: "it runs for a moment between two crashes", before: times{Down: &earlier}, want: times{Down: &earlier}},
		"Empty":      {reason: "it was down before, and is found empty now", before: times{Down: &earlier}, seen: membership.Instance{Pod: membership.Pod{Problem: "x", Empty: true}}, want: times{&earlier, &now}},
		"StillEmpty": {reason: "patience goes on", before: both, seen: membership.Instance{Pod: membership.Pod{Problem: "x", Empty: true}}, want: both},
		"Found":      {reason: "it has got further, and is down for something else", before: both, seen: membership.Instance{Pod: membership.Pod{Problem: "x"}}, want: times{Down: &earlier}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got times
			got.Down, got.Empty = sinceWhen(api.MemberStatus{DownSince: tc.before.Down, EmptySince: tc.before.Empty}, tc.seen, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
