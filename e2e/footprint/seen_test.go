//go:build e2e

package footprint

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// seen is the state of the clusters and their Pods, from watches.
type seen struct {
	mu       sync.Mutex
	clusters map[string]*known
	heard    chan struct{} // closed and recreated at each event of a cluster
}

// known is the state of one cluster.
type known struct {
	ready   bool
	version uint64 // of the EtcdCluster, which counts the writes of the API server
	status  string // a description of its conditions; empty when it is Ready

	lost types.UID // of the Pod that was deleted; empty while none was
	made uint64    // the version of its successor when it was seen first
	at   time.Time // when that was
	pod  types.UID // of the second member, as it was seen last
}

// watchAll watches the clusters and their Pods.
func watchAll(t *testing.T, watches cache.Cache) *seen {
	t.Helper()
	s := &seen{clusters: map[string]*known{}, heard: make(chan struct{})}
	for kind, tell := range map[client.Object]func(client.Object){&api.EtcdCluster{}: s.cluster, &corev1.Pod{}: s.pod} {
		if err := follow(t.Context(), watches, kind, tell); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- watches.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !watches.WaitForCacheSync(t.Context()) {
		t.Fatal("the watches do not begin")
	}
	return s
}

// of returns the state of a cluster, and adds it if it is new.
func (s *seen) of(name string) *known {
	if s.clusters[name] == nil {
		s.clusters[name] = &known{}
	}
	return s.clusters[name]
}

func (s *seen) cluster(o client.Object) {
	c, is := o.(*api.EtcdCluster)
	if !is {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(c.Name)
	condition := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
	k.ready = condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == c.Generation
	k.version, k.status = version(o), ""
	if !k.ready {
		k.status = contract.Describe(c)
	}
	close(s.heard)
	s.heard = make(chan struct{})
}

func (s *seen) pod(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(o.GetLabels()[api.LabelCluster])
	if o.GetName() != o.GetLabels()[api.LabelCluster]+"-1" {
		return
	}
	if k.pod = o.GetUID(); k.lost != "" && k.lost != k.pod && k.made == 0 {
		k.made, k.at = version(o), time.Now()
		close(s.heard)
		s.heard = make(chan struct{})
	}
}

// lose returns the name of the Pod of each cluster that the test is about to delete.
func (s *seen) lose(names []string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := map[string]string{}
	for _, name := range names {
		k := s.of(name)
		k.lost, k.made, pods[name] = k.pod, 0, name+"-1"
	}
	return pods
}

// until waits until so is true for all clusters, and fails after most. wanted is the word for that.
func (s *seen) until(t *testing.T, most time.Duration, wanted string, names []string, so func(*known) bool) {
	t.Helper()
	for late := time.After(most); ; {
		var others []string
		s.mu.Lock()
		for _, name := range names {
			if k := s.of(name); !so(k) {
				others = append(others, fmt.Sprintf("%s: ready %t, %s", name, k.ready, k.status))
			}
		}
		more := s.heard
		s.mu.Unlock()
		if len(others) == 0 {
			return
		}
		// Each look goes over all clusters: not more often than ten times a second.
		select {
		case <-time.After(100 * time.Millisecond):
		case <-late:
			t.Fatalf("%d of %d clusters are not %s after %s, such as\n%s", len(others), len(names), wanted, most, strings.Join(others[:min(5, len(others))], "\n"))
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%d of %d clusters are not %s after %s, such as\n%s", len(others), len(names), wanted, most, strings.Join(others[:min(5, len(others))], "\n"))
		}
	}
}

func version(o client.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64) // Kubernetes says that it is a number
	return n
}

// now returns the state of a cluster as it is now.
func (s *seen) now(name string) known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.of(name)
}
