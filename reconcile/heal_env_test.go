//go:build env

package reconcile_test

import (
	order "cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// healing is one fault in a cluster of three under load.
type healing struct {
	reason       string
	leader       bool // the victim leads
	version      string
	medium       api.Medium
	replaceAfter api.Duration
	// replaceEmptyAfter is how long it is waited for a member whose volume came back empty.
	replaceEmptyAfter api.Duration

	strike func(s *stage, c *api.EtcdCluster, victim string)
	after  func(s *stage, victim string) // once all is well again
}

const soonReplaced = api.Duration("10s")

// struck is a cluster under load, and the member that the fault is to hit.
func (h healing) struck(s *stage) (*api.EtcdCluster, *load, string) {
	s.Helper()
	s.operate()
	c := s.cluster("db", 3)
	c.Spec.Version, c.Spec.Storage.Medium = order.Or(h.version, etcd36), h.medium
	if h.replaceAfter != "" {
		c.Spec.Recovery = &api.Recovery{ReplaceAfter: &h.replaceAfter}
	}
	if h.replaceEmptyAfter != "" {
		c.Spec.Recovery = &api.Recovery{ReplaceEmptyAfter: &h.replaceEmptyAfter}
	}
	contract.Watch(s, c)
	s.create(c)
	s.ready(c)
	s.await(c, "led", func() bool { return c.Status.Leader != "" })
	victim := c.Status.Leader
	if !h.leader {
		n := slices.IndexFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Role == api.RoleFollower })
		victim = c.Status.Members[n].Name
	}
	return c, s.load(c), victim
}

// TestReplaced: a member whose data is lost, or that does not come back, goes for ever, and another
// one takes its place under a name that no member ever had. The others stay the same, and nothing
// of the old one is left.
func TestReplaced(t *testing.T) {
	t.Parallel()
	cases := map[string]healing{
		"VolumeDeleted": {
			reason: "with volume and Pod the data is gone, so that there is nothing to wait for",
			strike: deleteVolume,
		},
		"VolumeDeletedOfLeader": {
			reason: "the same of the leader",
			leader: true, strike: deleteVolume,
		},
		"VolumeAloneOfLeader": {
			reason: "it serves until its successor votes, and hands over its leadership before it goes",
			leader: true, strike: deleteClaim, after: handedOver,
		},
		"Wiped": {
			reason:            "an etcd that does not find its data does not start, and is given up after a while of its own",
			replaceEmptyAfter: soonReplaced, strike: wipe,
		},
		"WipedLeader": {
			reason: "the same of the leader, with the default time",
			leader: true, strike: wipe,
		},
		"Wiped35": {
			reason:  "the same of etcd 3.5",
			version: etcd35, replaceEmptyAfter: soonReplaced, strike: wipe,
		},
		"Wiped37": {
			reason:  "the same of etcd 3.7",
			version: etcd37, replaceEmptyAfter: soonReplaced, strike: wipe,
		},
		"LogDamaged": {
			reason:       "an etcd that cannot read its log does not start",
			replaceAfter: soonReplaced, strike: damage("member/wal/0000000000000000-0000000000000000.wal"),
		},
		"DatabaseDamagedOfLeader": {
			reason: "an etcd that cannot read its database does not start",
			leader: true, replaceAfter: soonReplaced, strike: damage("member/snap/db"),
		},
		"NodeLost": {
			reason:       "a Pod on a node that is gone is never seen to end; when the node is back, nothing of it is left",
			replaceAfter: soonReplaced, strike: loseNode, after: returnNode,
		},
		"NodeLostOfLeader": {
			reason: "the same of the leader",
			leader: true, replaceAfter: soonReplaced, strike: loseNode, after: returnNode,
		},
		"PodLostWithMemory": {
			reason: "on tmpfs the data is gone with the Pod",
			medium: api.MediumMemory,
			strike: func(s *stage, _ *api.EtcdCluster, victim string) { s.deletePod(victim) },
		},
		"LeaderLostWithMemory": {
			reason: "the same of the leader",
			leader: true, medium: api.MediumMemory,
			strike: func(s *stage, _ *api.EtcdCluster, victim string) { s.deletePod(victim) },
		},
		"RemovedByHand": {
			reason: "a member that a person has removed never comes back: it is cleaned up, and the size is that of the spec again",
			strike: removeByHand,
		},
		"LeaderRemovedByHand": {
			reason: "the same of the leader",
			leader: true, strike: removeByHand,
		},
	}
	for name, tc := range share.Of(t, cases, 4) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, victim := tc.struck(s)
			want := identityOf(c)
			delete(want.Members, victim)
			names := append(namesOf(want), "db-3")

			tc.strike(s, c, victim)
			s.awaitMembers(c, names...)
			got := identityOf(c)
			delete(got.Members, "db-3")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the others changed: -want +got:\n%s", tc.reason, diff)
			}
			load.await(50)
			load.check()
			if tc.after != nil {
				tc.after(s, victim)
			}
			s.clean(c, names...)
		})
	}
}

