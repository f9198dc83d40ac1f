//go:build env

package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// mode is how an effect is disturbed.
type mode string

const (
	before    mode = "Before"    // the operator dies, and there is no effect
	after     mode = "After"     // the operator dies, and there is one
	replyLost mode = "ReplyLost" // there is one, and the operator lives on and does not know
)

var crashes = []mode{before, after, replyLost}

// refused are the answers to a write that has no effect, of the API server and of etcd, as the operator gets them.
var (
	refusedByKubernetes = map[mode]error{
		"Conflict":        apierrors.NewConflict(schema.GroupResource{}, "injected", errors.New("injected")),
		"TooManyRequests": apierrors.NewTooManyRequests("injected", 1),
		"InternalError":   apierrors.NewInternalError(errors.New("injected")),
		"Timeout":         apierrors.NewTimeoutError("injected", 1),
	}
	refusedByEtcd = map[mode]error{
		"Unhealthy":       later(rpctypes.ErrUnhealthy),
		"TooManyLearners": later(rpctypes.ErrTooManyLearners),
		"LearnerNotReady": later(rpctypes.ErrMemberLearnerNotReady),
		"EtcdTimeout":     later(rpctypes.ErrTimeout),
		"LeaderChanged":   later(rpctypes.ErrLeaderChanged),
		"NoLeader":        later(rpctypes.ErrNoLeader),
	}
)

func later(err error) error { return fmt.Errorf("injected: %w: %w", membership.ErrLater, err) }

// refusals are the modes in which the effect can be refused.
func refusals(effect string) []mode {
	verb, _, _ := strings.Cut(effect, ".")
	if slices.Contains(etcdVerbs, verb) {
		return slices.Sorted(maps.Keys(refusedByEtcd))
	}
	return slices.Sorted(maps.Keys(refusedByKubernetes))
}

var etcdVerbs = []string{"AddLearner", "Promote", "Remove", "MoveLeader", "Disarm", "Downgrade", "CancelDowngrade"}

// fault disturbs one effect of an operator: a write to the API server, or a change that etcd is asked for. An effect is
// named "<verb>.<kind>.<name>#<occurrence>", so that the same one is met in another run.
type fault struct {
	effect string // to disturb; empty for none
	mode   mode
	fired  chan struct{}
	then   func() // at once, before the operator hears of it
	// around an effect, in its place, is what records it; nil for nothing.
	around func(what string, effect func() error) error

	mu    sync.Mutex
	armed bool
	made  []string
	times map[string]int
	dead  bool
	names map[membership.ID]string // of members: their IDs are others in every run
}

func newFault(effect string, m mode) *fault {
	return &fault{effect: effect, mode: m, fired: make(chan struct{}), times: map[string]int{}, names: map[membership.ID]string{}}
}

// arm begins to count; what was done before is the same in every life.
func (f *fault) arm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = true
}

func (f *fault) effects() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.made)
}

func (f *fault) met() bool {
	select {
	case <-f.fired:
		return true
	default:
		return false
	}
}

// between puts the fault between an operator and the world.
func (f *fault) between(r *reconcile.Reconciler) {
	r.Client = &faulty{Client: r.Client, fault: f}
	dial := r.Dial
	r.Dial = func(host string, port int) (membership.Client, error) {
		c, err := dial(host, port)
		return &faultyEtcd{Client: c, fault: f}, err
	}
}

// do has the effect, disturbed if it is the one; after a death there are no more. Only what succeeds is counted, so that
// there is one name for what etcd or a conflict makes the operator try again and again.
func (f *fault) do(what string, effect func() error) error {
	f.mu.Lock()
	name := fmt.Sprintf("%s#%d", what, f.times[what]+1)
	mine := f.armed && !f.met() && name == f.effect
	at := f.mode
	switch {
	case f.dead:
		f.mu.Unlock()
		return context.Canceled
	case mine && at != after && at != replyLost:
		f.meet()
		f.mu.Unlock()
		if f.then != nil {
			f.then()
		}
		return cmp.Or(refusedByEtcd[at], refusedByKubernetes[at], context.Canceled)
	}
	armed := f.armed
	f.mu.Unlock()
	if plain := effect; armed && f.around != nil {
		effect = func() error { return f.around(what, plain) }
	}
	if err := effect(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.armed {
		f.times[what]++
		f.made = append(f.made, name)
	}
	if mine {
		f.meet()
		return context.DeadlineExceeded
	}
	return nil
}

// meet is the disturbance.
func (f *fault) meet() {
	f.dead = f.mode == before || f.mode == after
	close(f.fired)
}

func (f *fault) name(id membership.ID) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names[id]
}

