//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestCrash kills the operator at every single write of a cluster's life, and starts another: before the write, after it,
// or, without a death, with the write done and the reply lost. Each time the end is that of an undisturbed run: the same
// cluster, with what was written to it.
func TestCrash(t *testing.T) {
	var writes []string
	t.Run("Reference", func(t *testing.T) { // not parallel: the others need its result
		s := newStageAlone(t)
		f := &fault{at: -1}
		s.operate(f.wrap)
		s.live()
		writes = f.writes()
		t.Logf("%d writes: %v", len(writes), writes)
	})
	if len(writes) == 0 {
		t.Fatal("the reference run made no write")
	}
	for at := range writes {
		for _, mode := range []crashMode{before, after, replyLost} {
			t.Run(fmt.Sprintf("%02d%s", at, mode), func(t *testing.T) {
				s := newStage(t)
				f := &fault{at: at, mode: mode, fired: make(chan struct{})}
				crash := s.operate(f.wrap)
				second := make(chan struct{})
				go func() {
					defer close(second)
					select {
					case <-f.fired:
					case <-t.Context().Done():
						return
					}
					if mode != replyLost {
						crash()
						s.operate()
					}
				}()
				t.Cleanup(func() { <-second })
				s.live()
				select {
				case <-f.fired:
				default:
					t.Logf("this run got by with %d writes, so there was none to disturb: %v", len(f.writes()), f.writes())
				}
			})
		}
	}
}

// live is the life that is disturbed: created, written to, hibernated, woken, and its data read again.
func (s *stage) live() {
	s.Helper()
	c := s.cluster("db", 3)
	s.contract(c)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	born := identityOf(c)
	s.change(c, func() { c.Spec.Replicas = new(int32(0)) })
	s.await(c, "hibernated", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	s.change(c, func() { c.Spec.Replicas = new(int32(3)) })
	s.want(s.ready(c), "key", "value")
	if diff := cmp.Diff(born, identityOf(c)); diff != "" {
		s.Errorf("identity changed: -want +got:\n%s", diff)
	}
	if pods, claims := len(s.pods(c)), len(s.claims(c)); pods != 3 || claims != 3 {
		s.Errorf("%d Pods and %d claims at the end, want 3 of each", pods, claims)
	}
	if c.Status.Operation != nil {
		s.Errorf("an intent is left at the end: %v", c.Status.Operation)
	}
}

type crashMode string

const (
	before    crashMode = "Before"
	after     crashMode = "After"
	replyLost crashMode = "ReplyLost"
)

// fault disturbs one write of an operator.
type fault struct {
	at    int // the write to disturb, from 0; -1 for none
	mode  crashMode
	fired chan struct{}

	mu   sync.Mutex
	made []string
	dead bool
}

func (f *fault) writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.made)
}

func (f *fault) wrap(c client.Client) client.Client { return &faulty{Client: c, fault: f} }

// do makes a write, disturbed if it is the one; after a death nothing more reaches the API server.
func (f *fault) do(signature string, write func() error) error {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return context.Canceled
	}
	mine := len(f.made) == f.at
	f.made = append(f.made, signature)
	f.dead = mine && f.mode != replyLost
	f.mu.Unlock()
	if !mine {
		return write()
	}
	defer close(f.fired)
	if f.mode == before {
		return context.Canceled
	}
	if err := write(); err != nil {
		return err
	}
	return context.DeadlineExceeded
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
	return c.fault.do("delete "+o.GetName(), func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c *faulty) Status() client.SubResourceWriter {
	return &faultyStatus{SubResourceWriter: c.Client.Status(), fault: c.fault}
}

type faultyStatus struct {
	client.SubResourceWriter
	fault *fault
}

func (c *faultyStatus) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return c.fault.do(signature("status", o), func() error { return c.SubResourceWriter.Apply(ctx, o, opts...) })
}

func signature(verb string, o runtime.ApplyConfiguration) string {
	named, ok := o.(interface {
		GetKind() *string
		GetName() *string
	})
	if !ok {
		return verb
	}
	return verb + " " + *named.GetKind() + "/" + *named.GetName()
}
