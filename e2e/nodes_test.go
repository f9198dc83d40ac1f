//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/render"
)

// TestNodes: what happens to nodes, on a cluster of four workers whose volumes are each on one of them.
func TestNodes(t *testing.T) {
	if *workers < 4 {
		t.Skip("needs -workers 4")
	}
	var c *api.EtcdCluster
	var clients *history.Load
	story := features.New("three members under writes").
		Setup(step(func(s *stage) {
			c = s.cluster("db", 3)
			c.Spec.Recovery = &api.Recovery{ReplaceAfter: new(api.Duration("20s"))}
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			clients = s.load(c)
			if nodes := s.nodes(c); len(nodes) != 3 {
				s.Fatalf("the members are on %v, want three nodes", nodes)
			}
		})).
		Assess("two nodes are drained at once, and lose one member at a time", step(func(s *stage) { s.drainTwo(c) }))
	for _, loss := range []struct{ how, back string }{{"pause", "unpause"}, {"kill", "start"}} {
		story = story.Assess("a node is lost: docker "+loss.how, step(func(s *stage) {
			// Of a Pod that was never ready nobody can tell a slow start from a lost node, until Kubernetes gives the node up.
			s.untilReady(s.watchPods(), 3)
			victim, node := s.away(c)
			s.docker(loss.how, node)
			s.replaced(c, victim)
			s.docker(loss.back, node)
			s.resized(c, 3) // what was left on the node goes when it is back
		}))
	}
	testenv.Test(t, story.
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { clients.Check(s.T) })).
		Feature())
}

// drainTwo drains the nodes of two members side by side. Their volumes cannot follow, so that the first member is back only
// when its node is; until then the disruption budget keeps the second one where it is.
func (s *stage) drainTwo(c *api.EtcdCluster) {
	s.Helper()
	before := identityOf(c)
	nodes := s.nodes(c)
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range nodes {
			if !yield(name) {
				return
			}
		}
	})[:2]
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
		s.await(c, "serving without "+name, func() bool {
			if !is(c, api.ConditionAvailable, metav1.ConditionTrue) {
				s.Errorf("while %s is drained: %s", nodes[name], contract.Describe(c))
			}
			return c.Status.ReadyReplicas == 2
		})
		s.kubectl("uncordon", nodes[name])
		s.ready(c)
	}
	draining.Wait()
	if after := identityOf(c); fmt.Sprint(after) != fmt.Sprint(before) {
		s.Errorf("the members were %v, and are %v", before, after)
	}
}

// replaced waits until another member has taken the place of one, and reports where the cluster did not serve meanwhile.
func (s *stage) replaced(c *api.EtcdCluster, victim string) {
	s.Helper()
	s.await(c, "whole without "+victim, func() bool {
		return !slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Name == victim }) &&
			len(c.Status.Members) == 3 && c.Status.ReadyReplicas == 3
	})
}

// away is a member on a node where no operator runs: what is left of a node's Pods Kubernetes gives up only after minutes.
func (s *stage) away(c *api.EtcdCluster) (member, node string) {
	s.Helper()
	operators := &corev1.PodList{}
	if err := s.List(s.Context(), operators, client.InNamespace(render.InstallNamespace)); err != nil {
		s.Fatal(err)
	}
	for member, node := range s.nodes(c) {
		if !slices.ContainsFunc(operators.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node }) {
			return member, node
		}
	}
	s.Fatal("an operator runs on every member's node")
	return "", ""
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
