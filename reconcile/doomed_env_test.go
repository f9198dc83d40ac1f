//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// deleteClaims is kubectl delete pvc --all.
func (s *stage) deleteClaims() {
	s.Helper()
	s.must(s.DeleteAllOf(s.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(s.ns)))
}

// strip takes a claim away from under its Pod, finalizer and all.
func (s *stage) strip(name string) {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	s.must(s.Delete(s.Context(), claim))
	s.must(client.IgnoreNotFound(s.Patch(s.Context(), claim, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
}

// answering fails the test where fewer voters are ever seen to answer.
func (s *stage) answering(c *api.EtcdCluster, least int) {
	s.Helper()
	contract.Follow(s, c, func(seen *api.EtcdCluster) {
		if int(seen.Status.ReadyReplicas) < least {
			s.Errorf("%d voters answer, want %d: %s", seen.Status.ReadyReplicas, least, contract.Describe(seen))
		}
	})
}

// TestDoomed: volumes are deleted under load while their members serve. Each member serves until
// its successor votes, and none of the data is lost.
func TestDoomed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		members int
		strike  func(s *stage, c *api.EtcdCluster)
		least   int // voters that answer all the time
		stay    []string
	}{
		"AllOfThree": {
			reason:  "kubectl delete pvc --all",
			members: 3, strike: func(s *stage, _ *api.EtcdCluster) { s.deleteClaims() }, least: 3,
		},
		"Only": {
			reason:  "one, two, one",
			members: 1, strike: func(s *stage, _ *api.EtcdCluster) { s.deleteClaims() }, least: 1,
		},
		"OneOfThree": {
			reason:  "the leader's, which hands over its leadership",
			members: 3, strike: func(s *stage, c *api.EtcdCluster) { deleteClaim(s, c, c.Status.Leader) }, least: 3,
		},
		"AllOfFiveOneDown": {
			reason:  "one that is away, and is given up, goes before its successor comes, and the others after",
			members: 5, strike: func(s *stage, c *api.EtcdCluster) {
				n := slices.IndexFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Role == api.RoleFollower })
				loseNode(s, c, c.Status.Members[n].Name)
				s.deleteClaims()
			}, least: 4,
		},
		"Stripped": {
			reason:  "the finalizers go too, and what is open in the processes is all that is left",
			members: 3, strike: func(s *stage, c *api.EtcdCluster) {
				for _, name := range namesOf(identityOf(c)) {
					s.strip(name)
				}
			}, least: 3,
		},
		"AllAndResized": {
			reason:  "the size is raised in the same moment",
			members: 3, strike: func(s *stage, c *api.EtcdCluster) {
				s.deleteClaims()
				s.resize(c, 5)
			}, least: 3,
		},
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", int32(tc.members))
			c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(soonReplaced)}
			load := s.laden(c)
			s.await(c, "led", func() bool { return c.Status.Leader != "" })
			before := identityOf(c)
			contract.Available(s, c)
			s.answering(c, tc.least)
			load.await(20)
			leader := c.Status.Leader
			tc.strike(s, c)
			s.await(c, "on volumes that stay", func() bool {
				stay := slices.DeleteFunc(s.claims(c), func(claim corev1.PersistentVolumeClaim) bool {
					return !claim.DeletionTimestamp.IsZero() || !slices.Contains(namesOf(identityOf(c)), claim.Name)
				})
				return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == int(*c.Spec.Replicas) && len(stay) == len(c.Status.Members)
			})
			load.await(20)
			if now := identityOf(c).Cluster; now != before.Cluster {
				t.Errorf("%s: the cluster is another one: %s, then %s", tc.reason, before.Cluster, now)
			}
			if name == "OneOfThree" {
				handedOver(s, leader)
				for member := range before.Members {
					if _, stays := identityOf(c).Members[member]; stays == (member == leader) {
						t.Errorf("%s: members were %v, led by %s, and are %v", tc.reason, namesOf(before), leader, namesOf(identityOf(c)))
					}
				}
			}
			load.check()
			if name != "AllOfFiveOneDown" { // what is on the lost node is there until that returns
				s.clean(c, namesOf(identityOf(c))...)
			}
		})
	}
}

// TestDoomedCannotMove: where no successor can be made no member goes, and the message says what
// keeps the data.
func TestDoomedCannotMove(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		members int32
		forbid  func(s *stage)
		allow   func(s *stage)
		stalled string
		says    []string
	}{
		"NoNode": {
			reason:  "of one member, whose data is nowhere else",
			members: 1,
			forbid:  func(s *stage) { s.hostlet.Cordon() },
			allow:   func(s *stage) { s.must(s.hostlet.Uncordon(s.Context())) },
			stalled: api.ReasonPodPending,
			says:    []string{"to take the place of db-0, whose volume is being deleted", "leave this Pod", "snapshot save FILE"},
		},
		"NoQuota": {
			reason:  "of three",
			members: 3,
			forbid: func(s *stage) {
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "volumes", Namespace: s.ns}}
				quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("3")}
				s.create(quota)
				quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("3")}
				s.must(s.Status().Update(s.Context(), quota)) // as its controller does
			},
			allow: func(s *stage) {
				s.must(s.Delete(s.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "volumes", Namespace: s.ns}}))
			},
			stalled: api.ReasonRefused,
			says:    []string{"exceeded quota", "to take the place of db-", "whose volume is being deleted"},
		},
	}
	for name, tc := range share.Of(t, cases, 1) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", tc.members)
			load := s.laden(c)
			who := identityOf(c)
			contract.Available(s, c)
			s.answering(c, int(tc.members))
			tc.forbid(s)
			s.deleteClaims()
			message := s.stalled(c, tc.stalled)
			for _, says := range tc.says {
				if !strings.Contains(message, says) {
					t.Errorf("%s: the message does not say %q: %s", tc.reason, says, message)
				}
			}
			load.await(20)
			s.same(c, who)
			tc.allow(s)
			s.await(c, "on other volumes", func() bool {
				return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == int(tc.members) &&
					!slices.ContainsFunc(namesOf(identityOf(c)), func(name string) bool { _, was := who.Members[name]; return was })
			})
			load.await(20)
			load.check()
			s.clean(c, namesOf(identityOf(c))...)
		})
	}
}
