//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
)

// Acknowledged writes a second that there must be at least: about half of what the slowest load
// reaches on two cores.
const (
	storyFloor  = 8 // members are restarted one by one; seen: 28 to 46, and 12 once beside other work (until then 15 was asked for)
	resizeFloor = 3 // members come and go, or all go at once; seen: 6 to 13 likewise
	paceFloor   = 2
)

// load is clients that read and write a cluster whose members may come and go, and check what they
// are told. They are what well-behaved clients are: they know the members that are ready.
func (s *stage) load(c *api.EtcdCluster, floor float64) *history.Load {
	s.Helper()
	config := s.clients(c)
	config.Floor = floor
	return history.Start(s.T, config)
}

// writeAtPace is four clients that only write, together every 5 ms: for how long none of them gets
// on is what is measured. A request that a follower sends on while the leadership moves is dropped
// by raft without a word (stepLeader and stepFollower, MsgProp), and the client that made it waits
// out its own time-out, whatever moves the leadership. One more client watches meanwhile, or none.
func (s *stage) writeAtPace(c *api.EtcdCluster, watched bool) *history.Load {
	s.Helper()
	config := s.clients(c)
	config.WritesOnly, config.Unwatched, config.Keys, config.Floor = true, !watched, 1000000, paceFloor
	return history.Start(s.T, config)
}

// watchEach has a client watch at each member until stop is called, and again as soon as the member
// serves again.
func (s *stage) watchEach(c *api.EtcdCluster) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	var watching sync.WaitGroup
	for n := range int(*c.Spec.Replicas) {
		etcd, err := dialMembers(s.ns, []string{net.JoinHostPort(c.MemberName(n), strconv.Itoa(api.PortClient))})
		if err != nil {
			s.Fatal(err)
		}
		told := etcd.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		select {
		case <-told:
		case <-time.After(patience):
			s.Fatalf("waited %s for a watch at %s", patience, c.MemberName(n))
		}
		watching.Go(func() {
			defer func() { _ = etcd.Close() }() // it only listened
			for range told {
				continue // all that matters is what listens
			}
		})
	}
	return func() { cancel(); watching.Wait() }
}

func (s *stage) clients(c *api.EtcdCluster) history.Config {
	s.Helper()
	s.untilReady(s.watchPods(), 1)
	return history.Config{
		Dial:     func(endpoints ...string) (*clientv3.Client, error) { return dialMembers(s.ns, endpoints) },
		Pods:     history.Pods{Client: s.WithWatch, Select: s.membersOf(c), Endpoint: endpoint},
		Clients:  4,
		Pace:     20 * time.Millisecond,
		Timeout:  time.Second,
		Keys:     8,
		Patience: patience,
	}
}

// The longest pause between acknowledged writes that fails a story. What was seen is published in
// docs/reliability.md.
const (
	resizePause   = 10 * time.Second // seen: 3.5 s
	changesPause  = 4 * time.Second  // seen: 1.3 s
	survivalPause = time.Minute      // all Pods at once are deleted, and start again
)

// checkLoad ends a load, and fails the test unless clients were told what one store would have told
// them, and never waited longer than that for a write.
func (s *stage) checkLoad(l *history.Load, most time.Duration) {
	s.Helper()
	r := l.Check(s.T)
	s.Attr("acknowledged", fmt.Sprintf("%.1f writes a second", float64(r.Acknowledged)/(r.Lasted-r.Away).Seconds()))
	s.Attr("pause", fmt.Sprintf("%d ms of at most %d ms", r.Longest.Milliseconds(), most.Milliseconds()))
	if r.Longest > most {
		s.Errorf("no write was acknowledged for %s, want at most %s", r.Longest, most)
	}
}

// checkPace ends a load of writeAtPace, and fails the test unless all acknowledged is there and no
// write was tried in vain for longer than a client would.
func (s *stage) checkPace(l *history.Load) history.Result {
	s.Helper()
	const giveUp = 30 * time.Second
	r := l.Check(s.T)
	s.Attr("acknowledged", fmt.Sprintf("%.1f writes a second", float64(r.Acknowledged)/(r.Lasted-r.Away).Seconds()))
	if r.Longest > giveUp {
		s.Errorf("no write was acknowledged for %s, after which clients give up", r.Longest)
	}
	return r
}

func dialMembers(namespace string, endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints,
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialMember(ctx, namespace, address)
		})},
	})
}

// membersOf selects the Pods of a cluster by what those that were written by hand carry as well.
func (s *stage) membersOf(c *api.EtcdCluster) []client.ListOption {
	return []client.ListOption{client.InNamespace(s.ns), client.MatchingLabels{"app.kubernetes.io/instance": c.Name}}
}

func endpoint(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Name, strconv.Itoa(api.PortClient))
}

// reaches reports whether this machine sends what is for a Pod to the Pod's own node. It may send
// it to a node of another cluster with the same ranges, or to an unknown host: a proxy that stands
// there may answer in the Pod's stead.
func reaches(ctx context.Context, pod *corev1.Pod) bool {
	out, err := run(ctx, "ip", "-4", "route", "get", pod.Status.PodIP)
	return err == nil && strings.Contains(out, " via "+pod.Status.HostIP+" ")
}

// dialMember connects to a member by its Pod's address where this machine reaches that, and else
// through the API server, which takes longer.
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
	if !reaches(ctx, pod) {
		return dialPod(ctx, namespace, address)
	}
	direct := net.Dialer{Timeout: 500 * time.Millisecond}
	conn, err := direct.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, port))
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return dialPod(ctx, namespace, address)
	}
	return conn, err
}
