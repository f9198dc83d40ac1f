package fair

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requested(namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

// passes are those that a controller with so many makes at a time: each has what the queue gave,
// until it is let end.
type passes struct {
	*testing.T
	queue *queue
	begun chan reconcile.Request
	end   map[reconcile.Request]chan struct{}
}

func start(t *testing.T, count int) *passes {
	t.Helper()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	q, _ := NewQueue(count)(t.Name(), limiter).(*queue)
	p := &passes{T: t, queue: q, begun: make(chan reconcile.Request, 1000), end: map[reconcile.Request]chan struct{}{}}
	for _, namespace := range []string{"a", "b", "c"} {
		for n := range 20 {
			p.end[requested(namespace, n)] = make(chan struct{})
		}
	}
	ended := make(chan struct{})
	for range count {
		go func() {
			defer func() { ended <- struct{}{} }()
			for request, shutdown := q.Get(); !shutdown; request, shutdown = q.Get() {
				p.begun <- request
				<-p.end[request]
				q.Done(request)
			}
		}()
	}
	t.Cleanup(func() {
		q.ShutDown()
		for _, end := range p.end {
			close(end)
		}
		for range count {
			<-ended
		}
	})
	return p
}

// begin waits for the next pass to begin.
func (p *passes) begin() reconcile.Request {
	p.Helper()
	select {
	case request := <-p.begun:
		return request
	case <-time.After(10 * time.Second):
		p.Fatal("no pass begins")
		return reconcile.Request{}
	}
}

// settled waits until so many wait for a pass of their namespace.
func (p *passes) settled(parked int) {
	p.Helper()
	for late := time.After(10 * time.Second); ; {
		p.queue.mu.Lock()
		got := len(p.queue.parked)
		p.queue.mu.Unlock()
		if got == parked {
			return
		}
		select {
		case <-late:
			p.Fatalf("%d wait for a pass of their namespace, want %d", got, parked)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestQueue: one namespace has three of four passes, another one gets its pass at once, and what
// waits begins in its order when a pass of its namespace has ended.
func TestQueue(t *testing.T) {
	t.Parallel()
	p := start(t, 4)
	for n := range 3 {
		p.queue.Add(requested("a", n))
		p.begin()
	}
	for n := range 7 {
		p.queue.Add(requested("a", 3+n))
		p.settled(1 + n)
	}
	p.queue.Add(requested("b", 0))
	if got, want := p.begin(), requested("b", 0); got != want {
		t.Errorf("want a pass over %s, got one over %s", want, got)
	}
	p.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, requested("a", 8)) // is due before the others now
	p.queue.Add(requested("a", 9))                                                  // waits already
	order := []reconcile.Request{}
	for n := range 3 {
		p.end[requested("a", n)] <- struct{}{}
		order = append(order, p.begin())
	}
	for _, request := range order {
		p.end[request] <- struct{}{}
		order = append(order, p.begin())
	}
	p.end[order[3]] <- struct{}{}
	order = append(order, p.begin())
	want := []reconcile.Request{requested("a", 8), requested("a", 3), requested("a", 4), requested("a", 5), requested("a", 6), requested("a", 7), requested("a", 9)}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("the order of the passes: -want +got:\n%s", diff)
	}
	p.settled(0)
	if left := p.queue.Len(); left != 0 {
		t.Errorf("%d more are due: what waits was added twice", left)
	}
}

// TestQueueOfThree: two namespaces have more due than there are passes. A third one does not wait
// until that is done.
func TestQueueOfThree(t *testing.T) {
	t.Parallel()
	p := start(t, 4)
	for n := range 20 {
		p.queue.Add(requested("a", n))
	}
	under := []reconcile.Request{p.begin(), p.begin(), p.begin()} // of namespace a
	p.settled(17)
	for n := range 20 {
		p.queue.Add(requested("b", n))
	}
	under = append(under, p.begin())
	p.settled(17 + 19)
	p.queue.Add(requested("c", 0))
	p.settled(17 + 19 + 1)
	p.end[under[0]] <- struct{}{}
	if next, want := p.begin(), requested("c", 0); next != want {
		t.Errorf("want the next pass over %s, got one over %s", want, next)
	}
}
