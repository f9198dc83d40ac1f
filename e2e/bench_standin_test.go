//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
)

// standIns are members of which only the operator's questions are answered, each at an address of
// its own: three hundred real ones would leave nothing of a machine to measure on. It gives the
// Pods of an API server the status that a kubelet would, so that to the operator they are no
// different.
type standIns struct {
	*testing.T
	client  client.WithWatch
	servers []*grpc.Server
}

// startStandIns looks after the Pods of all EtcdClusters with three members.
func startStandIns(t *testing.T, c client.WithWatch) {
	t.Helper()
	w, err := c.Watch(t.Context(), &corev1.PodList{})
	if err != nil {
		t.Fatal(err)
	}
	s, done := &standIns{T: t, client: c}, make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.PodIP == "" && t.Context().Err() == nil {
				s.run(pod)
			}
		}
	}()
	t.Cleanup(func() {
		w.Stop()
		<-done
		for _, server := range s.servers {
			server.Stop()
		}
	})
}

// run answers for a Pod, and then says that it runs.
func (s *standIns) run(pod *corev1.Pod) {
	n := len(s.servers)
	ip := net.IPv4(127, 77, byte(n>>8), byte(n)).String()
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", net.JoinHostPort(ip, strconv.Itoa(api.PortClient)))
	if err != nil {
		s.Error(err)
		return
	}
	server, member := grpc.NewServer(), standIn{name: pod.Name, cluster: pod.Labels[api.LabelCluster], namespace: pod.Namespace}
	etcdserverpb.RegisterMaintenanceServer(server, &member)
	etcdserverpb.RegisterClusterServer(server, standInMembers{standIn: &member})
	s.servers = append(s.servers, server)
	go func() {
		if err := server.Serve(listener); err != nil {
			s.Error(err)
		}
	}()

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
	if err := s.client.Status().Update(s.Context(), pod); err != nil {
		s.Error(err)
	}
}

// standIn is one member of a cluster of three, of which the first leads.
type standIn struct {
	etcdserverpb.UnimplementedMaintenanceServer
	name, cluster, namespace string
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

func (m *standIn) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{
		Header: m.header(), Version: node.Etcd36, DbSize: 1 << 20, Leader: m.id(m.members()[0]), RaftIndex: 9, RaftTerm: 2,
	}, nil
}

// standInMembers is what the member says about all of them.
type standInMembers struct {
	etcdserverpb.UnimplementedClusterServer
	*standIn
}

func (m standInMembers) MemberList(context.Context, *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
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
