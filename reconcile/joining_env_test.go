//go:build env

package reconcile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// word is what the condition Ready said at a time, or an event.
type word struct{ Reason, Message string }

// words collects what the operator says from now on.
func (s *stage) words(c *api.EtcdCluster) (heard func() []word) {
	s.Helper()
	w, err := s.Watch(s.Context(), &api.EtcdClusterList{}, client.InNamespace(s.ns), client.MatchingFields{"metadata.name": c.Name})
	s.must(err)
	var said []word
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			object, ok := event.Object.(*api.EtcdCluster)
			if !ok {
				continue
			}
			if ready := meta.FindStatusCondition(object.Status.Conditions, api.ConditionReady); ready != nil {
				said = append(said, word{ready.Reason, ready.Message})
			}
		}
	}()
	return func() []word {
		s.Helper()
		w.Stop()
		s.over(done, "the watch of "+c.Name)
		words := slices.Compact(said)
		for _, e := range s.events() {
			words = append(words, word{e.Reason, e.Note})
		}
		return words
	}
}

// learning reports whether a learner is there.
func learning(c *api.EtcdCluster) bool {
	return slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Role == api.RoleLearner })
}

// TestResizeWhileJoining: the size changes at the moment when a learner is there. It stays if it is
// wanted, and goes first if it is not; what was prepared for others is used or goes as well.
func TestResizeWhileJoining(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason         string
		from, to, then int32
		says           word // on the way
		end            []string
		next           int32
	}{
		"More": {
			reason: "it goes on, and there are volumes for two more",
			from:   1, to: 3, then: 5,
			says: word{api.ReasonScalingUp, "Created PersistentVolumeClaim db-3, PersistentVolumeClaim db-4"},
			end:  []string{"db-0", "db-1", "db-2", "db-3", "db-4"}, next: 5,
		},
		"OneLess": {
			reason: "it goes on, and the volume of the other one goes",
			from:   3, to: 5, then: 4,
			says: word{api.ReasonRetiring, "deleting the volumes of db-4, no members any more"},
			end:  []string{"db-0", "db-1", "db-2", "db-3"}, next: 5,
		},
		"AsBefore": {
			reason: "it is the one to go",
			from:   3, to: 5, then: 3,
			says: word{api.ReasonScalingDown, "removing the learner db-3, which is not needed any more"},
			end:  []string{"db-0", "db-1", "db-2"}, next: 5,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", tc.from)
			load := s.laden(c)
			heard := s.words(c)
			contract.Available(s, c)
			s.resize(c, tc.to)
			s.await(c, "with a learner", func() bool { return learning(c) })
			s.resize(c, tc.then)
			if diff := cmp.Diff(tc.end, s.sized(c, int(tc.then))); diff != "" || c.Status.NextOrdinal != tc.next {
				t.Errorf("%s: next ordinal %d, want %d; members -want +got:\n%s", tc.reason, c.Status.NextOrdinal, tc.next, diff)
			}
			if words := heard(); !slices.Contains(words, tc.says) {
				t.Errorf("%s: no condition said %v, but %v", tc.reason, tc.says, words)
			}
			load.check()
		})
	}
}
