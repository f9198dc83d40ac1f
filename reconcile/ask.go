package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// mostAsked is how many Pods are asked in one look: several times the members that a cluster can
// have. Others may create Pods that look like ours.
const mostAsked = 32

// answers is what etcd said.
type answers struct {
	members   []membership.Member            // nil where no quorum could list them
	endpoints map[string]membership.Endpoint // by member name; only those that answered, or of which their metrics tell
	denied    bool                           // etcd authenticates clients, and has denied access to the operator
}

// ask asks every member that may run for its status, all at once, and then one of them for the
// member list: a look at a healthy cluster costs one Status a member and one MemberList. A member
// that does not answer may be known by its metrics. These are believed of a member that etcd lists.
func (r *Reconciler) ask(ctx context.Context, c *api.EtcdCluster, pods map[string]*corev1.Pod) answers {
	defer r.workers.releaseIfSlow(c.Namespace)()
	began := time.Now()
	asked := answers{endpoints: map[string]membership.Endpoint{}}
	clients, fromMetrics := map[string]*connection{}, map[string]membership.Endpoint{}
	defer func() { r.connections.keep(client.ObjectKeyFromObject(c), clients) }()
	var mutex sync.Mutex
	var all taskGroup
	count := 0
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		pod := pods[name]
		if foreign, _ := belongs(c, pod); foreign || !listens(pod) || count == mostAsked {
			continue
		}
		count++
		all.do(func() {
			etcd, endpoint, err := r.askMember(ctx, c, pod)
			if err != nil {
				log.FromContext(ctx).V(1).Info("Member does not answer", "member", name, "error", err.Error())
			}
			mutex.Lock()
			defer mutex.Unlock()
			asked.noteDenied(err)
			switch {
			case err == nil:
				clients[name], asked.endpoints[name] = etcd, endpoint
			case endpoint.Member() != 0:
				fromMetrics[name] = endpoint
			}
		})
	}
	all.wait()
	if len(asked.endpoints)+len(fromMetrics) < membership.Quorum(voted(c)) || !asked.leaderAnswers() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, listInDoubt)
		defer cancel()
	}
	for _, name := range asked.leaderFirst() {
		members, err := clients[name].Members(ctx)
		if err == nil && !speaksFor(c, name, asked.endpoints[name], members) {
			err = errors.New("another cluster answers at its address")
		}
		if err == nil {
			asked.members = members
			break
		}
		asked.noteDenied(err)
		log.FromContext(ctx).V(1).Info("Members cannot be listed", "member", name, "error", err.Error())
	}
	asked.believe(c, fromMetrics)
	now := time.Now()
	r.unresponsive.waited(client.ObjectKeyFromObject(c), now.Sub(began), now)
	return asked
}

// noteDenied notes that etcd has denied access to the operator.
func (a *answers) noteDenied(err error) {
	if errors.Is(err, membership.ErrDenied) {
		a.denied = true
	}
}

// listInDoubt is how long the member list may take, from all members together, where there may be
// no quorum: fewer members answer than the quorum of the last list, or the leader that they follow
// does not answer. A follower notices after one or two seconds that its leader is gone, and what
// brings the quorum back must not wait for that. Where there is a quorum all the same, the list
// comes within milliseconds.
const listInDoubt = 500 * time.Millisecond

// leaderAnswers reports whether a member that answers says that it leads.
func (a answers) leaderAnswers() bool {
	for _, e := range a.endpoints {
		if e.Leader != 0 && e.Leader == e.MemberID {
			return true
		}
	}
	return false
}

// voted counts the voters that the status remembers.
func voted(c *api.EtcdCluster) int {
	n := 0
	for _, m := range c.Status.Members {
		if votes(c, m.Name) {
			n++
		}
	}
	return n
}

// listens reports whether a member may be asked. Where nothing listens, or soon will not, asking
// costs a time-out. The Pod of a member that is being stopped takes its address along, and its
// successor must not wait until the call to it is given up. A member that may start has had its
// address for long: it answers, or its node refuses at once, up to a second before the Pod's status
// tells that it runs.
func listens(pod *corev1.Pod) bool {
	s, provisions := containerStatus(pod), pod.Annotations[api.AnnotationProvisions] != ""
	return !provisions && pod.Status.PodIP != "" && s != nil && (s.State.Running != nil || atGate(s)) && pod.DeletionTimestamp.IsZero()
}

