//go:build env

package reconcile_test

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// way to the members of a cluster by its Service for clients, as by kube-proxy: a connection is led
// to a member that the Service leads to then, each to the next one, and ends with the process
// there. Where it leads to none, or the way is cut, it is refused.
type way struct {
	address string
	cut     atomic.Bool
}

func (s *stage) way(c *api.EtcdCluster) *way {
	s.Helper()
	service := c.ClientServiceName()
	listener, err := new(net.ListenConfig).Listen(s.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	w := &way{address: listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context())) // those that use it are stopped before
	var open sync.WaitGroup
	s.Cleanup(func() {
		cancel()
		_ = listener.Close()
		open.Wait()
	})
	open.Go(func() {
		for n := 0; ; n++ {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = from.Close() }()
				if !w.cut.Load() {
					s.forward(ctx, from, service, n)
				}
			})
		}
	})
	return w
}

// forward a connection to a member, until either end closes it.
func (s *stage) forward(ctx context.Context, from net.Conn, service string, n int) {
	slice, pod := &discoveryv1.EndpointSlice{}, &corev1.Pod{}
	if s.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: service + "-hostlet"}, slice) != nil {
		return
	}
	ready := slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return !*e.Conditions.Ready })
	if len(ready) == 0 || s.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: ready[n%len(ready)].TargetRef.Name}, pod) != nil {
		return
	}
	to, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, "2379"))
	if err != nil {
		return
	}
	end := func() { _, _ = from.Close(), to.Close() }
	defer end()
	defer context.AfterFunc(ctx, end)()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(to, from) // it is over, whatever the reason
		end()
	})
	_, _ = io.Copy(from, to)
	end()
	back.Wait()
}
