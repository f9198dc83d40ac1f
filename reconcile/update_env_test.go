//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/share"
	"quorate.dev/render"
)

// lives of the Pods of a cluster: which Pod it is, and how often its container was started again.
func (s *stage) lives(c *api.EtcdCluster) (pods map[string]types.UID, restarts map[string]int32) {
	s.Helper()
	pods, restarts = map[string]types.UID{}, map[string]int32{}
	for _, pod := range s.pods(c) {
		pods[pod.Name] = pod.UID
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == render.Container {
				restarts[pod.Name] = status.RestartCount
			}
		}
	}
	return pods, restarts
}

// runs waits until the cluster is Ready and every member says that it runs the version.
func (s *stage) runs(c *api.EtcdCluster, version string) {
	s.Helper()
	s.await(c, "ready with "+version, func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == version && !slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool {
			return m.Version != version
		})
	})
}

// oneRuns waits until a member says that it runs the version.
func (s *stage) oneRuns(c *api.EtcdCluster, version string) {
	s.Helper()
	s.await(c, "with one member of "+version, func() bool {
		return slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Version == version })
	})
}

// TestVersions: the version changes under load, and back. The Pods stay, their containers are
// started again once for each version on the way, and the members stay the same.
func TestVersions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		from     string
		to       []string // one after the other
		medium   api.Medium
		restarts int32
	}{
		"ToThirtySix":   {reason: "one minor", from: etcd35, to: []string{etcd36}, restarts: 1},
		"ToThirtySeven": {reason: "two minors, one after the other, and the log rewritten between them", from: etcd35, to: []string{etcd37}, restarts: 2},
		"InMemory":      {reason: "the data stays with the Pods", from: etcd35, to: []string{etcd37}, medium: api.MediumMemory, restarts: 2},
		"BackToSix":     {reason: "etcd prepares its data first", from: etcd37, to: []string{etcd36}, restarts: 1},
		"BackToFive":    {reason: "the flags have their earlier names again", from: etcd36, to: []string{etcd35}, restarts: 1},
		"BackAndForth":  {reason: "what the second time in 3.5 has left in the log ends as well", from: etcd36, to: []string{etcd35, etcd37}, restarts: 3},
	}
	for name, tc := range share.Of(t, cases, 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, _ := healing{version: tc.from, medium: tc.medium}.struck(s)
			before, _ := s.lives(c)
			who := identityOf(c)
			load.await(20)
			for _, to := range tc.to {
				s.change(c, func() { c.Spec.Version = to })
				s.runs(c, to)
				load.await(20)
			}
			after, restarts := s.lives(c)
			if !maps.Equal(before, after) {
				t.Errorf("%s: the Pods are others: %v, then %v", tc.reason, before, after)
			}
			for member, n := range restarts {
				if n != tc.restarts {
					t.Errorf("%s: %s was started again %d times, want %d", tc.reason, member, n, tc.restarts)
				}
			}
			s.same(c, who)
			load.check()
		})
	}
}

// same fails where the cluster or its members are not those that they were.
func (s *stage) same(c *api.EtcdCluster, who identity) {
	s.Helper()
	if now := identityOf(c); now.Cluster != who.Cluster || !maps.Equal(now.Members, who.Members) {
		s.Errorf("the members are others: %v, then %v", who, now)
	}
}

// TestRollBack: the spec is set back when one member has changed, and the cluster is mixed; and
// then forward again, to an image that ran a moment ago, which the kubelet is in no hurry to start.
func TestRollBack(t *testing.T) {
	s := newStage(t, patient)
	c, load, _ := healing{version: etcd35}.struck(s)
	who := identityOf(c)
	s.change(c, func() { c.Spec.Version = etcd36 })
	s.oneRuns(c, etcd36)
	s.change(c, func() { c.Spec.Version = etcd35 })
	s.runs(c, etcd35)
	_, restarts := s.lives(c)
	untouched := 0
	for _, n := range restarts {
		if n == 0 {
			untouched++
		}
	}
	if untouched == 0 {
		t.Errorf("every member was changed, and the spec was set back when one was: %v", restarts)
	}
	s.change(c, func() { c.Spec.Version = etcd36 })
	s.runs(c, etcd36)
	s.same(c, who)
	load.check()
}

