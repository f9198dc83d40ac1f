package reconcile

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
)

// lasting is a member over a connection that lasts until it is closed or broken.
type lasting struct {
	asked
	broken, closed atomic.Bool
}

func (l *lasting) Lasts() bool { return !l.broken.Load() && !l.closed.Load() }
func (l *lasting) Close() error {
	if l.closed.Swap(true) {
		return errors.New("it was closed before")
	}
	return nil
}

// TestConnectionTaken: what is kept is used for the same destination alone, until it is old or does
// not last.
func TestConnectionTaken(t *testing.T) {
	config, now := &tls.Config{MinVersion: tls.VersionTLS12}, time.Now()
	to := destination{pod: "uid", ip: "10.0.0.1", config: config}
	type args struct {
		cluster, member string
		to              destination
		after           time.Duration
		broken          bool
	}
	cases := map[string]struct {
		reason string
		change func(*args)
		want   bool
	}{
		"Same":        {reason: "it leads to the same Pod", change: func(*args) {}, want: true},
		"Cluster":     {reason: "two clusters may have members of one name", change: func(a *args) { a.cluster = "other" }},
		"Member":      {reason: "the certificate was checked for another name", change: func(a *args) { a.member = "db-1" }},
		"Pod":         {reason: "another Pod has got the address", change: func(a *args) { a.to.pod = "another" }},
		"Address":     {reason: "the Pod was moved to another sandbox", change: func(a *args) { a.to.ip = "10.0.0.2" }},
		"Certificate": {reason: "it was renewed, or another authority is trusted", change: func(a *args) { a.to.config = config.Clone() }},
		"PlainText":   {reason: "the clients' port has no TLS any more", change: func(a *args) { a.to.config = nil }},
		"Young":       {reason: "none is replaced at once", change: func(a *args) { a.after = mostAge / 2 }, want: true},
		"Old":         {reason: "it must show that clients can connect", change: func(a *args) { a.after = mostAge }},
		"Broken":      {reason: "a new one finds a restarted member sooner", change: func(a *args) { a.broken = true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd, all := &lasting{}, &connections{}
			all.keep(turnOf("db"), map[string]*connection{"db-0": connected(etcd, to, now)})
			a := args{cluster: "db", member: "db-0", to: to}
			tc.change(&a)
			etcd.broken.Store(a.broken)
			if got := all.take(turnOf(a.cluster), a.member, a.to, now.Add(a.after)) != nil; got != tc.want {
				t.Errorf("%s: taken %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestConnectionClosed: a connection is closed once, when neither a look nor anything beside it
// uses it any more.
func TestConnectionClosed(t *testing.T) {
	to, now := destination{pod: "uid", ip: "10.0.0.1"}, time.Now()
	db := turnOf("db")
	cases := map[string]struct {
		reason string
		then   func(all *connections)
		want   []bool // whether the first and the second connection are closed
	}{
		"Kept": {reason: "the next look uses it", then: func(*connections) {}, want: []bool{false, false}},
		"Silent": {reason: "the next look has no answer of the first member", then: func(all *connections) {
			all.keep(db, map[string]*connection{"db-1": all.take(db, "db-1", to, now)})
		}, want: []bool{true, false}},
		"Deleted":  {reason: "nothing is kept of a deleted cluster", then: func(all *connections) { all.forget(db) }, want: []bool{true, true}},
		"Other":    {reason: "another cluster is deleted", then: func(all *connections) { all.forget(turnOf("other")) }, want: []bool{false, false}},
		"Ended":    {reason: "the operator ends", then: func(all *connections) { all.end() }, want: []bool{true, true}},
		"LateLook": {reason: "a look that ends after the operator keeps nothing", then: func(all *connections) { all.end(); all.keep(db, nil) }, want: []bool{true, true}},
		"Replaced": {reason: "the look has connected again, because the first was old", then: func(all *connections) {
			all.keep(db, map[string]*connection{"db-0": connected(&lasting{}, to, now), "db-1": all.take(db, "db-1", to, now)})
		}, want: []bool{true, false}},
		"InUse": {reason: "a comparison is not cut off", then: func(all *connections) {
			all.take(db, "db-0", to, now)
			all.forget(db)
		}, want: []bool{false, true}},
		"Used": {reason: "the comparison has ended", then: func(all *connections) {
			beside := all.take(db, "db-0", to, now)
			all.forget(db)
			_ = beside.Close() // the stub's error is of another kind
		}, want: []bool{true, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcds, all := []*lasting{{}, {}}, &connections{}
			first, second := connected(etcds[0], to, now), connected(etcds[1], to, now)
			all.keep(db, map[string]*connection{"db-0": first, "db-1": second})
			tc.then(all)
			if diff := cmp.Diff(tc.want, []bool{etcds[0].closed.Load(), etcds[1].closed.Load()}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLookConnects: a look uses the connections of the look before, and connects again only where
// something has changed. In the end each connection is closed but those that are kept.
func TestLookConnects(t *testing.T) {
	ip := map[string]string{"db-0": "10.0.0.1", "db-1": "10.0.0.2", "db-2": "10.0.0.3"}
	cases := map[string]struct {
		reason string
		change func(pods map[string]*corev1.Pod, at map[string]*lasting)
		want   []string // the addresses to which the second look connects
		kept   []string // the members to which a connection is kept
	}{
		"Rests":   {reason: "nothing has changed", change: func(map[string]*corev1.Pod, map[string]*lasting) {}, kept: []string{"db-0", "db-1", "db-2"}},
		"Another": {reason: "another Pod has the name and the address", change: func(pods map[string]*corev1.Pod, _ map[string]*lasting) { pods["db-1"].UID = "another" }, want: []string{"10.0.0.2"}, kept: []string{"db-0", "db-1", "db-2"}},
		"Gone":    {reason: "a Pod is gone", change: func(pods map[string]*corev1.Pod, _ map[string]*lasting) { delete(pods, "db-1") }, kept: []string{"db-0", "db-2"}},
		"Broken":  {reason: "a member was restarted", change: func(_ map[string]*corev1.Pod, at map[string]*lasting) { at["10.0.0.2"].broken.Store(true) }, want: []string{"10.0.0.2"}, kept: []string{"db-0", "db-1", "db-2"}},
		"Silent": {reason: "a member does not answer any more", change: func(_ map[string]*corev1.Pod, at map[string]*lasting) {
			at["10.0.0.2"].endpoint = membership.Endpoint{}
		}, kept: []string{"db-0", "db-2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, at := map[string]*corev1.Pod{}, map[string]*lasting{}
			dialed, made := make(chan string, 10), make(chan *lasting, 10)
			for name := range ip {
				pods[name] = newPod(name)
				runningPod(pods[name], time.Time{})
				pods[name].Status.PodIP = ip[name]
			}
			r := &Reconciler{Dial: func(host string, _ int) (membership.Client, error) {
				l := &lasting{asked: asked{etcd: etcd{endpoint: membership.Endpoint{ClusterID: 0xc0, MemberID: 0xa0}}}}
				dialed <- host
				made <- l
				return l, nil
			}, Scrape: func(context.Context, string, int) (membership.Endpoint, error) {
				return membership.Endpoint{}, errors.New("connection refused")
			}}
			looks := func() []string {
				r.ask(t.Context(), newCluster(), pods)
				var hosts []string
				for range len(dialed) {
					hosts = append(hosts, <-dialed)
				}
				slices.Sort(hosts)
				return hosts
			}
			if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, looks()); diff != "" {
				t.Fatalf("the first look: -want +got:\n%s", diff)
			}
			for _, c := range r.connections.kept[turnOf("db")] {
				at[c.to.ip] = c.Client.(*lasting)
			}
			tc.change(pods, at)
			if diff := cmp.Diff(tc.want, looks()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			kept := r.connections.kept[turnOf("db")]
			if diff := cmp.Diff(tc.kept, slices.Sorted(maps.Keys(kept))); diff != "" {
				t.Errorf("%s: kept: -want +got:\n%s", tc.reason, diff)
			}
			close(made)
			for l := range made {
				is := slices.ContainsFunc(slices.Collect(maps.Values(kept)), func(c *connection) bool { return c.Client == l })
				if l.closed.Load() == is {
					t.Errorf("%s: a connection is kept: %t, and closed: %t", tc.reason, is, l.closed.Load())
				}
			}
		})
	}
}

// TestConnectionsOutliveLooks: the Secrets are read every few minutes, and connections stay unless
// the operator's certificate was renewed.
func TestConnectionsOutliveLooks(t *testing.T) {
	t.Parallel()
	c := managed()
	var objects []client.Object
	for _, secret := range secrets(t, c) {
		objects = append(objects, secret)
	}
	s := newStub(t, nil, append(slices.Clone(objects), newPod("db-0"))...)
	config := func(at time.Time) *tls.Config {
		found, err := s.secure(t.Context(), c, at)
		operator := found.configs[c.OperatorSecret()]
		if err != nil || operator == nil {
			t.Fatal(err, found)
		}
		return operator
	}
	first := config(noon.Add(time.Hour))
	if config(noon.Add(2*time.Hour)) != first {
		t.Error("the same certificate was read again, and is another configuration")
	}
	renewed := noon.Add(pki.LeafLifetime*2/3 + time.Hour)
	config(renewed)
	for _, o := range objects {
		if data := s.secrets[o.GetName()]; data != nil {
			o.(*corev1.Secret).Data = data
		}
	}
	s.Reader = newStub(t, nil, append(objects, newPod("db-0"))...).Client // with what was written
	if config(renewed.Add(time.Hour)) == first {
		t.Error("the certificate was renewed, and the configuration is the same")
	}
}
