//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: story, Name: name}, Data: map[string]string{"value": value}}
}

// lists fails unless the API server answers, from etcd and from its cache, with exactly these
// objects.
func (s *stage) lists(name string, a *tenant, want map[string]object) (at int64) {
	s.Helper()
	for _, from := range []string{"", "0"} {
		got, revision, err := a.list(s.Context(), from)
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			s.Errorf("API server %s (from %q): %v, -want +got:\n%s", name, from, err, diff)
		}
		at = revision
	}
	return at
}

// expired fails unless a watch from that revision is told that it is no more.
func (s *stage) expired(name string, a *tenant, at string) {
	s.Helper()
	from := &client.ListOptions{Namespace: story, Raw: &metav1.ListOptions{ResourceVersion: at}}
	w, err := a.Watch(s.Context(), &corev1.ConfigMapList{}, from)
	if err == nil {
		event := <-w.ResultChan()
		w.Stop()
		if event.Type == watch.Error {
			err = apierrors.FromObject(event.Object)
		}
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		s.Errorf("API server %s: a watch from revision %s goes on, or ends otherwise: %v", name, at, err)
	}
}

// records an event, which the API server keeps under a lease of etcd that it uses for a while.
func (s *stage) records(a *tenant) (*corev1.Event, error) {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: story, GenerateName: "event-"},
		InvolvedObject: corev1.ObjectReference{Namespace: story, Kind: "ConfigMap", Name: "kept"},
	}
	return e, a.Create(s.Context(), e)
}

// leased reports whether the lease of an event is one of those.
func (s *stage) leased(etcd *clientv3.Client, e *corev1.Event, leases []clientv3.LeaseStatus) bool {
	s.Helper()
	got, err := etcd.Get(s.Context(), "/registry/events/"+story+"/"+e.Name)
	s.must(err)
	if len(got.Kvs) != 1 || got.Kvs[0].Lease == 0 {
		s.Fatalf("event %s has no lease: %v", e.Name, got.Kvs)
	}
	return slices.Contains(leases, clientv3.LeaseStatus{ID: clientv3.LeaseID(got.Kvs[0].Lease)})
}

// TestInPlaceAPIServers: two kube-apiservers keep their objects in a cluster that is put back, one
// of which runs all the time.
func TestInPlaceAPIServers(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	c := s.cluster("db", 3)
	s.create(c)
	former := s.ready(c)
	s.awaitLed(c, "db-0", "db-1", "db-2")
	servers := s.tenants(c, "Running", "Restarted")
	running := servers["Running"]
	for _, o := range []*corev1.ConfigMap{configMap("kept", "1"), configMap("changed", "1"), configMap("deleted", "1")} {
		s.must(running.Create(t.Context(), o))
	}
	kept, _, err := running.list(t.Context(), "")
	s.must(err)
	var stops []func()
	for name, a := range servers {
		s.informs(a, kept)
		stops = append(stops, s.keepsReading(name, a))
	}
	leases, err := former.Leases(t.Context())
	s.must(err)
	m := s.snapshot(c, "monday")

	// What is given up, and seen by all.
	changed, added := configMap("changed", "2"), configMap("added", "1")
	s.must(running.Update(t.Context(), changed))
	s.must(running.Create(t.Context(), added))
	s.must(running.Delete(t.Context(), configMap("deleted", "")))
	later, _, err := running.list(t.Context(), "")
	s.must(err)
	for _, a := range servers {
		s.informs(a, later)
	}
	event, err := s.records(running)
	s.must(err)
	keepsLease := s.leased(former, event, leases.Leases) // where it had begun one by itself
	restarted := servers["Restarted"]
	for _, a := range servers {
		a.way.cut.Store(true) // until what they do without a connection was seen
	}
	e := s.etcdRestore("back", anyway)
	s.create(e)
	s.restores(e)
	etcd := s.ready(c) // and so the Service leads to the members
	for name, a := range servers {
		if got, _, err := a.list(t.Context(), "0"); err != nil || !maps.Equal(got, later) {
			t.Errorf("API server %s has %v in its cache, %v, want what was given up, as docs/restore.md says", name, got, err)
		}
	}
	s.killed(restarted) // its informer knows nothing yet
	for _, a := range servers {
		a.way.cut.Store(false)
	}
	s.must(restarted.start())

	for name, a := range servers {
		s.informs(a, kept)
		if at := s.lists(name, a, kept); at < m.Revision+bumped {
			t.Errorf("API server %s is at revision %d, and the snapshot was taken at %d", name, at, m.Revision)
		}
		s.expired(name, a, added.ResourceVersion)
		if err := a.Update(t.Context(), changed.DeepCopy()); !apierrors.IsConflict(err) {
			t.Errorf("API server %s: an update of what was given up is answered with %v", name, err)
		}
		if err := a.Update(t.Context(), added.DeepCopy()); !apierrors.IsNotFound(err) {
			t.Errorf("API server %s: an update of what is gone is answered with %v", name, err)
		}
	}
	s.stored(etcd, kept)
	_, err = s.records(running)
	if lost := err != nil && strings.Contains(err.Error(), "requested lease not found"); lost == keepsLease {
		t.Errorf("the lease for events is in the snapshot: %t; an API server that ran all the time says %v", keepsLease, err)
	}
	_, err = s.records(restarted)
	s.must(err)

	// It goes on.
	s.must(running.Create(t.Context(), configMap("added", "3")))
	s.must(restarted.Patch(t.Context(), configMap("changed", "3"), client.Merge))
	now, _, err := running.list(t.Context(), "")
	s.must(err)
	for name, a := range servers {
		s.informs(a, now)
		s.lists(name, a, now)
	}
	for _, stop := range stops {
		stop()
	}
	s.unforked(running.seen, m.Revision)
	t.Logf("the lease for events was in the snapshot: %t", keepsLease)
}

// stored fails unless these are the ConfigMaps that etcd has.
func (s *stage) stored(etcd *clientv3.Client, want map[string]object) {
	s.Helper()
	const prefix = "/registry/configmaps/" + story + "/"
	all, err := etcd.Get(s.Context(), prefix, clientv3.WithPrefix())
	s.must(err)
	got := map[string]int64{}
	for _, kv := range all.Kvs {
		got[strings.TrimPrefix(string(kv.Key), prefix)] = kv.ModRevision
	}
	if !maps.EqualFunc(want, got, func(o object, revision int64) bool { return o.Revision == revision }) {
		s.Errorf("etcd has %v, want %v", got, want)
	}
}

// unforked fails if a client was served a revision with other data than before, or what was given
// up beside what was not.
func (s *stage) unforked(served *seen, restored int64) {
	s.Helper()
	served.mu.Lock()
	defer served.mu.Unlock()
	for _, fork := range served.forks {
		s.Error(fork)
	}
	after := 0
	for at, list := range served.lists {
		if at < restored+bumped {
			continue
		}
		after++
		for name, o := range list {
			if o.Revision > restored && o.Revision <= restored+bumped {
				s.Errorf("the list of revision %d has %s of revision %d, which was given up", at, name, o.Revision)
			}
		}
	}
	s.Logf("%d lists of which %d are of the restored cluster, %d objects", len(served.lists), after, len(served.objects))
}
