//go:build env

package reconcile_test

import (
	"flag"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/discovery"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/node"
)

var minor = flag.String("kubernetes", node.Minor(node.Kubernetes), "TestSmoke: the minor that the API server must be of")

// stories are the least that must work on every Kubernetes that Quorate is claimed to run on.
var stories = map[string]life{
	"Create":  {reason: "three members at once", run: resize(3)},
	"Grow":    lives["grow"],
	"Heal":    lives["heal"],
	"Upgrade": lives["upgrade"],
	"Change":  {reason: "more cpu for the running containers, and then other flags for new Pods", run: refit},
	"Return":  lives["retain"],
}

// TestSmoke plays the stories of the fast loop, under clients whose history is checked. The API
// server is of the minor that was asked for.
func TestSmoke(t *testing.T) {
	t.Parallel()
	client, err := discovery.NewDiscoveryClientForConfig(apiServer)
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	t.Attr("kubernetes", version.GitVersion)
	if got := node.Minor(version.GitVersion); got != *minor {
		t.Fatalf("the API server is of Kubernetes %s, want %s (-kubernetes)", version.GitVersion, *minor)
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.unasked = name == "Create" // what a person gets whose spec says nothing of TLS
			s.operate()
			_, writes := story.play(s, newFault("", ""))
			t.Logf("%s: %d of %d writes acknowledged, longest pause %s", story.reason, writes.Acknowledged, writes.Attempted, writes.Longest)
		})
	}
}

// refit gives running containers more cpu: the Pods and the containers stay. Then it gives the
// members other flags, for which every Pod is recreated.
func refit(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	c.Spec.Resources = &api.Resources{Requests: hostlet.CPU(1)}
	kept := s.born(c)
	was := identityOf(c)
	before, _ := s.lives(c)
	f.arm()
	s.change(c, func() { c.Spec.Resources.Requests = hostlet.CPU(2) })
	s.ready(c)
	after, restarts := s.lives(c)
	if diff := cmp.Diff(before, after); diff != "" {
		s.Errorf("for more cpu, Pods were recreated: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int32{"db-0": 0, "db-1": 0, "db-2": 0}, restarts); diff != "" {
		s.Errorf("for more cpu, containers were restarted: -want +got:\n%s", diff)
	}
	for _, pod := range s.pods(c) {
		if got := pod.Status.ContainerStatuses[0].Resources.Requests; !maps.EqualFunc(got, hostlet.CPU(2), resource.Quantity.Equal) {
			s.Errorf("%s has %v, want %v", pod.Name, got, hostlet.CPU(2))
		}
	}
	s.write(c, kept)
	s.change(c, func() { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} })
	s.ready(c)
	recreated, _ := s.lives(c)
	for name, uid := range recreated {
		if uid == after[name] {
			s.Errorf("%s is the Pod that it was, and has the flags that it was made with", name)
		}
	}
	s.same(c, was)
	s.write(c, kept)
	return c, kept
}
