//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
)

// change is one of what a cluster runs, and how small the act is that does it.
type change struct {
	name      string
	mutate    func(*api.EtcdClusterSpec)
	restarts  int32 // of each container
	recreated bool  // each Pod is another one
}

func toVersion(name, version string, restarts int32) change {
	return change{name: name, mutate: func(s *api.EtcdClusterSpec) { s.Version = version }, restarts: restarts}
}

func toResources(name, cpu, memory string) change {
	return change{name: name, mutate: func(s *api.EtcdClusterSpec) { s.Resources.Requests = cpuAndMemory(cpu, memory) }}
}

// leg is changes that follow on one another. Each has an upgrade or a downgrade, and cpu and
// memory; each begins with the version that the one before ends with.
type leg struct {
	name    string
	from    string // version
	changes []change
}

var legs = []leg{
	{name: "3.5 to 3.6, other flags", from: node.Etcd35, changes: []change{
		toVersion("from 3.5 to 3.6", node.Etcd36, 1),
		toResources("cpu and memory", "30m", "80Mi"),
		{name: "options", mutate: func(s *api.EtcdClusterSpec) {
			s.Options = &api.Options{Flags: map[string]string{"max-request-bytes": "3145728"}}
		}, recreated: true},
	}},
	{name: "3.6 to 3.7, other nodes", from: node.Etcd36, changes: []change{
		{name: "labels", mutate: func(s *api.EtcdClusterSpec) {
			s.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "storage"}}
		}},
		toVersion("from 3.6 to 3.7", node.Etcd37, 1),
		toResources("less cpu, more memory", "25m", "96Mi"),
		{name: "scheduling", mutate: func(s *api.EtcdClusterSpec) {
			s.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"kubernetes.io/os": "linux"}}
		}, recreated: true},
	}},
	{name: "3.7 to 3.5 and up", from: node.Etcd37, changes: []change{
		toVersion("back to 3.6", node.Etcd36, 1),
		toVersion("back to 3.5", node.Etcd35, 1),
		toResources("more of both", "35m", "100Mi"),
		toVersion("from 3.5 to 3.7", node.Etcd37, 2),
	}},
}

// TestChanges: what runs changes under writes, by the smallest act that does it: the container of a
// Pod is restarted for another image, nothing is for cpu and memory or for metadata, and the Pod is
// recreated for the rest.
func TestChanges(t *testing.T) {
	t.Parallel()
	path := share.List(t, legs, 1, func(l leg) string { return l.name })
	var c *api.EtcdCluster
	var clients *history.Load
	story := features.New("a cluster under writes").Setup(step(func(s *stage) {
		c = s.cluster("db", 3)
		c.Spec.Version = path[0].from
		c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("20m", "64Mi")}
		contract.Watch(s, c)
		s.create(c)
		s.ready(c)
		clients = s.load(c, storyFloor)
	}))
	for _, leg := range path {
		for _, row := range leg.changes {
			story = story.Assess(row.name, step(func(s *stage) { s.changed(c, row) }))
		}
	}
	testenv.Test(t, story.
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { s.checkLoad(clients, changesPause) })).
		Feature())
}

// changed makes a change, and looks at what every member runs then, and at what was done for it.
// The cluster and its members keep their IDs.
func (s *stage) changed(c *api.EtcdCluster, row change) {
	s.Helper()
	was, before := identityOf(c), processes(s.pods(c))
	s.change(c, func() { row.mutate(&c.Spec) })
	s.ready(c)
	if diff := cmp.Diff(was, identityOf(c)); diff != "" {
		s.Errorf("identity changed: -want +got:\n%s", diff)
	}
	after := processes(s.pods(c))
	for name, was := range before {
		now := after[name]
		recreated := now.uid != was.uid
		if recreated != row.recreated || !recreated && now.restarts-was.restarts != row.restarts {
			s.Errorf("%s: was %v, is %v", name, was, now)
		}
	}
	for _, m := range c.Status.Members {
		if m.Version != c.Spec.Version {
			s.Errorf("%s runs %s", m.Name, m.Version)
		}
	}
	for _, pod := range s.pods(c) {
		running, asked := pod.Status.ContainerStatuses[0].Resources.Requests, c.Spec.Resources.Requests
		if running.Cpu().Cmp(*asked.Cpu()) != 0 || running.Memory().Cmp(*asked.Memory()) != 0 {
			s.Errorf("%s has %v, want %v", pod.Name, running, asked)
		}
	}
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
