//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"

	api "quorate.dev/api/v1alpha1"
)

// etcd is a client of all members that have a Pod now. It reaches them through the API server, from
// wherever the tests run, and finds each again after its Pod has been recreated.
func (s *stage) etcd(c *api.EtcdCluster) *clientv3.Client {
	s.Helper()
	cli, err := s.connect(c, clientv3.Config{})
	if err != nil {
		s.Fatal(err)
	}
	return cli
}

// connect as this configuration says.
func (s *stage) connect(c *api.EtcdCluster, as clientv3.Config) (*clientv3.Client, error) {
	s.Helper()
	for _, pod := range s.pods(c) { // by the names in their certificates
		as.Endpoints = append(as.Endpoints, net.JoinHostPort(c.MemberHost(pod.Name), strconv.Itoa(api.PortClient)))
	}
	as.Logger = zap.NewNop()
	as.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return dialPod(ctx, s.ns, address)
	})}
	cli, err := clientv3.New(as)
	if err == nil {
		s.Cleanup(func() { _ = cli.Close() }) // a test that fails here has failed before
	}
	return cli, err
}

// insist asks until there is an answer, as clients do: a request may be lost with the connection
// that carries it, or be dropped by raft while the leadership moves.
func (s *stage) insist(what string, ask func(context.Context) error) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), time.Second, patience, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err := ask(ctx)
		if err != nil {
			s.Logf("%s, and once more: %v", what, err)
		}
		return err == nil, nil
	})
	if err != nil {
		s.Fatalf("%s: no answer in %s", what, patience)
	}
}

func (s *stage) put(c *clientv3.Client, key, value string) {
	s.Helper()
	s.insist("put "+key, func(ctx context.Context) error {
		_, err := c.Put(ctx, key, value)
		return err
	})
}

// get reads a key linearizably.
func (s *stage) get(c *clientv3.Client, key string) *clientv3.GetResponse {
	s.Helper()
	var r *clientv3.GetResponse
	s.insist("get "+key, func(ctx context.Context) (err error) {
		r, err = c.Get(ctx, key)
		return err
	})
	return r
}

// want fails unless the key has the value.
func (s *stage) want(c *clientv3.Client, key, value string) {
	s.Helper()
	r := s.get(c, key)
	if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != value {
		s.Fatalf("acknowledged write of %s=%s is lost: etcd has %v", key, value, r.Kvs)
	}
}

// lead makes a member the leader, as etcd itself moves the leadership.
func (s *stage) lead(c *api.EtcdCluster, member string) {
	s.Helper()
	id := func(name string) uint64 {
		n, err := strconv.ParseUint(identityOf(c).Members[name], 16, 64)
		if err != nil {
			s.Fatalf("the ID of %s: %v", name, err)
		}
		return n
	}
	s.insist("make "+member+" the leader", func(ctx context.Context) error {
		for _, m := range c.Status.Members { // only the leader moves its leadership
			etcd, err := dialMembers(s.ns, []string{net.JoinHostPort(m.Name, strconv.Itoa(api.PortClient))})
			if err != nil {
				return err
			}
			defer func() { _ = etcd.Close() }() // it has been answered, or has not
			status, err := etcd.Status(ctx, etcd.Endpoints()[0])
			switch {
			case err != nil:
				return err
			case status.Leader == id(member):
				return nil
			case status.Leader == status.Header.MemberId:
				_, err := etcd.MoveLeader(ctx, id(member))
				return err
			}
		}
		return errors.New("no member leads")
	})
}

// forwarded is a connection to a Pod, with the port-forward that carries it.
type forwarded struct {
	net.Conn
	stop context.CancelFunc
}

func (f forwarded) Close() error {
	defer f.stop()
	return f.Conn.Close()
}

// dialPod connects to a port of a Pod through the API server; address is the Pod's name, alone or
// at the beginning of its host name, and the port.
func dialPod(ctx context.Context, namespace, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	pod, _, _ := strings.Cut(host, ".")
	// The connection outlives the dialling of it.
	forwarding, stop := context.WithCancel(context.WithoutCancel(ctx))
	conn, err := forward(ctx, forwarding, namespace, pod, port)
	if err != nil {
		stop()
		return nil, fmt.Errorf("reach port %s of Pod %s: %w", port, pod, err)
	}
	return forwarded{conn, stop}, nil
}

// forward opens a local port that leads to the Pod's for as long as forwarding lasts, and connects
// to it.
func forward(ctx, forwarding context.Context, namespace, pod, port string) (net.Conn, error) {
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(restConfig)
	if err != nil {
		return nil, err
	}
	url := clients.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport, Timeout: 10 * time.Second}, http.MethodPost, url)
	// That a member listens no more is no news: a client is told by the connection that breaks.
	quiet := klog.NewContext(forwarding, logr.Discard())
	ready, failed := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesWithContext(quiet, dialer, []string{"127.0.0.1"}, []string{"0:" + port}, ready, nil, nil)
	if err != nil {
		return nil, err
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))))
}

// podHTTP talks to Pods of a namespace; the host in a URL is the name of a Pod. Whose certificate
// it is is not the question.
func podHTTP(namespace string) *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // signed by itself, and reached through the API server
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dialPod(ctx, namespace, address)
		},
	}}
}
