package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// lister tells how long it may take to list the members.
type lister struct {
	membership.Client
	within *time.Duration // 0: as long as it likes
}

func (lister) Status(context.Context) (membership.Endpoint, error) {
	return membership.Endpoint{ClusterID: 0xc0, MemberID: 0xa0, Leader: 0xa0}, nil
}

func (l lister) Members(ctx context.Context) ([]membership.Member, error) {
	if deadline, ok := ctx.Deadline(); ok {
		*l.within = time.Until(deadline)
	}
	return nil, errors.New("no quorum")
}

func (lister) Close() error { return nil }

// TestAskFew: where fewer members run than the quorum of the last list, nothing waits long for
// another one.
func TestAskFew(t *testing.T) {
	follower := func(name string) api.MemberStatus {
		return api.MemberStatus{Name: name, ID: "a0", Role: api.RoleFollower}
	}
	learner := api.MemberStatus{Name: "db-3", ID: "a3", Role: api.RoleLearner}
	three := []api.MemberStatus{follower("db-0"), follower("db-1"), follower("db-2")}
	cases := map[string]struct {
		reason  string
		members []api.MemberStatus
		run     []string
		hurries bool
	}{
		"All":         {reason: "they answer as they can", members: three, run: []string{"db-0", "db-1", "db-2"}},
		"Two":         {reason: "two of three are a quorum", members: three, run: []string{"db-0", "db-1"}},
		"One":         {reason: "one of three is none", members: three, run: []string{"db-0"}, hurries: true},
		"OneOfOne":    {reason: "one of one is", members: three[:1], run: []string{"db-0"}},
		"WithLearner": {reason: "a learner is no part of it", members: append(three[:2:2], learner), run: []string{"db-0", "db-1"}},
		"Unknown":     {reason: "nobody knows how many there are", run: []string{"db-0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID, c.Status.Members = "c0", tc.members
			pods := map[string]*corev1.Pod{}
			for _, name := range tc.run {
				pods[name] = newPod(name)
				runningPod(pods[name], time.Time{})
			}
			var within time.Duration
			r := &Reconciler{Dial: func(string, int) (membership.Client, error) { return lister{within: &within}, nil }}
			r.ask(t.Context(), c, pods)
			if diff := cmp.Diff(tc.hurries, within > 0 && within <= afterFew); diff != "" {
				t.Errorf("%s: within %s: -want +got:\n%s", tc.reason, within, diff)
			}
		})
	}
}
