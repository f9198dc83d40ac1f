//go:build env

package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/render"
)

// crowd is all that a watch tells of the clusters of a stage and of their Pods, each of one member.
type crowd struct {
	*stage
	mu       sync.Mutex
	events   []watch.Event
	clusters map[string]*api.EtcdCluster // as they are
	heard    chan struct{}               // closed and recreated at each event
}

// crowd begins to watch.
func (s *stage) crowd() *crowd {
	s.Helper()
	w := &crowd{stage: s, clusters: map[string]*api.EtcdCluster{}, heard: make(chan struct{})}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &api.EtcdClusterList{}} {
		watching, err := s.Watch(s.Context(), list, client.InNamespace(s.ns))
		s.must(err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for event := range watching.ResultChan() {
				w.hear(event)
			}
		}()
		s.Cleanup(func() { watching.Stop(); s.over(done, fmt.Sprintf("the watch of %T", list)) })
	}
	return w
}

func (w *crowd) hear(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.Type == watch.Error {
		if w.Context().Err() != nil {
			return
		}
		w.Errorf("a watch has ended: %v", event.Object)
		return
	}
	w.events = append(w.events, event)
	if c, ok := event.Object.(*api.EtcdCluster); ok {
		if w.clusters[c.Name] = c; event.Type == watch.Deleted {
			delete(w.clusters, c.Name)
		}
	}
	close(w.heard)
	w.heard = make(chan struct{})
}

// until waits for as many clusters as are wanted to be so.
func (w *crowd) until(wanted string, count int, so func(*api.EtcdCluster) bool) {
	w.Helper()
	const most = 10 * time.Minute
	late := time.After(most)
	for {
		w.mu.Lock()
		var are, others []string
		for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
			if so(w.clusters[name]) {
				are = append(are, name)
			} else {
				others = append(others, name+": "+contract.Describe(w.clusters[name]))
			}
		}
		more := w.heard
		w.mu.Unlock()
		if len(are) >= count {
			return
		}
		select {
		case <-more:
		case <-late:
			w.Fatalf("%d clusters are %s, want %d; of the others %s", len(are), wanted, count, strings.Join(others[:min(5, len(others))], "\n"))
		}
	}
}

// tale is what has happened to a crowd.
type tale struct {
	Most   int                 // clusters that were changing at a time
	Begun  []string            // clusters, in the order in which they began to change
	Queued map[string][]string // what they said while they waited for their turn
	Passed map[string][]string // of one that began: those that had waited since before its spec was changed, and did still
	Later  int                 // clusters that began, and of which the spec was changed while others waited
}

// tell goes through what was written in the order in which it was: Pods and clusters are in one
// etcd, whose revisions the resource versions are. A cluster changes from the write that gives its
// Pod an image of another version than the one that its member says it runs, until the member says
// that it runs that. One that was suspended or deleted does not count any more.
func (w *crowd) tell() tale {
	w.mu.Lock()
	events := slices.Clone(w.events)
	w.mu.Unlock()
	slices.SortStableFunc(events, func(a, b watch.Event) int { return int(revisionOf(w.stage, a) - revisionOf(w.stage, b)) })
	told := tale{Queued: map[string][]string{}, Passed: map[string][]string{}}
	runs, says, wants := map[string]string{}, map[string]string{}, map[string]string{}
	changed, waits := map[string]int64{}, map[string]int64{} // the revision of the spec, and that since which it waits for its turn
	changing := map[string]bool{}
	for _, event := range events {
		var name string
		over := event.Type == watch.Deleted
		switch o := event.Object.(type) {
		case *corev1.Pod:
			name = o.Labels[api.LabelCluster]
			runs[name], _ = render.ImageVersion(o.Spec.Containers[0].Image)
			over = over || !o.DeletionTimestamp.IsZero()
		case *api.EtcdCluster:
			name = o.Name
			if says[name] = ""; len(o.Status.Members) == 1 {
				says[name] = o.Status.Members[0].Version
			}
			over = over || !o.DeletionTimestamp.IsZero() || o.Spec.Suspend || o.Status.ClusterID == ""
			revision := revisionOf(w.stage, event)
			if wants[name] != o.Spec.Version {
				wants[name], changed[name] = o.Spec.Version, revision
			}
			ready := meta.FindStatusCondition(o.Status.Conditions, api.ConditionReady)
			switch queued := ready != nil && ready.Reason == api.ReasonQueued; {
			case slices.Contains(told.Begun, name):
			case !queued: // it has something else to do, and does not ask meanwhile
				delete(waits, name)
			case waits[name] == 0:
				waits[name] = revision
			}
			if ready != nil && ready.Reason == api.ReasonQueued && !slices.Contains(told.Queued[name], ready.Message) {
				told.Queued[name] = append(told.Queued[name], ready.Message)
			}
		}
		switch is := !over && runs[name] != says[name] && (changing[name] || says[name] != ""); {
		case is && !changing[name]:
			changing[name] = true
			if !slices.Contains(told.Begun, name) {
				told.Begun = append(told.Begun, name)
				told.pass(name, changed[name], waits)
			}
			told.Most = max(told.Most, len(changing))
		case !is:
			delete(changing, name)
		}
	}
	return told
}

// pass tells of a cluster that begins, which others it has passed: one that waited before its spec
// was changed has asked before it.
func (t *tale) pass(name string, changed int64, waits map[string]int64) {
	behind := false
	for other, since := range waits {
		if other == name || since > changed {
			continue
		}
		behind = true
		if !slices.Contains(t.Begun, other) {
			t.Passed[name] = append(t.Passed[name], other)
		}
	}
	if behind {
		t.Later++
	}
}

func revisionOf(s *stage, event watch.Event) int64 {
	revision, err := strconv.ParseInt(event.Object.(client.Object).GetResourceVersion(), 10, 64)
	s.must(err)
	return revision
}
