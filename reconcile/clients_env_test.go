//go:build env

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
)

// The EndpointSlices here are made by the hostlet, which stands in for the controller that an API
// server alone lacks.

// endpoints are the members that the Service for clients leads to.
func (s *stage) endpoints(c *api.EtcdCluster) []string {
	s.Helper()
	list := &discoveryv1.EndpointSliceList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{discoveryv1.LabelServiceName: c.ClientServiceName()}); err != nil {
		s.Error(err)
	}
	var names []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if *e.Conditions.Ready {
				names = append(names, e.TargetRef.Name)
			}
		}
	}
	return names
}

// sentinel looks right before each effect whether the Service for clients leads to the member that
// it touches, and to any at all.
type sentinel struct {
	*stage
	cluster *api.EtcdCluster

	mu      sync.Mutex
	touched []string // in order
	wrong   []string
}

func (l *sentinel) do(what string, effect func() error) error {
	verb, object, _ := strings.Cut(what, ".")
	kind, name, _ := strings.Cut(object, ".")
	key := client.ObjectKey{Namespace: l.ns, Name: name}
	was, is := &corev1.Pod{}, &corev1.Pod{}
	if kind == "Pod" {
		_ = l.Get(l.Context(), key, was) // one that is not there is not touched
	}
	led := l.endpoints(l.cluster)
	if err := effect(); err != nil {
		return err
	}
	touches := verb == "Remove" || verb == "delete" && kind == "Pod"
	switch {
	case verb == "MoveLeader":
		c := &api.EtcdCluster{}
		if err := l.Get(l.Context(), client.ObjectKeyFromObject(l.cluster), c); err != nil {
			return err
		}
		name, touches = c.Status.Leader, true // the status lags, and so still names the last leader
	case kind == "Pod" && verb != "delete" && was.UID != "" && l.Get(l.Context(), key, is) == nil:
		touches = was.Spec.Containers[0].Image != is.Spec.Containers[0].Image
	}
	if !touches {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = append(l.touched, name)
	if slices.Contains(led, name) || len(led) == 0 {
		l.wrong = append(l.wrong, fmt.Sprintf("%s, while the Service led to %v", what, led))
	}
	return nil
}

// TestClientsLed: whatever is planned for a member, clients that come by the Service are led to
// others before it is done, and to all once it is over.
func TestClientsLed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		from   string
		change func(s *stage, c *api.EtcdCluster)
		least  int // so many times a member is touched at least
	}{
		"InPlace": {reason: "etcd that is asked to end takes no new connections, while its Pod is ready", from: etcd35, change: func(s *stage, c *api.EtcdCluster) {
			s.change(c, func() { c.Spec.Version = etcd36 })
			s.runs(c, etcd36)
		}, least: 3},
		"Recreated": {reason: "so does one that ends with its Pod", from: etcd36, change: func(s *stage, c *api.EtcdCluster) {
			s.change(c, func() { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} })
			s.ready(c)
		}, least: 3},
		"LeaderRemoved": {reason: "one that was removed ends within the second", from: etcd36, change: func(s *stage, c *api.EtcdCluster) {
			s.resizes(c, data{}, 1)
		}, least: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.version = tc.from
			c := s.cluster("db", 3)
			f, look := newFault("", ""), &sentinel{stage: s, cluster: c.DeepCopy()} // the story writes into c while the operator acts
			f.around = look.do
			s.operate(f.between)
			kept := s.born(c)
			s.awaitLed(c, "db-0", "db-1", "db-2")
			s.hostlet.LagEndpoints(300 * time.Millisecond)
			f.arm()
			tc.change(s, c)
			look.mu.Lock()
			for _, wrong := range look.wrong {
				t.Errorf("%s: %s", tc.reason, wrong)
			}
			if len(look.touched) < tc.least {
				t.Errorf("void: only %v were touched", look.touched)
			}
			look.mu.Unlock()
			s.awaitLed(c, memberNames(c)...)
			s.settled(c, kept)
		})
	}
}

// awaitLed waits until the Service for clients leads to these members.
func (s *stage) awaitLed(c *api.EtcdCluster, members ...string) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: c.ClientServiceName() + "-hostlet"}}
	s.awaitObject(slice, fmt.Sprintf("leading to %v", members), func() bool { return slices.Equal(s.endpoints(c), members) })
}

// TestClientsLag: a change does not depend on EndpointSlices. Where there are none it comes at
// once, and where they do not change it comes after a while.
func TestClientsLag(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		with   func(*hostlet.Options)
		lag    time.Duration
		least  time.Duration // that the change takes
	}{
		"None":  {reason: "without them there is nothing to wait for", with: func(o *hostlet.Options) { o.NoEndpoints = true }},
		"Stuck": {reason: "a controller that is away must not keep three members at what they are", lag: -1, least: 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var with []func(*hostlet.Options)
			if tc.with != nil {
				with = append(with, tc.with)
			}
			s := newStage(t, with...)
			s.version = etcd35
			s.operate()
			c := s.cluster("db", 3)
			kept := s.born(c)
			if tc.with == nil {
				s.awaitLed(c, "db-0", "db-1", "db-2")
			}
			s.hostlet.LagEndpoints(tc.lag)
			begun := time.Now()
			s.change(c, func() { c.Spec.Version = etcd36 })
			s.runs(c, etcd36)
			if took := time.Since(begun); took < tc.least {
				t.Errorf("%s: void: it took %s", tc.reason, took)
			}
			s.mu.Lock()
			told := strings.Contains(strings.Join(s.logs, "\n"), "EndpointSlices did not follow: taking the step, clients may still connect to the member")
			s.mu.Unlock()
			if told != (tc.least > 0) {
				t.Errorf("%s: that clients may be led to it is told: %t", tc.reason, told)
			}
			s.settled(c, kept)
		})
	}
}

// TestClientsOut: a member that was taken out of the Service for a change that does not come is led
// to again, whatever became of the operator that did so; and while the cluster is suspended the
// status tells of it.
func TestClientsOut(t *testing.T) {
	s := newStage(t)
	s.version = etcd35
	f := newFault("", after)
	crash := s.operate(f.between)
	c := s.cluster("db", 3)
	kept := s.born(c)
	all := memberNames(c)
	s.awaitLed(c, all...)
	first := all[slices.IndexFunc(all, func(name string) bool { return name != c.Status.Leader })]
	others := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == first })
	f.mu.Lock()
	f.effect, f.armed = "drain.Pod."+first+"#1", true
	f.mu.Unlock()
	s.change(c, func() { c.Spec.Version = etcd36 })
	s.meets(f)
	crash()
	s.awaitLed(c, others...)

	s.change(c, func() { c.Spec.Suspend = true })
	s.operate()
	tells := func(end string) {
		s.await(c, "suspended: "+end, func() bool {
			ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
			return ready.ObservedGeneration == c.Generation && ready.Reason == api.ReasonSuspended && strings.HasSuffix(ready.Message, end)
		})
	}
	out := "; meanwhile Service db-client does not lead to " + first +
		"; meanwhile PodDisruptionBudget db keeps all 3 members, and no node with one is drained: set spec.suspend to false, or minAvailable of the budget to 2"
	tells(out)
	s.change(c, func() { c.Spec.Version = etcd35 })
	tells("suspended by spec.suspend" + out)
	s.awaitLed(c, others...)

	s.change(c, func() { c.Spec.Suspend = false })
	s.awaitLed(c, all...)
	s.ready(c)
	s.unrestarted(c)
	s.settled(c, kept)
}
