package fair

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is controller-runtime's priority queue with a limit on the passes of one namespace at a
// time. All requests that are due are taken from the priority queue and parked here, so that the
// requests of one namespace do not block those of another namespace behind them.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	mu     sync.Mutex
	more   *sync.Cond // a parked request may be allowed now, or the queue shuts down
	shares *Shares[reconcile.Request]
	parked map[reconcile.Request]int // the priority of each parked request
}

// NewQueue returns a value for controller.Options.NewQueue. passes is MaxConcurrentReconciles of
// the controller.
func NewQueue(passes int) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := &queue{
			PriorityQueue: priorityqueue.New(controller, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
			shares:        New[reconcile.Request](passes),
			parked:        map[reconcile.Request]int{},
		}
		q.more = sync.NewCond(&q.mu)
		go q.collect()
		return q
	}
}

// collect parks the requests that are due, until the queue shuts down.
func (q *queue) collect() {
	for {
		request, priority, shutdown := q.PriorityQueue.GetWithPriority()
		if shutdown {
			break
		}
		q.park(request, priority)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.more.Broadcast()
}

// GetWithPriority waits for a request that is due and within the limit of its namespace.
func (q *queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ShuttingDown() {
		if request, ok := q.shares.Next(); ok {
			priority := q.parked[request]
			delete(q.parked, request)
			return request, priority, false
		}
		q.more.Wait()
	}
	return reconcile.Request{}, 0, true
}

// Get is GetWithPriority without the priority.
func (q *queue) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// Done ends the pass of a request.
func (q *queue) Done(request reconcile.Request) {
	q.PriorityQueue.Done(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shares.Done(request.Namespace)
	q.more.Signal()
}

// Add queues a request.
func (q *queue) Add(request reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddWithOpts queues requests. A request that is parked is not queued a second time. It gets the
// higher of the two priorities, as in the priority queue.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		if o.After > 0 || o.RateLimited || !q.raise(request, ptr.Deref(o.Priority, 0)) {
			q.PriorityQueue.AddWithOpts(o, request)
		}
	}
}

func (q *queue) park(request reconcile.Request, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parked[request] = priority
	q.shares.Wait(request.Namespace, request, priority)
	q.more.Signal()
}

// raise reports whether the request is parked, and raises its priority if the given one is higher.
func (q *queue) raise(request reconcile.Request, priority int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	had, parked := q.parked[request]
	if parked && priority > had {
		q.shares.Leave(request.Namespace, request)
		q.shares.Wait(request.Namespace, request, priority)
		q.parked[request] = priority
	}
	return parked
}