// believe adds the listed members that are known only by their metrics. The list is that of this
// cluster, and member IDs are unique. A voter that has received no data yet counts as silent.
func (a answers) believe(c *api.EtcdCluster, fromMetrics map[string]membership.Endpoint) {
	for name, endpoint := range fromMetrics {
		if m, ok := listed(c, name, endpoint.Member(), a.members); ok && (endpoint.Publishing != 0 || m.Learner) {
			endpoint.ClusterID = membership.ParseID(c.Status.ClusterID)
			a.endpoints[name] = endpoint
		}
	}
}

// beforeMetrics is how long a member that is ready has to answer before its metrics are asked for.
// A kubelet may still call a member ready that was started again a moment ago.
const beforeMetrics = 200 * time.Millisecond

// afterMetrics is how long a member that is not ready has to answer after its metrics have
// answered, or have been refused: one that serves answers as soon. Its client port may be listened
// on and not served, so that every look would cost a time-out.
const afterMetrics = 100 * time.Millisecond

// askMember asks a member for its status. Of a member that does not answer the metrics may tell,
// which are returned beside the error. It is not waited for once its metrics say that it does not
// serve. While a cluster is formed for the first time there is no list by which to believe them.
func (r *Reconciler) askMember(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod) (*connection, membership.Endpoint, error) {
	if c.Status.ClusterID == "" {
		return r.askStatus(ctx, c, pod)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := containerStatus(pod).Ready
	var fromMetrics membership.Endpoint
	var scraping taskGroup
	scraping.do(func() {
		if ready && !passes(ctx, beforeMetrics) {
			return
		}
		endpoint, err := r.Scrape(ctx, pod.Status.PodIP, api.PortMetrics)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Metrics cannot be read", "member", pod.Name, "error", err.Error())
		}
		switch {
		case endpoint.Silent():
			cancel()
		case !ready:
			time.AfterFunc(afterMetrics, cancel)
		}
		fromMetrics = endpoint
	})
	etcd, endpoint, err := r.askStatus(ctx, c, pod)
	if err == nil || ready {
		cancel() // the metrics have nothing to add
	}
	scraping.wait()
	if err != nil {
		return nil, fromMetrics, err
	}
	return etcd, endpoint, nil
}

// passes waits, and reports whether the time passed before the context ended.
func passes(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// askStatus asks a member for its status, over the connection that is kept or a new one.
func (r *Reconciler) askStatus(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod) (*connection, membership.Endpoint, error) {
	etcd, err := r.dial(c, pod)
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

// speaksFor reports whether the member list that was read at the address of a member is one of its
// cluster. IP addresses are given to other Pods, after the restart of a node to many at once, and
// the Pod's status tells of it only later.
func speaksFor(c *api.EtcdCluster, name string, endpoint membership.Endpoint, members []membership.Member) bool {
	if id := membership.ParseID(c.Status.ClusterID); id != 0 {
		return endpoint.ClusterID == id
	}
	_, ok := listed(c, name, endpoint.MemberID, members)
	return ok
}

// listed is the member of that name in the list; false where it does not have that ID there.
func listed(c *api.EtcdCluster, name string, id membership.ID, members []membership.Member) (membership.Member, bool) {
	n := slices.IndexFunc(members, func(m membership.Member) bool {
		return m.ID == id && slices.Contains(m.PeerURLs, c.PeerURL(name))
	})
	if n < 0 {
		return membership.Member{}, false
	}
	return members[n], true
}

// leaderFirst are the members that know a leader, and so may be able to list the members. Two of
// them are enough to tell a member that cannot from a cluster that cannot.
func (a answers) leaderFirst() []string {
	var names []string
	for name, e := range a.endpoints {
		if e.Leader != 0 {
			names = append(names, name)
		}
	}
	rank := func(name string) int {
		if a.endpoints[name].Leader == a.endpoints[name].MemberID {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x, y)) })
	return names[:min(len(names), 2)]
}
