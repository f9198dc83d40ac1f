package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// answers is what etcd said.
type answers struct {
	members   []membership.Member            // nil where no quorum could list them
	endpoints map[string]membership.Endpoint // by member name; only those that answered
}

// ask asks every member with a running container for its status, all at once, and then one of them for the member list: a
// look at a healthy cluster costs one Status a member and one MemberList.
func (r *Reconciler) ask(ctx context.Context, c *api.EtcdCluster, pods map[string]*corev1.Pod) answers {
	asked := answers{endpoints: map[string]membership.Endpoint{}}
	clients := map[string]membership.Client{}
	var mutex sync.Mutex
	var all sync.WaitGroup
	for name, pod := range pods {
		// Where nobody listens, or soon nobody will, asking costs a time-out. The Pod of a member that is being stopped takes its
		// address along, and its successor must not wait until the call to it is given up.
		provisions := pod.Annotations[api.AnnotationProvisions] != ""
		if s := containerStatus(pod); provisions || pod.Status.PodIP == "" || s == nil || s.State.Running == nil || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		all.Go(func() {
			etcd, endpoint, err := r.askOne(ctx, pod.Status.PodIP)
			if err != nil {
				log.FromContext(ctx).V(1).Info("Member does not answer", "member", name, "error", err.Error())
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			clients[name], asked.endpoints[name] = etcd, endpoint
		})
	}
	all.Wait()
	for _, name := range asked.leaderFirst() {
		members, err := clients[name].Members(ctx)
		if err == nil && !speaksFor(c, name, asked.endpoints[name], members) {
			err = errors.New("another cluster answers at its address")
		}
		if err == nil {
			asked.members = members
			break
		}
		log.FromContext(ctx).V(1).Info("Members cannot be listed", "member", name, "error", err.Error())
	}
	for _, etcd := range clients {
		_ = etcd.Close() // it was only read from
	}
	return asked
}

// askOne connects to a member and asks it for its status.
func (r *Reconciler) askOne(ctx context.Context, ip string) (membership.Client, membership.Endpoint, error) {
	etcd, err := r.Dial(ip, api.PortClient)
	if err != nil {
		return nil, membership.Endpoint{}, err
	}
	endpoint, err := etcd.Status(ctx)
	if err != nil {
		_ = etcd.Close() // the error says enough
		return nil, membership.Endpoint{}, err
	}
	return etcd, endpoint, nil
}

// speaksFor reports whether the member list that was read at the address of a member is one of its cluster. IP addresses
// are given to other Pods, after the restart of a node to many at once, and the Pod's status tells of it only later.
func speaksFor(c *api.EtcdCluster, name string, endpoint membership.Endpoint, members []membership.Member) bool {
	if id := membership.ParseID(c.Status.ClusterID); id != 0 {
		return endpoint.ClusterID == id
	}
	return slices.ContainsFunc(members, func(m membership.Member) bool {
		return m.ID == endpoint.MemberID && slices.Contains(m.PeerURLs, c.PeerURL(name))
	})
}

// leaderFirst are the members that know a leader, and so may be able to list the members. Two of them are enough to tell a
// member that cannot from a cluster that cannot.
func (a answers) leaderFirst() []string {
	var names []string
	for name, e := range a.endpoints {
		if e.Leader != 0 {
			names = append(names, name)
		}
	}
	follows := func(name string) int {
		if a.endpoints[name].Leader == a.endpoints[name].MemberID {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(follows(x), follows(y)), cmp.Compare(x, y)) })
	return names[:min(len(names), 2)]
}
