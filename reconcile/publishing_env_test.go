//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	api "quorate.dev/api/v1alpha1"
)

// TestGrowBeforeServing: a learner that misses that its name was published has its vote before it
// serves clients, and the next one joins meanwhile. Under load nothing is lost by that.
func TestGrowBeforeServing(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	c.Spec.Options = snapshots(s.version)
	load := s.laden(c)
	const tries = 6
	for range tries {
		heard := s.words(c)
		begun := time.Now()
		s.resize(c, 5)
		s.await(c, "of five voters", func() bool { return len(c.Status.Members) == 5 && !learning(c) })
		voting := time.Since(begun)
		s.sized(c, 5)
		t.Logf("five voters in %.1f s, all of which serve in %.1f s", voting.Seconds(), time.Since(begun).Seconds())
		waited := slices.ContainsFunc(heard(), func(w word) bool {
			return w.Reason == api.ReasonJoining && strings.HasPrefix(w.Message, "waiting for members that do not serve") && strings.Contains(w.Message, "serves no clients yet")
		})
		s.resize(c, 3)
		s.sized(c, 3)
		if waited {
			load.check()
			return
		}
	}
	t.Errorf("void: in %d times no member had a vote before it served clients", tries)
}
