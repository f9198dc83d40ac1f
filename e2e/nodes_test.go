//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/share"
)

// workersLost is how many workers TestNodes needs: with the first node there is one for a member
// that takes another's place.
const workersLost = 3

// What clients and the status may see of nodes that go. While they are drained, and when they are
// back, it is Available throughout.
const (
	drainedPause = 4 * time.Second // without an acknowledged write; seen: 1.0 s
	lostPause    = 8 * time.Second // the same, from the loss of the leader's node on; seen: 2.8 s
	lostOutage   = 5 * time.Second // that the status says so; seen: none
)

// TestNodes: what happens to nodes, on a cluster of workers whose volumes are each on one of them.
// No other story is on these.
func TestNodes(t *testing.T) {
	if *workers < workersLost {
		t.Fatalf("it needs nodes to take away: make e2e, or go test -tags e2e -run '^TestNodes$' ./e2e -workers %d", workersLost)
	}
	t.Parallel()
	var c *api.EtcdCluster
	var clients *history.Load
	var out *contract.Outages
	story := features.New("three members under writes").
		Setup(step(func(s *stage) {
			c = s.cluster("db", 3)
			c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(api.Duration("20s"))}
			c.Spec.Scheduling = &api.Scheduling{Tolerations: []corev1.Toleration{{Key: workerTaint, Operator: corev1.TolerationOpExists}}}
			contract.Watch(s, c)
			out = contract.WatchOutages(s, c)
			s.create(c)
			s.ready(c)
			clients = s.load(c, storyFloor)
			if nodes := s.nodes(c); len(nodes) != 3 {
				s.Fatalf("the members are on %v, want three nodes", nodes)
			}
		})).
		Assess("two nodes are drained at once, and lose one member at a time", step(func(s *stage) {
			s.drainTwo(c)
			s.paused(clients, drainedPause)
			s.unavailable(out, 0)
		}))
	losses := []struct{ how, back string }{{"pause", "unpause"}, {"kill", "start"}}
	for _, loss := range share.List(t, losses, 1, func(l struct{ how, back string }) string { return l.how }) {
		story = story.Assess("the leader's node is lost: docker "+loss.how, step(func(s *stage) {
			// Of a Pod that was never ready it cannot be told whether it starts slowly or its node
			// is lost, until Kubernetes gives the node up.
			s.untilReady(s.watchPods(), 3)
			victim, node := s.leaderOnWorker(c)
			s.docker(loss.how, node)
			s.replaced(c, victim)
			s.paused(clients, lostPause)
			s.unavailable(out, lostOutage)
			s.docker(loss.back, node)
			s.resized(c, 3) // what was left on the node goes when it is back
			s.unavailable(out, 0)
		}))
	}
	testenv.Test(t, story.
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { s.checkLoad(clients, lostPause) })).
		Feature())
}

// drainTwo drains the nodes of two members side by side. Their volumes cannot follow, so that the
// first member is back only when its node is; until then the disruption budget keeps the second one
// where it is.
func (s *stage) drainTwo(c *api.EtcdCluster) {
	s.Helper()
	before := identityOf(c)
	nodes := s.onWorkers(c)
	names := slices.Sorted(maps.Keys(nodes))[:2]
	drained := make(chan string, len(names))
	var draining sync.WaitGroup
	for _, name := range names {
		draining.Go(func() {
			if _, err := onNode(s.Context(), kubectl(s.ns, "drain", nodes[name], "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=240s")...); err != nil {
				s.Errorf("drain %s: %v", nodes[name], err)
			}
			drained <- name
		})
	}
	for range names {
		name := <-drained
		s.await(c, "serving without "+name, func() bool { return c.Status.ReadyReplicas == 2 })
		s.kubectl("uncordon", nodes[name])
		s.ready(c)
	}
	draining.Wait()
	if diff := cmp.Diff(before, identityOf(c)); diff != "" {
		s.Errorf("identity changed: -want +got:\n%s", diff)
	}
}

// replaced waits until another member has taken the place of one.
func (s *stage) replaced(c *api.EtcdCluster, victim string) {
	s.Helper()
	s.await(c, "whole without "+victim, func() bool {
		return !slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Name == victim }) &&
			len(c.Status.Members) == 3 && c.Status.ReadyReplicas == 3
	})
}

// paused fails where clients had no acknowledged write for longer than that since it was last
// asked.
func (s *stage) paused(clients *history.Load, most time.Duration) {
	s.Helper()
	longest := clients.Pause()
	s.Attr("pause", fmt.Sprintf("%d ms of at most %d ms", longest.Milliseconds(), most.Milliseconds()))
	s.Logf("longest without an acknowledged write %s", longest.Round(time.Millisecond))
	if longest > most {
		s.Errorf("no write was acknowledged for %s, want at most %s", longest, most)
	}
}

// unavailable fails where the status said for longer than that since it was last asked that the
// cluster does not serve.
func (s *stage) unavailable(out *contract.Outages, most time.Duration) {
	s.Helper()
	longest, told := out.Take()
	if !out.Served() {
		s.Error("the cluster was never seen Available, so no outage could be seen")
	}
	s.Attr("unavailable", fmt.Sprintf("%d ms of at most %d ms", longest.Milliseconds(), most.Milliseconds()))
	s.Logf("longest not Available %s", longest.Round(time.Millisecond))
	if longest > most {
		s.Errorf("not Available for %s, want at most %s:\n%s", longest, most, strings.Join(told, "\n"))
	}
}

// leaderOnWorker makes a member on a worker the leader, unless it is: no operator runs there, of
// which Kubernetes would start another one only after minutes.
func (s *stage) leaderOnWorker(c *api.EtcdCluster) (member, node string) {
	s.Helper()
	nodes := s.onWorkers(c)
	member = slices.Min(slices.Collect(maps.Keys(nodes)))
	s.lead(c, member)
	return member, nodes[member]
}

// onWorkers are the nodes of the members that are on workers, two at least.
func (s *stage) onWorkers(c *api.EtcdCluster) map[string]string {
	s.Helper()
	nodes := s.nodes(c)
	maps.DeleteFunc(nodes, func(_, node string) bool { return node == clusterName+"-control-plane" })
	if len(nodes) < 2 {
		s.Fatalf("on workers are the members %v, want two or three", nodes)
	}
	return nodes
}

// nodes are where the members run.
func (s *stage) nodes(c *api.EtcdCluster) map[string]string {
	s.Helper()
	nodes, taken := map[string]string{}, map[string]bool{}
	for _, pod := range s.pods(c) {
		if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning {
			nodes[pod.Name], taken[pod.Spec.NodeName] = pod.Spec.NodeName, true
		}
	}
	if len(taken) != len(nodes) {
		s.Errorf("members share nodes: %v", nodes)
	}
	return nodes
}

func (s *stage) docker(args ...string) {
	s.Helper()
	if out, err := run(context.WithoutCancel(s.Context()), "docker", args...); err != nil {
		s.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
