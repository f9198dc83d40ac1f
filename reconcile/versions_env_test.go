//go:build env

package reconcile_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// anotherVersion makes an operator what one of another release may be: it calls a cluster stalled
// at another time, and gives what it makes a label more. To the code it looks as if the spec said
// so.
func anotherVersion(r *reconcile.Reconciler) {
	r.StallAfter = time.Hour
	r.Client = &readsOtherwise{Client: r.Client, reader: r.Client}
	r.Reader = &readsOtherwise{Client: r.Client, reader: r.Reader}
}

const madeByAnother = "example.com/made-by-another-version"

type readsOtherwise struct {
	client.Client
	reader client.Reader
}

func (o *readsOtherwise) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := o.reader.Get(ctx, key, object, opts...)
	if c, ok := object.(*api.EtcdCluster); ok && err == nil {
		c.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{madeByAnother: "true"}}
	}
	return err
}

func (o *readsOtherwise) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return o.reader.List(ctx, list, opts...)
}

// turnstile sees which changes of etcd's members are under way, of any operator. For the same one
// both may ask: the second takes over what the first has begun. Once etcd has made it the other
// request is of no matter, and etcd may leave it without an answer for seconds.
type turnstile struct {
	*stage
	mu    sync.Mutex
	under map[string]int
	made  map[string]bool
}

func (u *turnstile) between(r *reconcile.Reconciler) {
	dial := r.Dial
	r.Dial = func(host string, port int) (membership.Client, error) {
		c, err := dial(host, port)
		return &turning{Client: c, turnstile: u}, err
	}
}

func (u *turnstile) pass(what string, change func() error) error {
	u.mu.Lock()
	if !u.made[what] {
		u.under[what]++
	}
	if len(u.under) > 1 {
		u.Errorf("different changes of members at the same time: %v", u.under)
	}
	u.mu.Unlock()
	err := change()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.made[what] = u.made[what] || err == nil
	if u.under[what]--; u.made[what] || u.under[what] == 0 {
		delete(u.under, what)
	}
	return err
}

type turning struct {
	membership.Client
	turnstile *turnstile
}

func (c *turning) Lasts() bool { return c.Client.(membership.Lasting).Lasts() }

func (c *turning) AddLearner(ctx context.Context, peerURL string) error {
	return c.turnstile.pass("AddLearner "+peerURL, func() error { return c.Client.AddLearner(ctx, peerURL) })
}

func (c *turning) Promote(ctx context.Context, id membership.ID) error {
	return c.turnstile.pass("Promote "+id.String(), func() error { return c.Client.Promote(ctx, id) })
}

func (c *turning) Remove(ctx context.Context, id membership.ID) error {
	return c.turnstile.pass("Remove "+id.String(), func() error { return c.Client.Remove(ctx, id) })
}

func (c *turning) MoveLeader(ctx context.Context, to membership.ID) error {
	return c.turnstile.pass("MoveLeader "+to.String(), func() error { return c.Client.MoveLeader(ctx, to) })
}

// TestTwoVersions: while an operator is replaced by one of another version, both may be at work.
// They take back what the other one writes on Pods and volumes, and are never about different
// changes of members at the same time; the one that stays has the last word.
func TestTwoVersions(t *testing.T) {
	s := newStage(t)
	u := &turnstile{stage: s, under: map[string]int{}, made: map[string]bool{}}
	one, other := newFault("", ""), newFault("", "")
	one.arm()
	other.arm()
	s.operate(u.between, one.between)
	crash := s.operate(anotherVersion, u.between, other.between)
	c := s.cluster("db", 1)
	load := s.laden(c)
	kept := data{}
	s.write(c, kept)
	for _, size := range []int32{3, 1, 3} {
		s.resize(c, size)
		s.sized(c, int(size))
		s.write(c, kept)
	}
	t.Logf("%d and %d effects, %d changes of members", len(one.effects()), len(other.effects()), len(u.made))
	if len(one.effects()) == 0 || len(other.effects()) == 0 {
		t.Error("void: one of the operators did nothing")
	}
	load.await(50)
	load.check()
	crash()
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		s.unlabelled(c, list)
	}
	s.settled(c, kept)
	// As with two of the same version, one may make a spare too many, which is taken away again;
	// and no name is given twice.
	names := memberNames(c)
	if len(names) != 3 || names[0] != "db-0" || slices.Contains(names, "db-1") || slices.Contains(names, "db-2") || c.Status.NextOrdinal > 7 {
		t.Errorf("members: %v, next ordinal %d", names, c.Status.NextOrdinal)
	}
}

// unlabelled waits until nothing of the cluster has the label of the other version.
func (s *stage) unlabelled(c *api.EtcdCluster, list client.ObjectList) {
	s.Helper()
	s.must(s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}))
	var objects []client.Object
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	case *corev1.PersistentVolumeClaimList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	for _, o := range objects {
		s.awaitObject(o, "as the operator that is left makes it", func() bool { return o.GetLabels()[madeByAnother] == "" })
	}
}
