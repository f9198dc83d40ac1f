//go:build env

package reconcile_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// Members of before a restore in place whose nodes are off the network, and come back.

// waitsFor waits until a restore waits for these former members to stop.
func (s *stage) waitsFor(c *api.EtcdCluster, members ...string) {
	s.Helper()
	s.await(c, "waiting for former members to stop", func() bool {
		ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
		return ready != nil && strings.Contains(ready.Message, "waiting for the former members to stop ("+strings.Join(members, ", ")+")")
	})
}

// neverLed fails the test where the Service for clients leads to one of these members from now on,
// at any time.
func (s *stage) neverLed(c *api.EtcdCluster, members ...string) {
	s.Helper()
	led := client.MatchingLabels{discoveryv1.LabelServiceName: c.ClientServiceName()}
	ctx, cancel := context.WithCancel(s.Context())
	w, err := s.Watch(ctx, &discoveryv1.EndpointSliceList{}, client.InNamespace(s.ns), led)
	s.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				continue
			}
			for _, e := range slice.Endpoints {
				if *e.Conditions.Ready && slices.Contains(members, e.TargetRef.Name) {
					s.Errorf("Service %s leads to former member %s", slice.Name, e.TargetRef.Name)
				}
			}
		}
	}()
	s.Cleanup(func() { cancel(); w.Stop(); s.over(done, "the watch of EndpointSlices") })
}

// at is a client of one member, wherever its Pod is.
func (s *stage) at(member string) *clientv3.Client {
	s.Helper()
	etcd, err := dialer(nil)(s.hostlet.Substitute("http://" + member + ".db." + s.ns + ".svc:2379"))
	s.must(err)
	s.Cleanup(func() { _ = etcd.Close() }) // a test that fails here has failed before
	return etcd
}

// leads waits until a member knows a leader, and returns the ID of its cluster.
func (s *stage) leads(member string) uint64 {
	s.Helper()
	etcd, again, late := s.at(member), time.NewTicker(loadTimeout/10), time.After(patience)
	defer again.Stop()
	for {
		ctx, cancel := context.WithTimeout(s.Context(), loadTimeout)
		status, err := etcd.Status(ctx, etcd.Endpoints()[0])
		cancel()
		if err == nil && status.Leader != 0 {
			return status.Header.ClusterId
		}
		select {
		case <-again.C:
		case <-late:
			s.Fatalf("waited %s for %s to have a leader: %v", patience, member, err)
		}
	}
}

// TestFormerNodeBack: the node of a former member is off the network, and comes back while the
// restore waits for it. Then the restore goes on.
func TestFormerNodeBack(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	s.loaded, s.listens = true, true
	c, m, kept, _ := s.toRestore()
	before, asked := identityOf(c), time.Now()
	former := memberNames(c)
	away := former[slices.IndexFunc(former, func(name string) bool { return name != c.Status.Leader })]
	s.must(s.hostlet.LoseNode(s.ns, away))
	e := s.etcdRestore("back", anyway)
	s.create(e)
	s.waitsFor(c, away)
	s.awaitLed(c) // to no member
	s.neverLed(c, former...)
	if pods := s.pods(c); len(pods) != 1 || len(s.aside(c)) > 0 {
		t.Errorf("while %s may still run, there are %d Pods, and %v are set aside", away, len(pods), s.aside(c))
	}

	s.must(s.hostlet.ReturnNode(s.ns, away))
	s.restores(e)
	s.isBack(c, before, m)
	if revision := s.clients.restored(asked); revision != m.Revision {
		t.Errorf("revision %d was restored, and that of the snapshot is %d", revision, m.Revision)
	}
	s.clients.check()
	s.settled(c, kept)
}

// TestFormerNodesForced: the nodes of two former members are off the network. A person deletes
// their Pods by force, though these nodes are not off. Their etcds come back, one during the
// restore and one after it, with the old volumes, and are a quorum of what was the cluster. No
// client is led to them, and they are no members of the restored cluster.
func TestFormerNodesForced(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	s.loaded = true
	c, m, kept, _ := s.toRestore()
	before, asked := identityOf(c), time.Now()
	former, away := memberNames(c), []string{"db-1", "db-2"}
	for _, name := range away {
		s.must(s.hostlet.LoseNode(s.ns, name))
	}
	e := s.etcdRestore("back", anyway)
	s.create(e)
	s.waitsFor(c, away...)
	s.awaitLed(c) // to no member
	s.neverLed(c, former...)
	s.hostlet.Cordon()
	for _, name := range away {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
		s.must(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	}
	s.awaitPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-3", Namespace: s.ns}}, "created", func() bool { return true })
	s.must(s.hostlet.Resume(s.ns, "db-1"))
	s.must(s.hostlet.Uncordon(t.Context()))
	s.restores(e)
	s.isBack(c, before, m)
	if revision := s.clients.restored(asked); revision != m.Revision {
		t.Errorf("revision %d was restored, and that of the snapshot is %d", revision, m.Revision)
	}

	s.must(s.hostlet.Resume(s.ns, "db-2"))
	for _, name := range away { // else nothing is shown here
		if id := s.leads(name); id == 0 || c.Status.ClusterID == strconv.FormatUint(id, 16) {
			t.Errorf("%s is of the cluster %x, and %s was restored", name, id, c.Status.ClusterID)
		}
	}
	s.put(s.at("db-1"), "later", "by the quorum of before")
	s.clients.await(10)
	s.clients.check()
	s.settled(c, kept)

	for _, name := range away {
		s.must(s.hostlet.ReturnNode(s.ns, name))
		if err := s.hostlet.Kill(s.ns, name); err == nil {
			t.Errorf("%s still ran when its node had heard that its Pod is gone", name)
		}
	}
	s.settled(c, kept)
	if aside := s.aside(c); !slices.Equal(aside, former) {
		t.Errorf("set aside are %v, want %v", aside, former)
	}
}
