//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
)

const (
	clientsAway  = 300 * time.Millisecond // as a median: for how long a kube-apiserver is served nothing
	clientsRatio = 1.3                    // of Quorate's time to that by hand, in the same run
	clientsPace  = 20 * time.Millisecond
)

// TestBenchClients: a real kube-apiserver has the Service for clients as its etcd, and is asked to
// write and to read every 20 ms, of three kinds of objects: for each it has a connection of its
// own, to whichever member that leads. All is measured while members come and go, the one that
// leads among them, and while the version changes in place, by Quorate and by hand.
func TestBenchClients(t *testing.T) {
	titles := []string{"3 to 5 members", "5 to 3 members, the leader among those that go", "3.5.35 to 3.6.16 in place", "the same by hand"}
	seen := make([]servings, len(titles))
	for n := range *pairs {
		byHand := handledByHand(t)
		seen[3].add(byHand)
		t.Logf("run %d: %s: %s", n+1, titles[3], byHand)
		for i, s := range handledByQuorate(t) {
			seen[i].add(s)
			t.Logf("run %d: %s: %s", n+1, titles[i], s)
		}
	}
	rows := []string{
		"| | time: median | max | requests | dropped by raft | failed otherwise | longest without service: median | max | bound |",
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
	}
	for i, title := range titles {
		rows = append(rows, seen[i].row(title))
		if away := median(seen[i].away); i < 3 && away > clientsAway {
			t.Errorf("%s: the median of the longest times without service is %s, want at most %s", title, away, clientsAway)
		}
		if i < 3 && seen[i].failed > 0 {
			t.Errorf("%s: %d requests failed, and not because the leadership moved", title, seen[i].failed)
		}
	}
	var ratios []float64
	for n, took := range seen[2].took {
		ratios = append(ratios, took.Seconds()/seen[3].took[n].Seconds())
	}
	if median(ratios) > clientsRatio {
		t.Errorf("%s: %.2f times as long as by hand, want at most %.1f", titles[2], median(ratios), clientsRatio)
	}
	fmt.Printf("\nA kube-apiserver as the client of the Service: %d runs, ratio of a change in place to that by hand %.2f (median), %.2f (max)\n\n%s\n\n",
		*pairs, median(ratios), slices.Max(ratios), strings.Join(rows, "\n"))
}

// serving is what came of requests during a change.
type serving struct {
	took                      time.Duration // of the change
	requests, dropped, failed int           // dropped: by raft, while the leadership moved; failed: all others
	away                      time.Duration // the longest in which no request of one kind was answered
	why                       []string      // of failures, each once
}

// raftDropped are etcd's answers where raft has dropped a proposal: at once at the leader, and at a
// follower, which sends it on and hears no more of it, when its time is over.
var raftDropped = []string{"raft proposal dropped", "etcdserver: request timed out"}

func (s serving) String() string {
	return fmt.Sprintf("%.2f s, of %d requests %d were dropped by raft and %d failed otherwise, %d ms without service %v", s.took.Seconds(), s.requests, s.dropped, s.failed, s.away.Milliseconds(), s.why)
}

type servings struct {
	took, away                []time.Duration
	requests, dropped, failed int
}

func (all *servings) add(s serving) {
	all.took, all.away = append(all.took, s.took), append(all.away, s.away)
	all.requests, all.dropped, all.failed = all.requests+s.requests, all.dropped+s.dropped, all.failed+s.failed
}

func (all *servings) row(title string) string {
	return fmt.Sprintf("| %s | %.1f s | %.1f s | %d | %d | %d | %d ms | %d ms | %d ms |", title, median(all.took).Seconds(), slices.Max(all.took).Seconds(),
		all.requests, all.dropped, all.failed, median(all.away).Milliseconds(), slices.Max(all.away).Milliseconds(), clientsAway.Milliseconds())
}

// handledByQuorate are the three changes of one cluster.
func handledByQuorate(t *testing.T) []serving {
	t.Helper()
	s, remove := temporaryStage(t)
	defer remove()
	c := s.cluster("db", 3)
	c.Spec.Version = node.Etcd35
	s.create(c)
	s.ready(c)
	served, stop := s.apiServerOn(c)
	defer stop()
	grown := s.during(served, func() { s.resize(c, 5) })
	s.lead(c, c.MemberName(4))
	shrunk := s.during(served, func() { s.resize(c, 3) })
	return []serving{grown, shrunk, s.during(served, func() {
		s.change(c, func() { c.Spec.Version = node.Etcd36 })
		s.await(c, "ready with "+node.Etcd36, func() bool {
			return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == node.Etcd36
		})
	})}
}

