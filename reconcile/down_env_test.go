//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// lapse is a member that is down for a while, and has its data.
type lapse struct {
	reason   string
	leader   bool
	down, up func(s *stage, c *api.EtcdCluster, victim string)
	stalled  bool // it needs a person
	says     []string
}

var lapses = map[string]lapse{
	"Silent": {
		reason: "the process of the leader holds its connections and says nothing",
		leader: true,
		down:   func(s *stage, _ *api.EtcdCluster, victim string) { s.must(s.hostlet.Pause(s.ns, victim)) },
		up:     func(s *stage, _ *api.EtcdCluster, victim string) { s.must(s.hostlet.Resume(s.ns, victim)) },
		says:   []string{"waiting for members that do not serve: ", " does not answer"},
	},
	"WrongFlag": {
		reason: "a Pod that was recreated has got an option that etcd refuses, and it is not known with which its member has served",
		down: func(s *stage, c *api.EtcdCluster, victim string) {
			s.change(c, func() { wrongOptions(c) })
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: s.ns}}
			s.must(s.Get(s.Context(), client.ObjectKeyFromObject(claim), claim))
			s.change(claim, func() { delete(claim.Annotations, api.AnnotationServed) })
			s.deletePod(victim)
		},
		up:      func(s *stage, c *api.EtcdCluster, _ string) { s.change(c, func() { c.Spec.Options = nil }) },
		stalled: true,
		says:    []string{"exited with code 1: failed to verify flags", "compact-hash-check-time must be >0", "remove the cause"},
	},
}

// waits until the cluster waits for the victim, and says what it is to say.
func (l lapse) waits(s *stage, c *api.EtcdCluster, victim string) {
	s.Helper()
	kind := api.ConditionReconciling
	if l.stalled {
		kind = api.ConditionStalled
	}
	s.await(c, kind+", which says "+strings.Join(l.says, " and "), func() bool {
		if !is(c, kind, metav1.ConditionTrue) || !is(c, api.ConditionAvailable, metav1.ConditionTrue) {
			return false
		}
		message := meta.FindStatusCondition(c.Status.Conditions, kind).Message
		return !slices.ContainsFunc(append(l.says, victim), func(said string) bool { return !strings.Contains(message, said) })
	})
}

// TestResizeOverLapse: from three to five and back while a member is down that will come back. No
// member gets a vote then, for with one more voter those that serve would be no quorum; on the way
// back the member that is down is the first to go.
func TestResizeOverLapse(t *testing.T) {
	t.Parallel()
	for name, tc := range lapses {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, victim := healing{leader: tc.leader}.struck(s)
			before := identityOf(c)
			tc.down(s, c, victim)
			s.resize(c, 5)
			s.spares(c, "db-3", "db-4")
			tc.waits(s, c, victim)
			if diff := cmp.Diff(before, identityOf(c)); diff != "" {
				t.Errorf("%s: the members changed: -want +got:\n%s", tc.reason, diff)
			}
			load.await(10)
			tc.up(s, c, victim)
			if diff := cmp.Diff([]string{"db-0", "db-1", "db-2", "db-3", "db-4"}, s.sized(c, 5)); diff != "" {
				t.Errorf("%s: members: -want +got:\n%s", tc.reason, diff)
			}

			tc.down(s, c, victim)
			s.resize(c, 3)
			s.await(c, "of three members", func() bool { return len(c.Status.Members) == 3 && c.Status.Replicas == 3 })
			tc.up(s, c, victim)
			if names := s.sized(c, 3); slices.Contains(names, victim) || c.Status.NextOrdinal != 5 {
				t.Errorf("%s: members are %v, next ordinal %d; %s was down", tc.reason, names, c.Status.NextOrdinal, victim)
			}
			load.check()
		})
	}
}

// TestGrowthTakenBackOverLapse: what was prepared goes again, and nothing has happened.
func TestGrowthTakenBackOverLapse(t *testing.T) {
	s := newStage(t)
	tc := lapses["WrongFlag"]
	c, load, victim := healing{leader: tc.leader}.struck(s)
	before := identityOf(c)
	tc.down(s, c, victim)
	s.resize(c, 5)
	s.spares(c, "db-3", "db-4")
	s.resize(c, 3)
	for _, name := range []string{"db-3", "db-4"} {
		s.gone(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}})
	}
	tc.waits(s, c, victim)
	tc.up(s, c, victim)
	s.awaitMembers(c, namesOf(before)...)
	s.clean(c, namesOf(before)...)
	if diff := cmp.Diff(before, identityOf(c)); diff != "" || c.Status.NextOrdinal != 5 {
		t.Errorf("%s: next ordinal %d, members -want +got:\n%s", tc.reason, c.Status.NextOrdinal, diff)
	}
	load.check()
}

// spares waits until these members to come have all that they need, and etcd has not heard of them.
func (s *stage) spares(c *api.EtcdCluster, names ...string) {
	s.Helper()
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
		s.awaitPod(pod, "prepared", func() bool {
			return pod.Annotations[api.AnnotationProvisions] != "" && len(pod.Status.ContainerStatuses) > 0 &&
				pod.Status.ContainerStatuses[0].State.Waiting != nil && pod.Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError"
		})
	}
	for name := range s.listed(c) {
		if slices.Contains(names, name) {
			s.Errorf("etcd lists %s", name)
		}
	}
}
