//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// A load is clients that read and write while a test changes the cluster, each as an application would: one request at a
// time, and a request that failed is not repeated, since it may have been carried out.

const (
	loadPrefix  = "load/"
	loadClients = 3
	loadKeys    = 4                     // few, so that they meet
	loadPace    = 30 * time.Millisecond // between the requests of one client: what is tested is not how much etcd can bear
	loadTimeout = 2 * time.Second       // of one request, so that a client tries another member soon
	loadFloor   = 2.0                   // acknowledged writes a second, without which a run shows nothing
)

// load is what the clients asked for, and what became of it.
type load struct {
	*stage
	cluster   *api.EtcdCluster
	begun     time.Time
	first     int64 // the revision after which the load began
	end       func()
	acked     atomic.Int64
	etcds     []*clientv3.Client // the last one watches
	histories [loadClients][]operation

	mu     sync.Mutex
	events []event
	heard  chan struct{} // closed and made anew at each event
}

// operation is one request. An empty value that was read is a key that is not there.
type operation struct {
	client        int
	write         bool
	key, value    string
	revision      int64         // at which an acknowledged write was made
	called, ended time.Duration // since the load began
	err           error
}

// load starts clients, which are at work when it returns. They go wherever the Service for clients would send them.
func (s *stage) load(c *api.EtcdCluster) *load {
	s.Helper()
	for _, pod := range s.pods(c) {
		s.awaitPod(&pod, "ready", func() bool { return podReady(&pod) })
	}
	asking, enough := context.WithTimeout(s.Context(), patience)
	defer enough()
	r, err := s.etcd(c).Get(asking, loadPrefix)
	if err != nil {
		s.Fatal(err)
	}
	l := &load{stage: s, cluster: c, begun: time.Now(), first: r.Header.Revision, heard: make(chan struct{})}
	endpoints, err := l.endpoints(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for range loadClients + 1 {
		l.etcds = append(l.etcds, s.dialEndpoints(endpoints))
	}
	ctx, cancel := context.WithCancel(s.Context())
	var working, listening sync.WaitGroup
	for n, etcd := range l.etcds[:loadClients] {
		working.Go(func() { l.histories[n] = l.ask(ctx, n, etcd) })
	}
	hearing, deafen := context.WithCancel(s.Context())
	listening.Go(func() { l.watch(hearing, l.etcds[loadClients]) })
	listening.Go(func() { l.follow(hearing) })
	l.end = sync.OnceFunc(func() { cancel(); working.Wait() })
	s.Cleanup(func() { l.end(); deafen(); listening.Wait() })
	l.await(10)
	return l
}

func (s *stage) dialEndpoints(endpoints []string) *clientv3.Client {
	s.Helper()
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: loadTimeout, Logger: zap.NewNop(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: loadTimeout, // of a member that is silent nothing else tells
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = etcd.Close() }) // a test that fails here has failed before
	return etcd
}

// ask for one thing after the other, reads and writes in turn.
func (l *load) ask(ctx context.Context, n int, etcd *clientv3.Client) []operation {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	pace := time.NewTicker(loadPace)
	defer pace.Stop()
	var history []operation
	for {
		select {
		case <-ctx.Done():
			return history
		case <-pace.C:
		}
		o := operation{client: n, write: len(history)%2 == 0, key: fmt.Sprintf("%s%d", loadPrefix, random.IntN(loadKeys))}
		if o.write {
			o.value = fmt.Sprintf("%d-%d", n, len(history)) // no two writes write the same
		}
		attempt, cancel := context.WithTimeout(ctx, loadTimeout)
		o.called = time.Since(l.begun)
		o.err = o.make(attempt, etcd)
		o.ended = time.Since(l.begun)
		cancel()
		if o.write && o.err == nil {
			l.acked.Add(1)
		}
		history = append(history, o)
	}
}

func (o *operation) make(ctx context.Context, etcd *clientv3.Client) error {
	if o.write {
		r, err := etcd.Put(ctx, o.key, o.value)
		if err == nil {
			o.revision = r.Header.Revision
		}
		return err
	}
	r, err := etcd.Get(ctx, o.key)
	if err == nil && len(r.Kvs) > 0 {
		o.value = string(r.Kvs[0].Value)
	}
	return err
}

// await that many acknowledged writes from now on.
func (l *load) await(writes int64) {
	l.Helper()
	pace := time.NewTicker(loadPace)
	defer pace.Stop()
	late := time.After(patience)
	for enough := l.acked.Load() + writes; l.acked.Load() < enough; {
		select {
		case <-pace.C:
		case <-late:
			l.Fatalf("%d writes acknowledged, want %d", l.acked.Load(), enough)
		}
	}
}

// follow sends the clients where the Service for clients leads: to the Pods that are ready, at each time.
func (l *load) follow(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := l.Watch(ctx, &corev1.PodList{}, client.InNamespace(l.ns), client.MatchingLabels{api.LabelCluster: l.cluster.Name})
		if err != nil {
			continue
		}
		var last []string
		for range w.ResultChan() {
			endpoints, err := l.endpoints(ctx)
			if err != nil || len(endpoints) == 0 || slices.Equal(endpoints, last) {
				continue
			}
			for _, etcd := range l.etcds {
				etcd.SetEndpoints(endpoints...)
			}
			last = endpoints
		}
		w.Stop()
	}
}

func (l *load) endpoints(ctx context.Context) ([]string, error) {
	pods := &corev1.PodList{}
	if err := l.List(ctx, pods, client.InNamespace(l.ns), client.MatchingLabels{api.LabelCluster: l.cluster.Name}); err != nil {
		return nil, err
	}
	var endpoints []string
	for _, pod := range pods.Items {
		if podReady(&pod) && pod.DeletionTimestamp.IsZero() {
			endpoints = append(endpoints, "http://"+pod.Status.PodIP+":2379")
		}
	}
	return endpoints, nil
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
