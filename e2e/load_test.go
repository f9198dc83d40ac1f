//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// load is a client that writes one key after the other, every pace, and remembers which writes etcd acknowledged, in order.
// It is what a well-behaved client is: it knows the members that are ready, and tries again what has failed.
type load struct {
	stop         func()
	acknowledged []string
	attempts     int           // requests, those that were tried again included
	failed       int           // writes that were given up
	longest      time.Duration // from one acknowledged write to the next
	begun        chan struct{} // closed when the first write is acknowledged
}

const (
	pace = 5 * time.Millisecond
	// attempt bounds one request, and giveUp all requests for one write.
	attempt = time.Second
	giveUp  = 30 * time.Second
)

// writeAtPace starts a load on a cluster, whose members may come and go. It ends with the test, or when stop is called.
func (s *stage) writeAtPace(c *api.EtcdCluster) *load {
	s.Helper()
	s.untilReady(s.watchPods(), 1)
	ctx, cancel := context.WithCancel(s.Context())
	cli, err := clientv3.New(clientv3.Config{
		Context:   ctx,
		Endpoints: s.readyEndpoints(ctx, c),
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialMember(ctx, s.ns, address)
		})},
	})
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	l := &load{begun: make(chan struct{})}
	var running sync.WaitGroup
	running.Go(func() { l.write(ctx, cli) })
	running.Go(func() { s.follow(ctx, c, cli) })
	l.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		_ = cli.Close() // nothing is left to fail
	})
	s.Cleanup(l.stop)
	return l
}

// write until the context ends.
func (l *load) write(ctx context.Context, cli *clientv3.Client) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	var last time.Time
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		key := fmt.Sprintf("%s%06d", historyPrefix, n)
		switch err := l.put(ctx, cli, key); {
		case err == nil:
			if len(l.acknowledged) == 0 {
				close(l.begun)
			} else {
				l.longest = max(l.longest, time.Since(last))
			}
			l.acknowledged, last = append(l.acknowledged, key), time.Now()
		case ctx.Err() == nil:
			l.failed++
		}
	}
}

// awaitLoad waits until writes are acknowledged.
func (s *stage) awaitLoad(l *load) {
	s.Helper()
	select {
	case <-l.begun:
	case <-time.After(patience):
		s.Fatalf("no write was acknowledged within %s", patience)
	}
}

// put tries until it succeeds, or for as long as giveUp.
func (l *load) put(ctx context.Context, cli *clientv3.Client, key string) error {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	for {
		l.attempts++
		one, done := context.WithTimeout(ctx, attempt)
		_, err := cli.Put(one, key, "")
		done()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// follow tells the client of members that become ready, or are about to go.
func (s *stage) follow(ctx context.Context, c *api.EtcdCluster, cli *clientv3.Client) {
	for ctx.Err() == nil {
		w, err := s.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name})
		if err != nil {
			continue
		}
		for range w.ResultChan() {
			if now := s.readyEndpoints(ctx, c); len(now) > 0 && !slices.Equal(now, cli.Endpoints()) {
				cli.SetEndpoints(now...)
			}
		}
		w.Stop()
	}
}

// readyEndpoints are the members that the Service for clients would lead to.
func (s *stage) readyEndpoints(ctx context.Context, c *api.EtcdCluster) []string {
	pods := &corev1.PodList{}
	if err := s.List(ctx, pods, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}); err != nil {
		return nil // the API server is away, or the test is over
	}
	var endpoints []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; isReady(pod) {
			endpoints = append(endpoints, net.JoinHostPort(pod.Name, strconv.Itoa(api.PortClient)))
		}
	}
	return endpoints
}

// dialMember connects to a member by its Pod's address where this machine reaches that, and else through the API server,
// which takes longer.
func dialMember(ctx context.Context, namespace, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return nil, err
	}
	if pod.Status.PodIP == "" {
		return nil, errors.New("Pod " + name + " has no address yet")
	}
	direct := net.Dialer{Timeout: 500 * time.Millisecond}
	conn, err := direct.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, port))
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return dialPod(ctx, namespace, address)
	}
	return conn, err
}

// checkLoad ends the load, and fails the test unless everything acknowledged is there, in order, and nothing was given up.
func (s *stage) checkLoad(l *load, c *api.EtcdCluster) {
	s.Helper()
	l.stop()
	s.check(&history{stop: func() {}, acknowledged: l.acknowledged, attempted: l.attempts, longest: l.longest}, c)
	if l.failed > 0 {
		s.Errorf("%d writes were given up after %s of trying again", l.failed, giveUp)
	}
}