// handledByHand is the last of them: one image after the other, the next when the last is ready.
func handledByHand(t *testing.T) serving {
	t.Helper()
	s, remove := temporaryStage(t)
	defer remove()
	c := s.cluster("hand", 3)
	c.Spec.Version = node.Etcd35
	s.applyAll(s.byHand(c)...)
	s.untilReady(s.watchPods(), 3)
	served, stop := s.apiServerOn(c)
	defer stop()
	return s.during(served, func() {
		for n := range 3 {
			update{node.Etcd35, node.Etcd36, true}.changeByHand(s, c, c.MemberName(n))
		}
	})
}

// apiServerOn starts a kube-apiserver that keeps its objects in the cluster, by way of the Service
// for clients, until stop is called.
func (s *stage) apiServerOn(c *api.EtcdCluster) (served client.Client, stop func()) {
	s.Helper()
	service := &corev1.Service{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: c.ClientServiceName()}, service); err != nil {
		s.Fatal(err)
	}
	address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(api.PortClient))
	s.insist("reach Services from this machine, for which e2e/node needs root and iproute2", func(ctx context.Context) error {
		// What is sent before the proxy knows the Service is lost, and all that is sent again on
		// the same way.
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	assets, err := node.Assets(s.Context(), "")
	if err != nil {
		s.Fatal(err)
	}
	server := &envtest.APIServer{
		Path: filepath.Join(assets, "kube-apiserver"), EtcdURL: &url.URL{Scheme: "http", Host: address}, StartTimeout: patience,
	}
	if err := server.Start(); err != nil {
		s.Fatalf("start a kube-apiserver on %s: %v", address, err)
	}
	stop = sync.OnceFunc(func() {
		if err := server.Stop(); err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(stop) // where the test fails before
	config, err := server.AddUser(envtest.User{Name: "bench", Groups: []string{"system:masters"}}, &rest.Config{
		Host: server.SecureServing.URL("https", "/").Host, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA}, QPS: -1,
	})
	if err != nil {
		s.Fatal(err)
	}
	if served, err = client.New(config, client.Options{}); err != nil {
		s.Fatal(err)
	}
	for kind, o := range kept() {
		o.SetName("read")
		s.insist("create a "+kind, func(ctx context.Context) error { return client.IgnoreAlreadyExists(served.Create(ctx, o)) })
	}
	return served, stop
}

// kept are the objects that the kube-apiserver is asked for.
func kept() map[string]client.Object {
	all := map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Secret": &corev1.Secret{}, "Lease": &coordinationv1.Lease{}}
	for _, o := range all {
		o.SetNamespace("default")
	}
	return all
}

// during a change requests of each kind are begun at a pace, by turns to write and to read, whether
// those before were answered or not.
func (s *stage) during(served client.Client, change func()) serving {
	s.Helper()
	<-time.After(settled)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	results := make([]serving, 0, len(kept()))
	var mu sync.Mutex
	for _, o := range kept() {
		asking.Go(func() {
			result := ask(s.Context(), served, o, stop)
			mu.Lock()
			defer mu.Unlock()
			results = append(results, result)
		})
	}
	begun := time.Now()
	change()
	all := serving{took: time.Since(begun)}
	<-time.After(time.Second) // what has changed last is felt a moment later
	close(stop)
	asking.Wait()
	why := map[string]bool{}
	for _, r := range results {
		all.requests, all.dropped, all.failed = all.requests+r.requests, all.dropped+r.dropped, all.failed+r.failed
		all.away = max(all.away, r.away)
		for _, w := range r.why {
			why[w] = true
		}
	}
	all.why = slices.Sorted(maps.Keys(why))
	return all
}

// ask for objects of one kind until stop.
func ask(ctx context.Context, served client.Client, kind client.Object, stop <-chan struct{}) serving {
	const giveUp = 30 * time.Second // as a client of Kubernetes would, or later
	var result serving
	var mu sync.Mutex
	var asked sync.WaitGroup
	answered := time.Now()
	pace := time.NewTicker(clientsPace)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-pace.C:
		case <-stop:
			asked.Wait()
			return result
		}
		asked.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, giveUp, errors.New("no answer in "+giveUp.String()))
			defer cancel()
			o := kind.DeepCopyObject().(client.Object)
			var err error
			if n%2 == 0 {
				o.SetName("")
				o.SetGenerateName("written-")
				err = served.Create(ctx, o)
			} else {
				err = served.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: "read"}, o)
			}
			mu.Lock()
			defer mu.Unlock()
			result.requests++
			if err != nil {
				if slices.ContainsFunc(raftDropped, func(said string) bool { return strings.Contains(err.Error(), said) }) {
					result.dropped++
				} else {
					result.failed++
				}
				result.why = append(result.why, err.Error())
				return
			}
			result.away = max(result.away, time.Since(answered))
			answered = time.Now()
		})
	}
}
