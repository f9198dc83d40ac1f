//go:build e2e

package e2e

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/node"
)

// TestChanges: what runs changes under writes, by the smallest act that does it: the container of a Pod is started again for
// another image, nothing is for cpu and memory or for metadata, and the Pod is made anew for the rest.
func TestChanges(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name     string
		change   func(*api.EtcdClusterSpec)
		restarts int32 // of each container
		anew     bool  // each Pod is another one
	}{
		{name: "from 3.5 to 3.6", change: func(s *api.EtcdClusterSpec) { s.Version = node.Etcd36 }, restarts: 1},
		{name: "cpu and memory", change: func(s *api.EtcdClusterSpec) {
			s.Resources.Requests = cpuAndMemory("30m", "80Mi")
		}},
		{name: "labels", change: func(s *api.EtcdClusterSpec) { s.Metadata = &api.Metadata{Labels: api.Labels{"team": "storage"}} }},
		{name: "options", change: func(s *api.EtcdClusterSpec) {
			s.Options = &api.Options{Flags: map[string]string{"max-request-bytes": "3145728"}}
		}, anew: true},
		{name: "from 3.6 to 3.7", change: func(s *api.EtcdClusterSpec) { s.Version = node.Etcd37 }, restarts: 1},
		{name: "scheduling", change: func(s *api.EtcdClusterSpec) {
			s.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"kubernetes.io/os": "linux"}}
		}, anew: true},
		{name: "back to 3.6", change: func(s *api.EtcdClusterSpec) { s.Version = node.Etcd36 }, restarts: 1},
		{name: "back to 3.5", change: func(s *api.EtcdClusterSpec) { s.Version = node.Etcd35 }, restarts: 1},
		{name: "from 3.5 to 3.7", change: func(s *api.EtcdClusterSpec) { s.Version = node.Etcd37 }, restarts: 2},
	}
	var c *api.EtcdCluster
	var clients *history.Load
	story := features.New("a cluster under writes").Setup(step(func(s *stage) {
		c = s.cluster("db", 3)
		c.Spec.Version = node.Etcd35
		c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("20m", "64Mi")}
		contract.Watch(s, c)
		s.create(c)
		s.ready(c)
		clients = s.load(c)
	}))
	for _, row := range rows {
		story = story.Assess(row.name, step(func(s *stage) {
			before := processes(s.pods(c))
			s.change(c, func() { row.change(&c.Spec) })
			s.ready(c)
			after := processes(s.pods(c))
			for name, was := range before {
				now := after[name]
				anew := now.uid != was.uid
				if anew != row.anew || !anew && now.restarts-was.restarts != row.restarts {
					s.Errorf("%s: was %v, is %v", name, was, now)
				}
			}
			for _, m := range c.Status.Members {
				if m.Version != c.Spec.Version {
					s.Errorf("%s runs %s", m.Name, m.Version)
				}
			}
			if row.name == "cpu and memory" {
				for _, pod := range s.pods(c) {
					if cpu := pod.Status.ContainerStatuses[0].Resources.Requests.Cpu(); cpu.String() != "30m" {
						s.Errorf("%s has %s of cpu", pod.Name, cpu)
					}
				}
			}
		}))
	}
	testenv.Test(t, story.
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { clients.Check(s.T) })).
		Feature())
}

// TestRefusedChanges: a change that is not possible is named with what is, and a version that cannot be had is put back on the
// one member that was changed. The cluster serves all along.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	var c *api.EtcdCluster
	var before api.EtcdClusterSpec
	testenv.Test(t, features.New("a cluster").Setup(step(func(s *stage) {
		c = s.cluster("db", 3)
		c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("20m", "64Mi")}
		contract.Watch(s, c)
		s.create(c)
		s.ready(c)
		before = *c.Spec.DeepCopy()
	})).Assess("flags that the new version does not know", step(func(s *stage) {
		was := processes(s.pods(c))
		s.change(c, func() {
			c.Spec.Version = node.Etcd37
			c.Spec.Options = &api.Options{Flags: map[string]string{"experimental-compaction-batch-limit": "100"}}
		})
		const want = "options.flags: etcd 3.7.3 has no flag experimental-compaction-batch-limit, it went with 3.7; write compaction-batch-limit"
		if got := s.stalled(c, api.ReasonInvalidSpec); got != want {
			s.Errorf("stalled with the message\n%s\nwant\n%s", got, want)
		}
		if !maps.Equal(was, processes(s.pods(c))) {
			s.Errorf("members were touched")
		}
		s.change(c, func() { c.Spec = *before.DeepCopy() })
		s.ready(c)
	})).Assess("more cpu than any node has", step(func(s *stage) {
		s.change(c, func() { c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("1000", "64Mi")} })
		if got := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(got, "with the new spec.resources it cannot be scheduled") {
			s.Errorf("stalled with the message %s", got)
		}
		s.served(c)
		s.change(c, func() { c.Spec = *before.DeepCopy() })
		s.ready(c)
	})).Assess("an image that cannot be had", step(func(s *stage) {
		s.change(c, func() { c.Spec.Version = "3.6.99" })
		s.stalled(c, api.ReasonChangeFailed)
		s.served(c)
		restarted := 0
		for _, p := range processes(s.pods(c)) {
			restarted += int(min(p.restarts, 1))
		}
		if restarted > 1 {
			s.Errorf("%d members were changed", restarted)
		}
		s.change(c, func() { c.Spec = *before.DeepCopy() })
		s.ready(c)
	})).Assess("larger volumes, which the provisioner cannot make", step(func(s *stage) {
		s.change(c, func() { c.Spec.Storage.Size = resource.MustParse("1Gi") })
		if got := s.stalled(c, api.ReasonRefused); !strings.Contains(got, "only dynamically provisioned pvc can be resized") {
			s.Errorf("stalled with the message %s", got)
		}
		if !is(c, api.ConditionAvailable, metav1.ConditionTrue) {
			s.Errorf("the cluster does not serve: %s", contract.Describe(c))
		}
	})).Feature())
}

// served waits until every member of three serves, whatever the spec asks for.
func (s *stage) served(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "served by all members", func() bool {
		return c.Status.ReadyReplicas == 3 && is(c, api.ConditionAvailable, metav1.ConditionTrue) && is(c, api.ConditionDegraded, metav1.ConditionFalse)
	})
}

// life of a member: the Pod that it runs in, and how often its container was started again.
type life struct {
	uid      string
	restarts int32
}

// processes of the Pods, by name.
func processes(pods []corev1.Pod) map[string]life {
	all := map[string]life{}
	for _, pod := range pods {
		all[pod.Name] = life{string(pod.UID), pod.Status.ContainerStatuses[0].RestartCount}
	}
	return all
}

func cpuAndMemory(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
