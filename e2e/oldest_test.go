//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/node"
)

// TestOldest: on the oldest Kubernetes that is claimed, a cluster under writes goes through what
// clusters go through. It needs a kind cluster of that minor (-kubernetes), and fails on any other.
func TestOldest(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	t.Attr("kubernetes", version.GitVersion)
	if oldest := node.KubernetesMinors()[0]; node.Minor(version.GitVersion) != oldest {
		t.Fatalf("the cluster is of Kubernetes %s: run this with -kubernetes %s", version.GitVersion, oldest)
	}
	var c *api.EtcdCluster
	var clients *history.Load
	testenv.Test(t, features.New("a cluster under writes").Setup(step(func(s *stage) {
		c = s.cluster("db", 3)
		c.Spec.Version = node.Etcd35
		c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("20m", "64Mi")}
		contract.Watch(s, c)
		s.create(c)
		s.resized(c, 3)
		clients = s.load(c, storyFloor)
	})).Assess("grows to five, and shrinks", step(func(s *stage) {
		for _, size := range []int32{5, 3} {
			s.kubectl("scale", "etcdcluster", "db", fmt.Sprintf("--replicas=%d", size))
			s.resized(c, size)
		}
	})).Assess("a member that has lost its volume is replaced", step(func(s *stage) {
		s.loses(c, c.Status.Members[1].Name)
	})).Assess("from 3.5 to 3.6, in the Pods that are there", step(func(s *stage) {
		s.changed(c, toVersion("from 3.5 to 3.6", node.Etcd36, 1))
	})).Assess("more cpu for the running containers", step(func(s *stage) {
		s.changed(c, toResources("more cpu", "30m", "64Mi"))
	})).Assess("more cpu than any node has is told of, and given up", step(func(s *stage) {
		was := identityOf(c)
		s.change(c, func() { c.Spec.Resources.Requests = cpuAndMemory("1000", "64Mi") })
		if got := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(got, "with the new spec.resources it cannot be scheduled") {
			s.Errorf("stalled with the message %s", got)
		}
		s.served(c)
		s.change(c, func() { c.Spec.Resources.Requests = cpuAndMemory("30m", "64Mi") })
		s.ready(c)
		if diff := cmp.Diff(was, identityOf(c)); diff != "" {
			s.Errorf("identity changed: -want +got:\n%s", diff)
		}
	})).Assess("all that clients were told is as one store would have told it", step(func(s *stage) {
		s.checkLoad(clients, resizePause)
	})).Feature())
}

// loses deletes the volume and the Pod of a member, and waits until another member has its place.
func (s *stage) loses(c *api.EtcdCluster, member string) {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: member}}
	if err := s.Delete(s.Context(), claim); err != nil {
		s.Fatal(err)
	}
	s.deletePod(member)
	s.await(c, "healed without "+member, func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && !slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Name == member })
	})
	s.resized(c, 3)
}
