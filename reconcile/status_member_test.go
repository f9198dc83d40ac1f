package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// caughtUp puts a learner called db-3 into the facts that follows the leader.
func caughtUp(seen *observed) {
	spare(seen, 3)
	learner(seen, "db-3")
	e := &seen.Instances[3].Endpoint
	*e = seen.Instances[0].Endpoint
	e.MemberID, e.Learner = 0xa3, true
}

// TestStatusMembers holds which instance is a member, and how it is, while members come and go.
func TestStatusMembers(t *testing.T) {
	removed := func(seen *observed) { seen.Members = seen.Members[:2] }
	unlisted := func(seen *observed) { seen.Reach, seen.Members = membership.ReachSome, nil }
	add := func(s *api.EtcdClusterStatus, m api.MemberStatus) {
		s.Members = append(s.Members, m)
	}
	type counts struct {
		Members              []api.MemberStatus
		Replicas, Ready, Max int32
		Version              string
	}
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		want   func(*api.EtcdClusterStatus)
	}{
		"Spare": {
			reason: "a volume for a member to come is none, and neither is the Pod that has it made; its name is used up",
			seen:   func(seen *observed) { spare(seen, 3) },
			want:   func(s *api.EtcdClusterStatus) { s.NextOrdinal = 4 },
		},
		"SpareUnlisted": {
			reason: "nor without a list",
			seen:   func(seen *observed) { spare(seen, 3); unlisted(seen) },
			want:   func(s *api.EtcdClusterStatus) { s.NextOrdinal = 4 },
		},
		"LearnerServing": {
			reason: "it is a member, and no ready replica",
			seen:   caughtUp,
			want: func(s *api.EtcdClusterStatus) {
				s.NextOrdinal, s.Replicas = 4, 4
				add(s, api.MemberStatus{Name: "db-3", ID: "a3", Version: "3.6.16", Role: api.RoleLearner, Health: api.HealthHealthy, Volume: "db-3"})
			},
		},
		"Publishing": {
			reason: "it has a vote, and clients cannot reach it yet",
			seen:   func(seen *observed) { publishing(seen, 2) },
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 2
				gone(s, 2, api.HealthUnreachable)
				s.Members[2].Version = "3.6.16"
			},
		},
		"Removed": {
			reason: "what is not on etcd's list is no member, though its process and its volume are there",
			seen:   removed,
			want:   func(s *api.EtcdClusterStatus) { s.Members, s.Replicas, s.ReadyReplicas = s.Members[:2], 2, 2 },
		},
		"Retired": {
			reason: "what is kept of a member is none, list or no list",
			seen: func(seen *observed) {
				unlisted(seen)
				seen.Instances[2].Volume.Retired, seen.Instances[2].Pod, seen.Instances[2].Endpoint = true, membership.Pod{}, membership.Endpoint{}
			},
			want: func(s *api.EtcdClusterStatus) { s.Members, s.Replicas, s.ReadyReplicas = s.Members[:2], 2, 2 },
		},
		"VolumeGone": {
			reason: "its data is gone",
			seen: func(seen *observed) {
				down(seen, 2)
				seen.Instances[2].Volume = membership.Volume{}
			},
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 2
				gone(s, 2, api.HealthLost)
				s.Members[2].Volume = ""
			},
		},
		"VolumeOfAnother": {
			reason: "there is a volume, and it is that of an earlier member",
			seen: func(seen *observed) {
				down(seen, 2)
				seen.Instances[2].Volume.MemberID = 0xb2
			},
			want: func(s *api.EtcdClusterStatus) { s.ReadyReplicas = 2; gone(s, 2, api.HealthLost) },
		},
		"VolumeGoing": {
			reason: "it is there as long as its Pod",
			seen: func(seen *observed) {
				down(seen, 2)
				seen.Instances[2].Volume.Terminating = true
			},
			want: func(s *api.EtcdClusterStatus) { s.ReadyReplicas = 2; gone(s, 2, api.HealthUnreachable) },
		},
		"Placed": {
			reason: "where it runs, and what its Pod says of why it does not serve",
			seen: func(seen *observed) {
				down(seen, 2)
				seen.Instances[0].Pod.Problem = "is about to be said otherwise" // it answers
				seen.Instances[2].Pod.Problem = "exited with code 2" + strings.Repeat("!", 2000)
				pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
				pod.Labels = map[string]string{corev1.LabelTopologyZone: "a"}
				seen.pods = map[string]*corev1.Pod{"db-1": pod, "db-2": {Spec: corev1.PodSpec{NodeName: "node-2"}}}
			},
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 2
				gone(s, 2, api.HealthUnreachable)
				s.Members[2].Message = "exited with code 2" + strings.Repeat("!", 1024-18-3) + "..."
				s.Members[1].Node, s.Members[1].Zone, s.Members[2].Node = "node-1", "a", "node-2"
			},
		},
		"ServingWithoutVolume": {
			reason: "a member that answers is not lost, whatever the volumes say",
			seen:   func(seen *observed) { seen.Instances[2].Volume = membership.Volume{} },
			want:   func(s *api.EtcdClusterStatus) { s.Members[2].Volume = "" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen, want := newCluster(), healthy(), healthyStatus()
			tc.seen(&seen)
			tc.want(&want)
			of := func(s api.EtcdClusterStatus) counts {
				return counts{s.Members, s.Replicas, s.ReadyReplicas, s.NextOrdinal, s.Version}
			}
			got := status(c, seen, membership.Step{Action: membership.Wait, Reason: membership.Joining, Message: "waiting"})
			if diff := cmp.Diff(of(want), of(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDegraded holds when a cluster has less redundancy than the spec asks for.
func TestDegraded(t *testing.T) {
	two := func(seen *observed) { seen.Members = seen.Members[:2] }
	cases := map[string]struct {
		reason string
		size   int32
		before metav1.ConditionStatus
		seen   func(*observed)
		want   metav1.ConditionStatus
	}{
		"Healthy":          {reason: "all are there", size: 3, seen: func(*observed) {}, want: metav1.ConditionFalse},
		"Growing":          {reason: "the spec asks for more than there were ever", size: 5, before: metav1.ConditionFalse, seen: func(*observed) {}, want: metav1.ConditionFalse},
		"CatchingUp":       {reason: "a learner is not counted on", size: 5, before: metav1.ConditionFalse, seen: caughtUp, want: metav1.ConditionFalse},
		"Shrinking":        {reason: "the rest is all well", size: 1, before: metav1.ConditionFalse, seen: two, want: metav1.ConditionFalse},
		"Down":             {reason: "one voter is missing", size: 3, before: metav1.ConditionFalse, seen: func(seen *observed) { down(seen, 2) }, want: metav1.ConditionTrue},
		"DownWhileGrowing": {reason: "one voter is missing", size: 5, before: metav1.ConditionFalse, seen: func(seen *observed) { caughtUp(seen); down(seen, 2) }, want: metav1.ConditionTrue},
		"Publishing":       {reason: "it takes part, and will serve in a moment", size: 3, before: metav1.ConditionFalse, seen: func(seen *observed) { publishing(seen, 2) }, want: metav1.ConditionFalse},
		"PublishingAfter":  {reason: "it does not serve yet in the place of the failed one", size: 3, before: metav1.ConditionTrue, seen: func(seen *observed) { publishing(seen, 2) }, want: metav1.ConditionTrue},
		"Removed":          {reason: "the failed one is gone, and none has taken its place", size: 3, before: metav1.ConditionTrue, seen: two, want: metav1.ConditionTrue},
		"Replacing": {
			reason: "its successor has no vote yet", size: 3, before: metav1.ConditionTrue, want: metav1.ConditionTrue,
			seen: func(seen *observed) { caughtUp(seen); seen.Members = append(seen.Members[:2:2], seen.Members[3]) },
		},
		"Replaced": {
			reason: "its successor is a voter", size: 3, before: metav1.ConditionTrue, want: metav1.ConditionFalse,
			seen: func(seen *observed) {
				caughtUp(seen)
				seen.Members = append(seen.Members[:2:2], seen.Members[3])
				seen.Members[2].Learner, seen.Instances[3].Endpoint.Learner = false, false
			},
		},
		"Back":       {reason: "it has come back", size: 3, before: metav1.ConditionTrue, seen: func(*observed) {}, want: metav1.ConditionFalse},
		"SizeGiven":  {reason: "the spec asks for no more than there are", size: 2, before: metav1.ConditionTrue, seen: two, want: metav1.ConditionFalse},
		"Hibernated": {reason: "no redundancy is asked for", size: 0, before: metav1.ConditionTrue, seen: func(seen *observed) { unreachable(seen) }, want: metav1.ConditionFalse},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Spec.Replicas = &tc.size
			if tc.before != "" {
				c.Status.Conditions = conditions(condition(api.ConditionDegraded, tc.before, "Before", "before"))
			}
			tc.seen(&seen)
			step := membership.Step{Action: membership.Wait, Reason: membership.MemberDown, Message: "waiting"}
			want := condition(api.ConditionDegraded, tc.want, "MemberDown", "waiting")
			if tc.want == metav1.ConditionFalse {
				want.Reason, want.Message = "Healthy", "every member is healthy"
			}
			if tc.size == 0 {
				want.Reason, want.Message = "Hibernated", "spec.replicas is 0"
			}
			want.ObservedGeneration = 7
			got := meta.FindStatusCondition(status(c, seen, step).Conditions, api.ConditionDegraded)
			if diff := cmp.Diff(&want, got, ignoreTimes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
