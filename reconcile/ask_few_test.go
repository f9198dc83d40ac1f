package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// lister is a member that follows a leader, and tells how long it may take to list the members.
type lister struct {
	membership.Client
	id     membership.ID  // 0: it does not answer
	within *time.Duration // 0: as long as it likes
}

func (l lister) Status(context.Context) (membership.Endpoint, error) {
	if l.id == 0 {
		return membership.Endpoint{}, errors.New("no answer")
	}
	return membership.Endpoint{ClusterID: 0xc0, MemberID: l.id, Leader: 0xa0}, nil
}

func (l lister) Members(ctx context.Context) ([]membership.Member, error) {
	if deadline, ok := ctx.Deadline(); ok {
		*l.within = time.Until(deadline)
	}
	return nil, errors.New("no quorum")
}

func (lister) Close() error { return nil }

// TestAskFew: where there may be no quorum, nothing waits long for the list of members.
func TestAskFew(t *testing.T) {
	follower := func(name string) api.MemberStatus {
		return api.MemberStatus{Name: name, ID: "a" + name[3:], Role: api.RoleFollower}
	}
	learner := api.MemberStatus{Name: "db-3", ID: "a3", Role: api.RoleLearner}
	three := []api.MemberStatus{follower("db-0"), follower("db-1"), follower("db-2")}
	cases := map[string]struct {
		reason  string
		members []api.MemberStatus
		run     []string // db-0 leads
		silent  []string // of those that run
		hurries bool
	}{
		"All":          {reason: "they answer as they can", members: three, run: []string{"db-0", "db-1", "db-2"}},
		"Two":          {reason: "two of three are a quorum", members: three, run: []string{"db-0", "db-1"}},
		"One":          {reason: "one of three is none", members: three, run: []string{"db-0"}, hurries: true},
		"OneOfOne":     {reason: "one of one is", members: three[:1], run: []string{"db-0"}},
		"WithLearner":  {reason: "a learner is no part of it", members: append(three[:2:2], learner), run: []string{"db-0", "db-1"}},
		"Unknown":      {reason: "it is not known how many there are", run: []string{"db-0"}},
		"OneSilent":    {reason: "the leader and another one answer", members: three, run: []string{"db-0", "db-1", "db-2"}, silent: []string{"db-2"}},
		"TwoSilent":    {reason: "those that run and do not answer may be no members any more", members: three, run: []string{"db-0", "db-1", "db-2"}, silent: []string{"db-1", "db-2"}, hurries: true},
		"LeaderSilent": {reason: "followers have yet to notice that their leader is gone", members: three, run: []string{"db-0", "db-1", "db-2"}, silent: []string{"db-0"}, hurries: true},
		"LeaderDown":   {reason: "the same, and its Pod tells", members: three, run: []string{"db-1", "db-2"}, hurries: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID, c.Status.Members = "c0", tc.members
			pods := map[string]*corev1.Pod{}
			ids := map[string]membership.ID{} // by address
			for _, name := range tc.run {
				pods[name] = newPod(name)
				runningPod(pods[name], time.Time{})
				pods[name].Status.PodIP = name
				if !slices.Contains(tc.silent, name) {
					ids[name] = membership.ParseID("a" + name[3:])
				}
			}
			var within time.Duration
			r := &Reconciler{Dial: func(host string, _ int) (membership.Client, error) {
				return lister{id: ids[host], within: &within}, nil
			}}
			r.ask(t.Context(), c, pods)
			if diff := cmp.Diff(tc.hurries, within > 0 && within <= listInDoubt); diff != "" {
				t.Errorf("%s: within %s: -want +got:\n%s", tc.reason, within, diff)
			}
		})
	}
}
