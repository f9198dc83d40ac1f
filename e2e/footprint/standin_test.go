//go:build e2e

package footprint

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
)

// members of each cluster.
const members = 3

// standIns are members that answer only what the operator asks, each at its own address: three
// hundred real members would use up the machine. They also write the status of Pods, as kubelets
// do. A new Pod gets the address of the earlier Pod of its name.
type standIns struct {
	shard
	secured bool // the clients' port has TLS
	client  client.Client
	server  *grpc.Server
	slots   chan struct{}   // for Pods that are started at a time
	failed  chan error      // has room for one
	all     sync.WaitGroup  // of what goes on
	ctx     context.Context //nolint:containedctx // of the process, which does nothing else
	metrics *http.Server    // of tenants' members
	mu      sync.Mutex
	begun   map[types.UID]bool  // the Pods that were told to run
	known   map[string]string   // the addresses, by the names of Pods
	at      map[string]*standIn // by address
	hostile map[string]bool     // the clusters whose members answer what they like
}

// lostNode is the annotation of a Pod whose node is lost.
const lostNode = "test/lost-node"

// fail reports an error, if none is reported yet.
func (s *standIns) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// see handles a Pod from the watch: it runs the Pod if that does not run yet.
func (s *standIns) see(pod *corev1.Pod) {
	if !s.has(pod.Labels[api.LabelCluster]) {
		return
	}
	s.mu.Lock()
	if said := pod.Annotations[hostileImage]; said != "" {
		s.hostile[pod.Labels[api.LabelCluster]] = said == "true"
		for _, m := range s.at {
			m.hostile.Store(s.hostile[m.cluster])
		}
	}
	if pod.Status.PodIP != "" {
		if m := s.at[pod.Status.PodIP]; m != nil && pod.Annotations[lostNode] != "" {
			m.lost.Store(true)
		}
		s.mu.Unlock()
		return
	}
	begun := s.begun[pod.UID]
	s.begun[pod.UID] = true
	s.mu.Unlock()
	if begun {
		return
	}
	s.all.Go(func() {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		if err := s.run(pod.DeepCopy()); err != nil {
			s.fail(fmt.Errorf("run Pod %s: %w", pod.Name, err))
		}
	})
}

// address returns the address of a Pod, and listens there from then on.
func (s *standIns) address(pod *corev1.Pod) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ip := s.known[pod.Name]; ip != "" {
		return ip, nil
	}
	n := len(s.known)
	ip := net.IPv4(127, byte(77+s.number), byte(n>>8), byte(n)).String()
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(api.PortClient)))
	if err != nil {
		return "", err
	}
	m := &standIn{name: pod.Name, cluster: pod.Labels[api.LabelCluster], namespace: pod.Namespace, turn: map[string]int{}}
	m.hostile.Store(s.hostile[m.cluster])
	if s.secured {
		if m.certificate, err = s.certificate(m.cluster); err != nil {
			return "", err
		}
	}
	s.known[pod.Name], s.at[ip] = ip, m
	s.all.Go(func() {
		if err := s.server.Serve(onNode{listener, m}); err != nil {
			s.fail(err)
		}
	})
	if strings.HasPrefix(m.cluster, tenants) {
		return ip, s.listenForMetrics(ip)
	}
	return ip, nil
}

// asked is the member that a call was sent to.
func (s *standIns) asked(ctx context.Context) (*standIn, error) {
	from, _ := peer.FromContext(ctx)
	return s.member(from.LocalAddr)
}

func (s *standIns) member(at net.Addr) (*standIn, error) {
	ip, _, err := net.SplitHostPort(at.String())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[ip], nil
}

// run listens for a Pod, and then writes that it runs into its status.
func (s *standIns) run(pod *corev1.Pod) error {
	ip, err := s.address(pod)
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	// Whatever else has changed in the Pod since then, the status has no other writer.
	pod.ResourceVersion = ""
	return client.IgnoreNotFound(s.client.Status().Update(s.ctx, pod))
}

// certificate is the one that the members of a cluster present.
func (s *standIns) certificate(cluster string) (*tls.Certificate, error) {
	secret := &corev1.Secret{}
	if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: cluster + "-server-tls"}, secret); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data[api.SecretCert], secret.Data[api.SecretKey])
	return &pair, err
}

// tls is how members accept connections. Each asks for the client's certificate, as etcd does.
func (s *standIns) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			m, err := s.member(hello.Conn.LocalAddr())
			if err != nil {
				return nil, err
			}
			return m.certificate, nil
		},
	}
}

// onNode is the port of a member on a node. When the node is lost, nothing that arrives there is
// answered, and no connection is closed.
type onNode struct {
	net.Listener
	member *standIn
}

func (n onNode) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if n.member.hostile.Load() {
		c = n.member.misuse(c)
	}
	return onNodeConn{c, &n.member.lost}, nil
}

type onNodeConn struct {
	net.Conn
	lost *atomic.Bool
}

func (c onNodeConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.lost.Load() {
			return n, err
		}
	}
}

func (c onNodeConn) Write(p []byte) (int, error) {
	if c.lost.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// standIn is one member of a cluster of three, of which the first leads.
type standIn struct {
	name, cluster, namespace string
	certificate              *tls.Certificate // nil: plain text
	lost                     atomic.Bool      // with its node
	hostile                  atomic.Bool      // it answers what it likes
	mu                       sync.Mutex
	turn                     map[string]int // of what it answers next, by what it is asked
}

func (m *standIn) members() []string {
	return []string{m.cluster + "-0", m.cluster + "-1", m.cluster + "-2"}
}

func (m *standIn) id(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.namespace + "/" + name)) // it never fails
	return h.Sum64()
}

func (m *standIn) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: m.id(m.cluster), MemberId: m.id(m.name), RaftTerm: 2}
}

// standInMaintenance is what a member says about itself.
type standInMaintenance struct {
	etcdserverpb.UnimplementedMaintenanceServer
	*standIns
}

func (s standInMaintenance) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	m, err := s.asked(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.StatusResponse{
		Header: m.header(), Version: node.Etcd36, DbSize: 1 << 20, Leader: m.id(m.members()[0]), RaftIndex: 9, RaftTerm: 2,
	}, nil
}

// HashKV is the same of all members: their data does not differ.
func (s standInMaintenance) HashKV(ctx context.Context, _ *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	m, err := s.asked(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.HashKVResponse{Header: m.header(), Hash: 1, CompactRevision: 1, HashRevision: 1}, nil
}

// standInMembers is what a member says about all of them.
type standInMembers struct {
	etcdserverpb.UnimplementedClusterServer
	*standIns
}

func (s standInMembers) MemberList(ctx context.Context, _ *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	m, err := s.asked(ctx)
	if err != nil {
		return nil, err
	}
	list := &etcdserverpb.MemberListResponse{Header: m.header()}
	for _, name := range m.members() {
		host := strings.Join([]string{name, m.cluster, m.namespace, "svc"}, ".")
		list.Members = append(list.Members, &etcdserverpb.Member{
			ID: m.id(name), Name: name,
			PeerURLs:   []string{"http://" + host + ":" + strconv.Itoa(api.PortPeer)},
			ClientURLs: []string{"http://" + host + ":" + strconv.Itoa(api.PortClient)},
		})
	}
	slices.SortFunc(list.Members, func(a, b *etcdserverpb.Member) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}
