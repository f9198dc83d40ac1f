//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"

	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// fault disturbs one effect of an operator: a write to the API server, or a change that etcd is
// asked for. An effect is named "<verb>.<kind>.<name>#<occurrence>", so that the same one is met in
// another run; one of etcd's also "<verb>#<occurrence>".
type fault struct {
	effect string // to disturb; empty for none
	mode   mode
	fired  chan struct{}
	then   func() // at once, before the operator hears of it
	// around an effect, in its place, is what records it; nil for nothing.
	around func(what string, effect func() error) error
	// next is a fault of the same operators, which lies between this one and the world: it counts
	// what this one has let through. It is armed with this one. nil for none.
	next *fault

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

// deadly reports whether a process dies of it.
func (m mode) deadly() bool { return m == before || m == after }

// ends reports whether the operator dies of it.
func (f *fault) ends() bool { return f.mode.deadly() && !ofAgent(f.effect) }

// arm begins to count; what was done before is the same in every life.
func (f *fault) arm() {
	if f.next != nil {
		f.next.arm()
	}
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

// between puts the fault, and those next to it, between an operator and the world, apart from those
// that have ended one.
func (f *fault) between(r *reconcile.Reconciler) {
	if f.next != nil {
		f.next.between(r)
	}
	if f.met() && f.ends() {
		return
	}
	r.Client = &faulty{real: r.Client, fault: f}
	dial := r.Dial
	r.Dial = func(host string, port int) (membership.Client, error) {
		c, err := dial(host, port)
		return &faultyEtcd{real: c, fault: f}, err
	}
	secure := r.DialTLS
	r.DialTLS = func(host string, port int, config *tls.Config) (membership.Client, error) {
		c, err := secure(host, port, config)
		return &faultyEtcd{real: c, fault: f}, err
	}
}

// do has the effect, disturbed if it is the one; after a death there are no more. Only what
// succeeds is counted, so that there is one name for what etcd or a conflict makes the operator try
// again and again. refused is the error that a real client makes of a refusal, or of a reply that
// is lost.
func (f *fault) do(what string, effect func() error, refused func(mode) error) error {
	f.mu.Lock()
	name := f.nth(repeatable(what))
	mine := f.armed && !f.met() && (name == f.effect || f.nth(what) == f.effect)
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
		if at == before {
			return context.Canceled
		}
		return refused(at)
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
	if f.armed {
		f.times[what]++
		if kind := repeatable(what); kind != what {
			f.times[kind]++
		}
		f.made = append(f.made, name)
	}
	if mine {
		f.meet()
	}
	f.mu.Unlock()
	switch {
	case !mine:
		return nil
	case at == after:
		return context.Canceled
	default:
		return refused(replyLost)
	}
}

// nth names the next effect of that kind.
func (f *fault) nth(kind string) string { return fmt.Sprintf("%s#%d", kind, f.times[kind]+1) }

// repeatable names an effect so that another run has it, too. Which member etcd is asked about
// depends on which one leads.
func repeatable(what string) string {
	if verb := verbOf(what); slices.Contains(etcdVerbs, verb) {
		return verb
	}
	return what
}

// meet is the disturbance.
func (f *fault) meet() {
	f.dead = f.ends()
	close(f.fired)
}

func (f *fault) name(id membership.ID) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names[id]
}

// later is an effect that is not asked of etcd at all, for the operator to look again.
func later(err error) error { return fmt.Errorf("%w: %w", membership.ErrLater, err) }

// meets waits until the fault has met its effect.
func (s *stage) meets(f *fault) {
	s.Helper()
	select {
	case <-f.fired:
	case <-time.After(patience):
		s.Fatalf("there was no %s to disturb, but %v", f.effect, f.effects())
	}
}