// faulty is a client whose writes go through a fault.
type faulty struct {
	client.Client
	fault *fault
}

func (c *faulty) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.fault.do(signature("apply", o), func() error { return c.Client.Apply(ctx, o, opts...) })
}

func (c *faulty) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.fault.do("delete."+kindOf(o)+"."+o.GetName(), func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c *faulty) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *faulty) SubResource(name string) client.SubResourceClient {
	return &faultySubResource{SubResourceClient: c.Client.SubResource(name), name: name, fault: c.fault}
}

type faultySubResource struct {
	client.SubResourceClient
	name  string
	fault *fault
}

func (c *faultySubResource) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return c.fault.do(signature(c.name, o), func() error { return c.SubResourceClient.Apply(ctx, o, opts...) })
}

func signature(verb string, o runtime.ApplyConfiguration) string {
	named, ok := o.(interface {
		GetKind() *string
		GetName() *string
	})
	if !ok {
		return verb
	}
	return verb + "." + *named.GetKind() + "." + *named.GetName()
}

// faultyEtcd is a client of etcd whose changes go through a fault.
type faultyEtcd struct {
	membership.Client
	fault *fault
}

func (c *faultyEtcd) Members(ctx context.Context) ([]membership.Member, error) {
	members, err := c.Client.Members(ctx)
	c.fault.mu.Lock()
	defer c.fault.mu.Unlock()
	for _, m := range members {
		c.fault.names[m.ID] = host(m.PeerURLs[0])
	}
	return members, err
}

// host is the member's name in its peer URL: etcd knows its name only once it has started.
func host(peerURL string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(peerURL, "http://"), ".")
	return name
}

func (c *faultyEtcd) AddLearner(ctx context.Context, peerURL string) error {
	return c.fault.do("AddLearner.Member."+host(peerURL), func() error { return c.Client.AddLearner(ctx, peerURL) })
}

func (c *faultyEtcd) Promote(ctx context.Context, id membership.ID) error {
	return c.change(ctx, "Promote", id, c.Client.Promote)
}

func (c *faultyEtcd) Remove(ctx context.Context, id membership.ID) error {
	return c.change(ctx, "Remove", id, c.Client.Remove)
}

func (c *faultyEtcd) MoveLeader(ctx context.Context, to membership.ID) error {
	return c.change(ctx, "MoveLeader", to, c.Client.MoveLeader)
}

func (c *faultyEtcd) Disarm(ctx context.Context, id membership.ID) error {
	return c.change(ctx, "Disarm", id, c.Client.Disarm)
}

func (c *faultyEtcd) Downgrade(ctx context.Context, to membership.Version) error {
	return c.fault.do("Downgrade.Cluster."+to.String(), func() error { return c.Client.Downgrade(ctx, to) })
}

func (c *faultyEtcd) CancelDowngrade(ctx context.Context) error {
	return c.fault.do("CancelDowngrade.Cluster", func() error { return c.Client.CancelDowngrade(ctx) })
}

func (c *faultyEtcd) change(ctx context.Context, verb string, id membership.ID, call func(context.Context, membership.ID) error) error {
	return c.fault.do(verb+".Member."+c.fault.name(id), func() error { return call(ctx, id) })
}

// meets waits until the fault has met its effect.
func (s *stage) meets(f *fault) {
	s.Helper()
	select {
	case <-f.fired:
	case <-time.After(patience):
		s.Fatalf("there was no %s to disturb, but %v", f.effect, f.effects())
	}
}
