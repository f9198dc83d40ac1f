//go:build env

package reconcile_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// imaginary are members of which only the operator's questions are answered, in this process:
// hundreds of real ones do not fit a test. Their Pods are given the status that a kubelet would.
type imaginary struct {
	*stage
	mu      sync.Mutex
	at      map[string]types.NamespacedName // by address
	cluster map[string]string               // of each address
	dead    map[string]bool                 // clusters on nodes that answer nothing, and refuse nothing
	created map[string]chan types.UID       // of Pods that are waited for, by name
}

// imagine members for the Pods of the namespace, from now on.
func (s *stage) imagine() *imaginary {
	s.Helper()
	i := &imaginary{stage: s, at: map[string]types.NamespacedName{}, cluster: map[string]string{}, dead: map[string]bool{}, created: map[string]chan types.UID{}}
	watching, err := s.Watch(s.Context(), &corev1.PodList{}, client.InNamespace(s.ns))
	s.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watching.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added && s.Context().Err() == nil {
				i.run(pod)
			}
		}
	}()
	s.Cleanup(func() { watching.Stop(); s.over(done, "the watch of Pods") })
	return i
}

// run says that a Pod runs, after its member answers.
func (i *imaginary) run(pod *corev1.Pod) {
	i.mu.Lock()
	n := len(i.at)
	ip := fmt.Sprintf("127.77.%d.%d", n>>8, n&255)
	i.at[ip], i.cluster[ip] = client.ObjectKeyFromObject(pod), pod.Labels[api.LabelCluster]
	if to := i.created[pod.Name]; to != nil {
		to <- pod.UID
		delete(i.created, pod.Name)
	}
	i.mu.Unlock()
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
	pod.ResourceVersion = "" // the status has no other writer
	if err := i.Status().Update(i.Context(), pod); err != nil {
		i.Error(err)
	}
}

// between has an operator ask these members.
func (i *imaginary) between(r *reconcile.Reconciler) {
	r.StallAfter = time.Minute
	r.Dial = func(host string, _ int) (membership.Client, error) { return imagined{i: i, host: host}, nil }
	r.Scrape = func(ctx context.Context, host string, _ int) (membership.Endpoint, error) {
		return membership.Endpoint{}, cmp.Or(i.reach(ctx, host), fmt.Errorf("%s serves no metrics", host))
	}
}

// reach is nil where the member answers, and else comes late.
func (i *imaginary) reach(ctx context.Context, host string) error {
	i.mu.Lock()
	dead := i.dead[i.cluster[host]]
	i.mu.Unlock()
	if !dead {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, membership.CallTimeout)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

// imagined is one member of a cluster of three, of which the first leads.
type imagined struct {
	membership.Client
	i    *imaginary
	host string
}

func idOf(name string) membership.ID {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return membership.ID(h.Sum64())
}

func (m imagined) is() (c *api.EtcdCluster, name string) {
	m.i.mu.Lock()
	defer m.i.mu.Unlock()
	return &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.i.ns, Name: m.i.cluster[m.host]}}, m.i.at[m.host].Name
}

func (m imagined) Status(ctx context.Context) (membership.Endpoint, error) {
	if err := m.i.reach(ctx, m.host); err != nil {
		return membership.Endpoint{}, err
	}
	c, name := m.is()
	version, err := membership.ParseVersion(m.i.version)
	return membership.Endpoint{
		ClusterID: idOf(c.Name), MemberID: idOf(name), Leader: idOf(c.MemberName(0)), Version: version, RaftTerm: 2, RaftIndex: 9, Applied: 9, DBSize: 1 << 20,
	}, err
}

func (m imagined) Members(ctx context.Context) ([]membership.Member, error) {
	if err := m.i.reach(ctx, m.host); err != nil {
		return nil, err
	}
	c, _ := m.is()
	var members []membership.Member
	for n := range 3 {
		name := c.MemberName(n)
		members = append(members, membership.Member{ID: idOf(name), Name: name, PeerURLs: []string{c.PeerURL(name)}})
	}
	return members, nil
}

func (m imagined) Hash(context.Context, int64) (membership.Hash, error) {
	return membership.Hash{Revision: 7, Sum: 7}, nil
}

func (imagined) Close() error { return nil }

// TestSick: of 200 clusters 30 are on nodes that answer nothing. The Pod of a healthy one that was
// deleted has a successor within two seconds.
func TestSick(t *testing.T) {
	const (
		all, sick, pods = 200, 30, 100
		bound           = 2 * time.Second
	)
	s, _ := bareStage(t)
	s.workers = 8 // as by default
	i, w := s.imagine(), s.crowd()
	s.operate(i.between)
	begun := time.Now()
	for n := range all {
		s.create(s.cluster(fmt.Sprintf("c%03d", n), 3))
	}
	w.until("ready", all, func(c *api.EtcdCluster) bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	t.Logf("%d clusters are ready after %s", all, time.Since(begun).Round(time.Second))
	i.mu.Lock()
	for n := range sick {
		i.dead[fmt.Sprintf("c%03d", n)] = true
	}
	i.mu.Unlock()
	w.until("known to be unreachable", sick, func(c *api.EtcdCluster) bool {
		available := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
		return available != nil && available.Status != metav1.ConditionTrue
	})
	var took []time.Duration
	for n := range pods {
		name := fmt.Sprintf("c%03d-%d", sick+n, n%3)
		created := make(chan types.UID, 1)
		i.mu.Lock()
		i.created[name] = created
		i.mu.Unlock()
		deleted := time.Now()
		s.must(s.Delete(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}))
		select {
		case <-created:
		case <-time.After(patience):
			t.Fatalf("%s is not recreated", name)
		}
		took = append(took, time.Since(deleted))
	}
	slices.Sort(took)
	median, late := took[pods/2], took[pods*99/100]
	t.Logf("%d clusters of %d answer nothing; from a deleted Pod of another one to its successor: median %s, 99th percentile %s", sick, all, median.Round(time.Millisecond), late.Round(time.Millisecond))
	if late > bound {
		t.Errorf("want a 99th percentile of %s at most", bound)
	}
}
