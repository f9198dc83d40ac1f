//go:build env

package reconcile_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
	"quorate.dev/membership"
)

// TestKilledAgainAndAgain: etcd is killed twelve times within half a minute, on any of three
// members, with kubelets that wait as long as real ones. The cluster is not without a quorum for as
// long as a kubelet's first back-off, ten seconds, and no member is another one afterwards. It runs
// before the tests that run side by side: what is measured is time, and among ten of them that is
// the machine's.
func TestKilledAgainAndAgain(t *testing.T) {
	s := newStageAlone(t, patient)
	s.operate()
	c := s.cluster("db", 3)
	s.create(c)
	s.ready(c)
	before := identityOf(c)
	clients := s.load(c, func(config *history.Config) { config.Pace = 10 * time.Millisecond })

	if killed := s.killAgainAndAgain(c, 12, 2500*time.Millisecond); killed < 8 {
		t.Errorf("void: etcd was killed only %d times, for at the others no member ran", killed)
	}
	s.ready(c)
	if diff := cmp.Diff(before, identityOf(c)); diff != "" {
		t.Errorf("the members changed: -want +got:\n%s", diff)
	}
	clients.await(50)
	result := clients.check()
	recreated := 0
	for _, e := range s.events() {
		if e.Reason == string(membership.BackOff) {
			recreated += occurrences(e)
		}
	}
	t.Logf("longest without an acknowledged write %.1f s, %d Pods recreated", result.Longest.Seconds(), recreated)
	if result.Longest > 10*time.Second {
		t.Errorf("no write was acknowledged for %.1f s, longer than a kubelet's first back-off", result.Longest.Seconds())
	}
}

func occurrences(e eventsv1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return 1
}

// killAgainAndAgain kills the process of any member that has one, so often and so far apart, and
// tells how often there was one. The order of the members is the same in each run.
func (s *stage) killAgainAndAgain(c *api.EtcdCluster, times int, apart time.Duration) (killed int) {
	s.Helper()
	lots := rand.New(rand.NewPCG(17, 10))
	pace := time.NewTicker(apart)
	defer pace.Stop()
	for range times {
		pods := s.pods(c)
		for _, n := range lots.Perm(len(pods)) {
			if s.hostlet.Kill(s.ns, pods[n].Name) == nil { // the others have no process
				killed++
				break
			}
		}
		<-pace.C
	}
	return killed
}
