//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// turn is one change of a spec on a random walk.
type turn struct {
	Replicas   int32
	WhenScaled api.RetentionPolicy
	Suspend    bool
	// Writes of the status after which the next change comes, whatever has come of this one; 0 is
	// when it is done.
	Writes int
}

const turns = 6

// walk is the walk of that seed. It ends where something runs.
func walk(seed uint64) []turn {
	random := rand.New(rand.NewPCG(seed, 0))
	var walk []turn
	for range turns {
		walk = append(walk, turn{
			Replicas:   []int32{0, 1, 3, 5, 1, 3, 5}[random.IntN(7)],
			WhenScaled: []api.RetentionPolicy{api.RetentionDelete, api.RetentionRetain}[random.IntN(2)],
			Suspend:    random.IntN(5) == 0,
			Writes:     max(0, random.IntN(24)-11),
		})
	}
	last := &walk[turns-1]
	last.Replicas, last.Suspend, last.Writes = []int32{1, 3, 5}[random.IntN(3)], false, 0
	return walk
}

// made is how a cluster was made, which is what its end depends on.
type made struct {
	Version string
	Size    int32
}

// end of the walk of that seed: each third walk is one of etcd 3.5, and each third one of etcd 3.7.
func end(seed uint64) made {
	return made{Version: []string{etcd36, etcd35, etcd37}[seed%3], Size: walk(seed)[turns-1].Replicas}
}

func (w turn) apply(c *api.EtcdCluster) {
	c.Spec.Replicas, c.Spec.Suspend = new(w.Replicas), w.Suspend
	c.Spec.Storage.Retention = &api.Retention{WhenScaled: w.WhenScaled}
}

// over reports whether the next change is to come.
func (w *turn) over(c *api.EtcdCluster) bool {
	if w.Writes--; w.Suspend || w.Writes == 0 {
		return c.Status.ObservedGeneration == c.Generation
	}
	return is(c, api.ConditionReady, metav1.ConditionTrue) && (w.Replicas == 0 || len(c.Status.Members) == int(w.Replicas))
}

// TestWalk changes the spec at random, half of the times before the last change has come to its
// end. The end is what the last spec would have made of nothing, with all that was acknowledged on
// the way.
func TestWalk(t *testing.T) {
	if inChaos() {
		t.Skip("TestChaos runs these and more")
	}
	t.Parallel()
	seed := share.Seed(t)
	seeds := []uint64{seed, seed + 1, seed + 2} // one of each minor of etcd
	ends := fresh(t, seeds)
	figures := newTally(t)
	for _, seed := range seeds {
		figures.plan(t, trial{fmt.Sprintf("walk/%d", seed), func(t *testing.T) ending { return walkOn(t, seed, ends) }})
	}
}

// fresh are the ends of clusters that were made as those walks end, and never changed.
func fresh(t *testing.T, seeds []uint64) map[made][]string {
	wanted := map[made]bool{}
	for _, seed := range seeds {
		wanted[end(seed)] = true
	}
	ends := map[made][]string{}
	var mu sync.Mutex
	t.Run("Fresh", func(t *testing.T) {
		for m := range wanted {
			t.Run(fmt.Sprintf("%s/%d", m.Version, m.Size), func(t *testing.T) {
				s := newStage(t)
				s.version = m.Version
				s.operate()
				c := s.cluster("db", m.Size)
				s.settled(c, s.born(c))
				mu.Lock()
				defer mu.Unlock()
				ends[m] = s.picture(c)
			})
		}
	})
	return ends
}

func walkOn(t *testing.T, seed uint64, ends map[made][]string) ending {
	s := newStageAlone(t)
	s.version = end(seed).Version
	way := walk(seed)
	t.Logf("etcd %s: %+v", s.version, way)
	s.operate()
	c := s.cluster("db", 1)
	way[0].apply(c)
	contract.Watch(s, c)
	s.create(c)
	kept := data{}
	for n, turn := range way {
		if n > 0 {
			s.change(c, func() { turn.apply(c) })
		}
		s.await(c, fmt.Sprintf("over with turn %d: %+v", n, turn), func() bool { return turn.over(c) })
		s.tryWrite(c, kept)
		if s.clients == nil && len(s.pods(c)) > 0 && is(c, api.ConditionReady, metav1.ConditionTrue) {
			s.clients = s.load(c, light)
		}
	}
	writes := s.clients.check()
	s.settled(c, kept)
	if diff := cmp.Diff(ends[end(seed)], s.picture(c)); diff != "" {
		t.Errorf("the end is not that of a cluster made with the last spec: -want +got:\n%s", diff)
	}
	return ending{met: true, writes: writes}
}

// tryWrite writes where any member serves, and keeps what was acknowledged.
func (s *stage) tryWrite(c *api.EtcdCluster, kept data) {
	s.Helper()
	if !is(c, api.ConditionAvailable, metav1.ConditionTrue) || len(s.pods(c)) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
	defer cancel()
	key := "key" + strconv.Itoa(len(kept))
	if _, err := s.etcd(c).Put(ctx, key, "value"); err == nil {
		kept[key] = "value"
	}
}
