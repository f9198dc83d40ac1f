//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// TestResizeSuspended: while the cluster is suspended its size changes in the spec alone. The
// condition says what would come next, and when the suspension ends it comes.
func TestResizeSuspended(t *testing.T) {
	t.Parallel()
	type wish struct {
		size int32
		says string
	}
	cases := map[string]struct {
		reason string
		begin  func(s *stage, c *api.EtcdCluster) // before the cluster is suspended
		wishes []wish                             // while it is
		end    []string
	}{
		"Up": {
			reason: "nothing is prepared", wishes: []wish{{1, "db-2"}, {5, "preparing the volumes of db-3, db-4"}},
			end: []string{"db-0", "db-1", "db-2", "db-3", "db-4"},
		},
		"Down": {
			reason: "no member goes, nor the leadership", wishes: []wish{{5, "preparing the volumes of db-3, db-4"}, {1, "db-2"}},
			end: []string{"db-0"},
		},
		"Joining": {
			reason: "a learner stays what it is",
			begin: func(s *stage, c *api.EtcdCluster) {
				s.resize(c, 5)
				s.await(c, "with a learner", func() bool { return learning(c) })
			},
			wishes: []wish{{5, "db-3"}, {3, "db-"}, {5, "db-3"}}, // what comes next depends on how far it has come
			end:    []string{"db-0", "db-1", "db-2", "db-3", "db-4"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			f := newFault("", "")
			s.operate(f.between)
			c := s.cluster("db", 3)
			load := s.laden(c)
			if tc.begin != nil {
				tc.begin(s, c)
			}
			served := contract.Available(s, c)
			s.change(c, func() { c.Spec.Suspend = true })
			s.await(c, "seen", func() bool { return c.Status.ObservedGeneration == c.Generation })
			f.arm()
			before := s.roles(c)
			uids := s.uids(c)
			for _, wish := range tc.wishes {
				s.resize(c, wish.size)
				s.await(c, "suspended, before "+wish.says, func() bool {
					if c.Status.ObservedGeneration != c.Generation || !is(c, api.ConditionReady, metav1.ConditionFalse) {
						return false
					}
					ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
					_, next, suspended := strings.Cut(ready.Message, "suspended by spec.suspend; without it: ")
					return suspended && ready.Reason == api.ReasonSuspended && strings.Contains(next, wish.says)
				})
			}
			load.await(10)
			reports := func(effect string) bool { return strings.HasPrefix(effect, "status.") }
			if effects := slices.DeleteFunc(f.effects(), reports); len(effects) > 0 {
				t.Errorf("%s: a suspended operator did this: %v", tc.reason, effects)
			}
			if diff := cmp.Diff(uids, s.uids(c)); diff != "" {
				t.Errorf("%s: objects changed: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, s.roles(c)); diff != "" {
				t.Errorf("%s: etcd's members changed: -want +got:\n%s", tc.reason, diff)
			}

			served()
			s.change(c, func() { c.Spec.Suspend = false })
			if diff := cmp.Diff(tc.end, s.sized(c, len(tc.end))); diff != "" {
				t.Errorf("%s: members at the end: -want +got:\n%s", tc.reason, diff)
			}
			load.check()
		})
	}
}

// roles are the voters by name, and the number of learners: a learner publishes its name by itself.
func (s *stage) roles(c *api.EtcdCluster) map[string]int {
	s.Helper()
	roles := map[string]int{}
	for name, learner := range s.listed(c) {
		if learner {
			name = "learners"
		}
		roles[name]++
	}
	return roles
}
