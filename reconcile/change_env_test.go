//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

func (s *stage) resize(c *api.EtcdCluster, size int32) {
	s.Helper()
	s.change(c, func() { c.Spec.Replicas = &size })
}

// sized waits until the cluster is Ready with that many members, of which it then is made.
func (s *stage) sized(c *api.EtcdCluster, size int) []string {
	s.Helper()
	s.await(c, "ready with its size", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == size
	})
	names := namesOf(identityOf(c))
	s.clean(c, names...)
	return names
}

// TestCannotGrow: a size that cannot be reached costs the cluster nothing, and is given up without
// a trace.
func TestCannotGrow(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	before := namesOf(identityOf(c))
	contract.Available(s, c)
	s.hostlet.Cordon()
	s.resize(c, 5)
	if message := s.stalled(c, api.ReasonPodPending); !strings.Contains(message, "unschedulable") || !strings.Contains(message, "set spec.replicas to 3") {
		t.Errorf("the message says neither why nor what to do: %s", message)
	}
	if !slices.Equal(before, namesOf(identityOf(c))) {
		t.Errorf("the cluster does not go on as it is: %s", contract.Describe(c))
	}
	load.await(10)
	s.resize(c, 3)
	s.awaitMembers(c, before...)
	s.clean(c, before...)

	s.must(s.hostlet.Uncordon(t.Context()))
	s.resize(c, 5)
	s.awaitMembers(c, append(before, "db-5", "db-6")...) // for no name is given twice
	load.check()
}

// TestResizeWhileDown: the size changes while a member is down, whose data does not come back.
func TestResizeWhileDown(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		size   int32
		next   int32
	}{
		"Up":   {reason: "it is replaced, and the others come too", size: 5, next: 6},
		"Down": {reason: "it is the first to go", size: 1, next: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, victim := healing{leader: true, replaceAfter: soonReplaced}.struck(s)
			wipe(s, c, victim)
			s.resize(c, tc.size)
			if names := s.sized(c, int(tc.size)); slices.Contains(names, victim) || c.Status.NextOrdinal != tc.next {
				t.Errorf("%s: members are %v, next ordinal %d, want %d", tc.reason, names, c.Status.NextOrdinal, tc.next)
			}
			load.check()
		})
	}
}

// TestLastSpecWins: from three to five, then one, then three, changed while the change before is
// under way.
func TestLastSpecWins(t *testing.T) {
	t.Parallel()
	voters := func(c *api.EtcdCluster) int {
		return len(slices.DeleteFunc(slices.Clone(c.Status.Members), func(m api.MemberStatus) bool {
			return m.Role != api.RoleLeader && m.Role != api.RoleFollower
		}))
	}
	cases := map[string]struct {
		reason   string
		up, down func(*api.EtcdCluster) bool
	}{
		"Decided": {
			reason: "the changes of the spec are seen at once, or not at all",
			up:     func(*api.EtcdCluster) bool { return true },
			down:   func(*api.EtcdCluster) bool { return true },
		},
		"Prepared": {
			reason: "volumes are there for members that are not wanted any more",
			up:     func(c *api.EtcdCluster) bool { return c.Status.NextOrdinal > 3 },
			down:   func(c *api.EtcdCluster) bool { return len(c.Status.Members) < 3 },
		},
		"Added": {
			reason: "a learner is there that is not wanted any more",
			up:     func(c *api.EtcdCluster) bool { return len(c.Status.Members) > 3 },
			down:   func(c *api.EtcdCluster) bool { return len(c.Status.Members) < 4 },
		},
		"Promoted": {
			reason: "one of the two is a voter",
			up:     func(c *api.EtcdCluster) bool { return voters(c) > 3 },
			down:   func(c *api.EtcdCluster) bool { return len(c.Status.Members) < 3 },
		},
		"Grown": {
			reason: "all are there, and the learner among them is not done",
			up:     func(c *api.EtcdCluster) bool { return len(c.Status.Members) > 4 },
			down:   func(c *api.EtcdCluster) bool { return len(c.Status.Members) < 2 },
		},
	}
	for name, tc := range share.Of(t, cases, 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, _ := healing{}.struck(s)
			s.resize(c, 5)
			s.await(c, "on its way up", func() bool { return tc.up(c) })
			s.resize(c, 1)
			s.await(c, "on its way down", func() bool { return tc.down(c) })
			s.resize(c, 3)
			t.Logf("%s: members are %v, next ordinal %d", tc.reason, s.sized(c, 3), c.Status.NextOrdinal)
			load.check()
		})
	}
}