// TestPutBack: a version that cannot be had stops at the first member, which gets back what it had.
func TestPutBack(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{version: etcd35}.struck(s)
	who := identityOf(c)
	s.change(c, func() { c.Spec.Version = "3.6.99" })
	if message := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(message, "cannot pull the image") || !strings.Contains(message, "3.6.99") {
		t.Errorf("the message does not say what was tried and why it failed: %s", message)
	}
	s.await(c, "whole again", func() bool { return is(c, api.ConditionDegraded, metav1.ConditionFalse) && c.Status.ReadyReplicas == 3 })
	_, restarts := s.lives(c)
	untouched := 0
	for _, n := range restarts {
		if n == 0 {
			untouched++
		}
	}
	if untouched != 2 {
		t.Errorf("more than one member was changed: %v", restarts)
	}
	s.change(c, func() { c.Spec.Version = etcd36 })
	s.runs(c, etcd36)
	s.same(c, who)
	load.check()
}

// TestOptions: a change of flags recreates the Pods, one after the other, over their volumes.
func TestOptions(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	before, _ := s.lives(c)
	who := identityOf(c)
	s.change(c, func() { c.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))} })
	s.await(c, "changed", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	for _, pod := range s.pods(c) {
		if pod.UID == before[pod.Name] || !slices.Contains(argsOf(&pod), "--heartbeat-interval=50") {
			t.Errorf("%s does not run with the new option: %v", pod.Name, argsOf(&pod))
		}
	}
	s.same(c, who)
	load.check()
}

func argsOf(pod *corev1.Pod) []string { return pod.Spec.Containers[0].Args }

// TestVolumes: volumes grow under running members where their class can do that, and then the limit
// of a small database with them; elsewhere the API server's refusal is told, and the cluster serves
// on.
func TestVolumes(t *testing.T) {
	t.Parallel()
	t.Run("Expandable", func(t *testing.T) {
		s := newStage(t)
		s.operate()
		c := s.cluster("db", 3)
		c.Spec.Storage.StorageClassName = new(hostlet.Expandable)
		contract.Watch(s, c)
		s.create(c)
		s.ready(c)
		load, who := s.load(c), identityOf(c)
		s.change(c, func() { c.Spec.Storage.Size = resource.MustParse("2Gi") })
		s.await(c, "grown", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
		for _, claim := range s.claims(c) {
			if has := claim.Status.Capacity.Storage(); has.String() != "2Gi" {
				t.Errorf("%s has %s", claim.Name, has)
			}
		}
		for _, pod := range s.pods(c) {
			if !slices.Contains(argsOf(&pod), "--quota-backend-bytes=1073741824") {
				t.Errorf("%s has another limit than half of its volume: %v", pod.Name, argsOf(&pod))
			}
		}
		s.same(c, who)
		load.check()
	})
	t.Run("Fixed", func(t *testing.T) {
		s := newStage(t)
		c, load, _ := healing{}.struck(s)
		before, _ := s.lives(c)
		contract.Available(s, c)
		s.change(c, func() { c.Spec.Storage.Size = resource.MustParse("2Gi") })
		if message := s.stalled(c, api.ReasonRefused); !strings.Contains(message, "must support resize") || !strings.Contains(message, "spec.storage.changePolicy to Replace") {
			t.Errorf("the message does not say why, and what else can be done: %s", message)
		}
		if after, _ := s.lives(c); !maps.Equal(before, after) {
			t.Errorf("the Pods were %v, and are %v", before, after)
		}
		load.await(20)
		load.check()
	})
}