// TestKept: what comes back by itself is waited for, and no member loses its place.
func TestKept(t *testing.T) {
	t.Parallel()
	cases := map[string]healing{
		"Paused": {
			reason:       "a member that is silent for a while runs, and has its data",
			replaceAfter: soonReplaced, strike: pause,
		},
		"PausedLeader": {
			reason: "the same of the leader",
			leader: true, replaceAfter: soonReplaced, strike: pause,
		},
		"MajorityOfPods": {
			reason:       "without a quorum nothing is changed, and Pods come back on their volumes",
			replaceAfter: soonReplaced,
			strike: func(s *stage, c *api.EtcdCluster, victim string) {
				for _, m := range c.Status.Members {
					if m.Name != victim {
						s.deletePod(m.Name)
					}
				}
			},
		},
		"Killed": {
			reason: "a process that was killed is started again on its data",
			leader: true, replaceAfter: soonReplaced,
			strike: func(s *stage, _ *api.EtcdCluster, victim string) { s.must(s.hostlet.Kill(s.ns, victim)) },
		},
		"Accused": {
			reason: "a member that etcd accuses is no worse than the others: their data is equal",
			strike: func(s *stage, c *api.EtcdCluster, victim string) { s.raiseCorrupt(c, memberID(c, victim)) },
		},
		"AccusedLeader": {
			reason: "the same of the leader, of etcd 3.5",
			leader: true, version: etcd35,
			strike: func(s *stage, c *api.EtcdCluster, victim string) { s.raiseCorrupt(c, memberID(c, victim)) },
		},
		"AllAccused": {
			reason: "an alarm that names no member accuses all of them", version: etcd37,
			strike: func(s *stage, c *api.EtcdCluster, _ string) { s.raiseCorrupt(c, 0) },
		},
	}
	for name, tc := range share.Of(t, cases, 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, victim := tc.struck(s)
			want := identityOf(c)
			pods := s.podUIDs(c)
			noticed := s.once(c, func(seen *api.EtcdCluster) bool { return is(seen, api.ConditionReady, metav1.ConditionFalse) })
			tc.strike(s, c, victim)
			noticed("not ready")
			s.awaitMembers(c, namesOf(want)...)
			load.await(50)
			load.check()
			if diff := cmp.Diff(want, identityOf(c)); diff != "" {
				t.Errorf("%s: the members changed: -want +got:\n%s", tc.reason, diff)
			}
			if c.Status.NextOrdinal != 3 {
				t.Errorf("%s: ordinals up to %d were given", tc.reason, c.Status.NextOrdinal)
			}
			if diff := cmp.Diff(pods, s.podUIDs(c)); name != "MajorityOfPods" && diff != "" {
				t.Errorf("%s: Pods are not the same: -want +got:\n%s", tc.reason, diff)
			}
			s.clean(c, namesOf(want)...)
		})
	}
}

// once follows the cluster from now on. The function that it returns waits until some state was so:
// one that has passed since counts as well, which a look at the present would miss.
func (s *stage) once(c *api.EtcdCluster, so func(*api.EtcdCluster) bool) func(wanted string) {
	s.Helper()
	was := make(chan struct{})
	first := sync.OnceFunc(func() { close(was) })
	contract.Follow(s, c, func(seen *api.EtcdCluster) {
		if so(seen) {
			first()
		}
	})
	return func(wanted string) {
		s.Helper()
		select {
		case <-was:
		case <-time.After(patience):
			s.Fatalf("waited %s for %s to be %s", patience, c.Name, wanted)
		}
	}
}

// TestReplaceAfter: the default gives a node the time to boot. What is done then is done at once
// when the spec says so.
func TestReplaceAfter(t *testing.T) {
	s := newStage(t)
	c, load, victim := healing{}.struck(s)
	before := identityOf(c)
	damage("member/snap/db")(s, c, victim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: s.ns}}
	s.awaitPod(pod, "given time", func() bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount >= 3 && time.Since(notReadySince(pod)) > 10*time.Second
	})
	s.await(c, "waiting", func() bool { return is(c, api.ConditionReconciling, metav1.ConditionTrue) })
	if diff := cmp.Diff(before, identityOf(c)); diff != "" || c.Status.NextOrdinal != 3 {
		t.Errorf("the members changed: -want +got:\n%s", diff)
	}
	if message := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReconciling).Message; !strings.Contains(message, victim) {
		t.Errorf("the condition does not name %s: %s", victim, message)
	}
	load.await(10)

	s.change(c, func() { c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(soonReplaced)} })
	delete(before.Members, victim)
	names := append(namesOf(before), "db-3")
	s.awaitMembers(c, names...)
	load.check()
	s.clean(c, names...)
}

func notReadySince(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Now()
}