// TestTwoOperators: two operators may both lead for a while.
func TestTwoOperators(t *testing.T) {
	s := newStage(t)
	one, other := newFault("", ""), newFault("", "")
	one.arm()
	other.arm()
	s.operate(one.between)
	s.operate(other.between)
	c := s.cluster("db", 1)
	contract.Watch(s, c)
	s.create(c)
	s.ready(c)
	load := s.load(c)
	for _, size := range []int32{3, 5, 3, 1} {
		s.resize(c, size)
		s.sized(c, int(size))
	}
	t.Logf("%d and %d effects", len(one.effects()), len(other.effects()))
	if len(one.effects()) == 0 || len(other.effects()) == 0 {
		t.Error("void: one of the operators did nothing")
	}
	// One may see a claim of the other one late, and make a spare too many, which is taken away
	// again.
	if c.Status.NextOrdinal > 7 {
		t.Errorf("five members were made under ordinals up to %d", c.Status.NextOrdinal)
	}
	load.await(50)
	load.check()
}

// TestRetired: what is kept of members that were removed is marked, and nothing ever runs on it
// again.
func TestRetired(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	c.Spec.Storage.Retention = &api.Retention{WhenScaled: api.RetentionRetain}
	contract.Watch(s, c)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	s.resize(c, 1)
	s.await(c, "ready alone", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == 1 })
	survivor := c.Status.Members[0].Name
	started := s.podNames(c)
	var retired []string
	for _, claim := range s.claims(c) {
		if claim.Name == survivor {
			continue
		}
		retired = append(retired, claim.Name)
		s.awaitObject(&claim, "retired", func() bool { return claim.Annotations[api.AnnotationRetired] != "" })
		s.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: s.ns}})
	}
	if len(retired) != 2 {
		t.Errorf("volumes of %v are kept, want two", retired)
	}

	s.must(s.Delete(t.Context(), c))
	s.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: survivor, Namespace: s.ns}})
	again := s.cluster("db", 1)
	again.Spec.Storage.Retention = &api.Retention{WhenScaled: api.RetentionRetain}
	contract.Watch(s, again)
	s.create(again)
	s.want(s.ready(again), "key", "value")
	s.resize(again, 3)
	s.awaitMembers(again, survivor, "db-3", "db-4")
	s.want(s.etcd(again), "key", "value")
	if got := started(); slices.ContainsFunc(got, func(name string) bool { return slices.Contains(retired, name) }) {
		t.Errorf("Pods of %v were made, those of %v never to be", got, retired)
	}
	for _, claim := range s.claims(again) {
		if claim.Annotations[api.AnnotationRetired] != "" != slices.Contains(retired, claim.Name) {
			t.Errorf("volume %s is marked %q", claim.Name, claim.Annotations[api.AnnotationRetired])
		}
	}
}

// podNames are those of the Pods that are created from now on.
func (s *stage) podNames(c *api.EtcdCluster) func() []string {
	s.Helper()
	list := &corev1.PodList{}
	s.must(s.List(s.Context(), list, client.InNamespace(s.ns)))
	w, err := s.Watch(s.Context(), &corev1.PodList{}, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	s.must(err)
	var created []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && e.Type == watch.Added {
				created = append(created, pod.Name)
			}
		}
	}()
	return func() []string {
		s.Helper()
		w.Stop()
		s.over(done, "the watch of Pods")
		return created
	}
}
