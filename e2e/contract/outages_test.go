package contract

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

func TestOutages(t *testing.T) {
	t.Parallel()
	const yes, no, unsaid = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionStatus("")
	type status struct {
		second    int
		available metav1.ConditionStatus
	}
	cases := map[string]struct {
		reason string
		seen   []status
		taken  []int // at these seconds
		want   []time.Duration
	}{
		"Forming": {reason: "what has not served yet cannot be away", seen: []status{{0, unsaid}, {1, no}, {5, yes}}, taken: []int{9}, want: []time.Duration{0}},
		"Served":  {reason: "it was never away", seen: []status{{0, yes}, {5, yes}}, taken: []int{9}, want: []time.Duration{0}},
		"Longest": {reason: "of two the longer counts", seen: []status{{0, yes}, {1, no}, {2, yes}, {3, no}, {4, no}, {7, yes}}, taken: []int{9}, want: []time.Duration{4 * time.Second}},
		"Unsaid":  {reason: "a status without the condition says nothing of serving", seen: []status{{0, yes}, {1, unsaid}, {3, yes}}, taken: []int{9}, want: []time.Duration{2 * time.Second}},
		"Lasting": {reason: "one that lasts counts as long as it lasts", seen: []status{{0, yes}, {1, no}}, taken: []int{3, 6}, want: []time.Duration{2 * time.Second, 5 * time.Second}},
		"Taken":   {reason: "one that is over counts once", seen: []status{{0, yes}, {1, no}, {2, yes}}, taken: []int{3, 6}, want: []time.Duration{time.Second, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, o := time.Now(), &Outages{}
			at := func(second int) time.Time { return begun.Add(time.Duration(second) * time.Second) }
			for _, s := range tc.seen {
				c := &api.EtcdCluster{}
				if s.available != unsaid {
					c.Status.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: s.available}}
				}
				o.see(at(s.second), c)
			}
			var got []time.Duration
			for _, second := range tc.taken {
				longest, _ := o.take(at(second))
				got = append(got, longest)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
