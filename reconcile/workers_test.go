package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"quorate.dev/membership"
)

// silent is a member on a node that answers nothing, and refuses nothing.
type silent struct{ membership.Client }

func (silent) Status(ctx context.Context) (membership.Endpoint, error) {
	return membership.Endpoint{}, timesOut(ctx)
}

func (silent) Close() error { return nil }

func timesOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, membership.CallTimeout)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

// live is a stub of a cluster of three members that all answer, or none of which does. Its pass
// takes one of the workers.
func live(t *testing.T, of workers, answers bool, given ...func(*world)) *stub {
	t.Helper()
	w := serving(t)
	w.address()
	for _, change := range given {
		change(&w)
	}
	s := newStub(t, nil, w.objects()...)
	s.workers, s.StallAfter = of, time.Minute
	s.Dial = w.dial(nil)
	s.Scrape = func(ctx context.Context, _ string, _ int) (membership.Endpoint, error) {
		return membership.Endpoint{}, timesOut(ctx)
	}
	if !answers {
		s.Dial = func(string, int) (membership.Client, error) { return silent{}, nil }
	}
	return s
}

// moveTo is the same cluster in another namespace.
func (w *world) moveTo(namespace string) {
	w.cluster.Namespace = namespace
	for _, pod := range w.pods {
		pod.Namespace = namespace
	}
	for _, claim := range w.claims {
		claim.Namespace = namespace
	}
}

func (s *stub) pass(ctx context.Context) (ctrl.Result, error) {
	return s.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "db"}})
}

// TestSilentMembersHoldNoWorker: while a look waits for members that do not answer, its worker
// looks at another cluster; and each pass gives back what it has taken.
func TestSilentMembersHoldNoWorker(t *testing.T) {
	t.Parallel()
	one := newWorkers(1)
	sick, well := live(t, one, false), live(t, one, true)
	asked, given := make(chan struct{}, 100), make(chan struct{})
	sick.Dial = func(string, int) (membership.Client, error) {
		asked <- struct{}{}
		return heldClient{given: given}, nil
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = sick.pass(t.Context()) // what it does is not asked here
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := well.pass(ctx); err != nil {
		t.Errorf("the other cluster is not looked at: %v", err)
	}
	close(given)
	<-over
	if busy := one.shares.Taken(); busy != 0 {
		t.Errorf("%d workers are busy after all passes", busy)
	}
}

// heldClient is a member that answers when it is let.
type heldClient struct {
	membership.Client
	given <-chan struct{}
}

func (h heldClient) Status(context.Context) (membership.Endpoint, error) {
	<-h.given
	return membership.Endpoint{}, context.DeadlineExceeded
}

func (heldClient) Close() error { return nil }

// controlled starts a controller as the operator has it, with so many workers, and returns its
// queue.
func controlled(t *testing.T, workers int, pass reconcile.Func) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	options := passesOf(workers)
	options.LogConstructor = func(*reconcile.Request) logr.Logger { return logr.Discard() }
	options.SkipNameValidation = new(true)
	options.Reconciler = pass
	c, err := controller.NewTypedUnmanaged("test", options)
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan workqueue.TypedRateLimitingInterface[reconcile.Request], 1)
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		given <- q
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- c.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return <-given
}

// reactions measures how long it takes from each of so many events, one after the other, to the
// end of a pass. An event begins one, and returns what its end closes.
func reactions(t *testing.T, events int, event func(n int) (done <-chan struct{})) (median, late time.Duration) {
	t.Helper()
	const most = 5 * time.Second
	var took []time.Duration
	for n := range events {
		began := time.Now()
		select {
		case <-event(n):
			took = append(took, time.Since(began))
		case <-time.After(most):
			t.Fatalf("event %d of %d: no pass has come to its end within %s", n, events, most)
		}
	}
	slices.Sort(took)
	return took[events/2], took[events*99/100]
}

// TestSickBesideHealthy: 30 clusters are on nodes that answer nothing, and eight workers look after
// them and the healthy ones, which rest. A healthy cluster reacts to an event, such as a deleted
// Pod, within two seconds.
func TestSickBesideHealthy(t *testing.T) {
	t.Parallel()
	const (
		sick, workers = 30, 8
		bound         = 2 * time.Second
		events        = 50
	)
	of := newWorkers(workers)
	var clusters []*stub
	for range sick {
		clusters = append(clusters, live(t, of, false))
	}
	healthy := live(t, of, true) // one stub for all of them
	var mu sync.Mutex
	ended := map[string]chan struct{}{}
	queue := controlled(t, workers, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var n int
		if _, err := fmt.Sscanf(request.Name, "c%d", &n); err != nil {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		if n < sick {
			return clusters[n].pass(ctx)
		}
		if _, err := healthy.pass(ctx); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		close(ended[request.Name])
		return reconcile.Result{}, nil // it is at rest again
	})
	request := func(n int) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("c%d", n)}}
	}
	for n := range sick {
		queue.Add(request(n))
	}
	median, late := reactions(t, events, func(n int) <-chan struct{} {
		r, done := request(sick+n), make(chan struct{})
		mu.Lock()
		ended[r.Name] = done
		mu.Unlock()
		queue.Add(r)
		return done
	})
	t.Logf("from an event of a healthy cluster, beside %d of which no member answers, to the end of its pass: median %s, 99th percentile %s", sick, median, late)
	if late > bound {
		t.Errorf("want a 99th percentile of %s at most", bound)
	}
}

// distant is an API server, or a cache, that takes its time for each request.
type distant struct {
	client.Client
	takes time.Duration
}

func (d distant) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	passes(ctx, d.takes)
	return d.Client.Get(ctx, key, o, opts...)
}

func (d distant) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	passes(ctx, d.takes)
	return d.Client.List(ctx, list, opts...)
}

// TestBusyBesideQuiet: the 500 clusters of one namespace change all the time, so that each is due
// for its next pass before the last one has ended, and every request to the API server takes its
// time. The only cluster of another namespace reacts to a deleted Pod within 0.3 s. Other tests may
// take the processors for some seconds meanwhile, so more than 5 s fails: without shares of the
// workers it takes 13 s.
func TestBusyBesideQuiet(t *testing.T) {
	t.Parallel()
	const (
		busy, workers = 500, 8
		takes         = 10 * time.Millisecond
		bound         = 5 * time.Second
		events        = 50
	)
	of := newWorkers(workers)
	others := live(t, of, true, func(w *world) { w.moveTo("busy") }) // one stub for all of them
	quiet := live(t, of, true, func(w *world) { delete(w.pods, "db-2") })
	for _, s := range []*stub{others, quiet} {
		far := distant{s.Client, takes}
		s.Client, s.Reader = far, far
	}
	var passes atomic.Int64
	var queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	filled, done := make(chan struct{}), make(chan struct{})
	queue = controlled(t, workers, func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		<-filled
		if request.Namespace == "busy" {
			queue.Add(request) // it has changed again
			_, err := others.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "busy", Name: "db"}})
			passes.Add(1)
			return reconcile.Result{}, err
		}
		if _, err := quiet.pass(ctx); err != nil {
			t.Error(err)
		}
		select {
		case done <- struct{}{}:
		case <-ctx.Done():
		}
		return reconcile.Result{}, nil
	})
	for n := range busy {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "busy", Name: fmt.Sprintf("c%d", n)}})
	}
	close(filled)
	median, late := reactions(t, events, func(int) <-chan struct{} {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "db"}})
		return done
	})
	t.Logf("from a deleted Pod of the quiet namespace to the end of its pass: median %s, 99th percentile %s, beside %d passes of the busy one", median, late, passes.Load())
	if late > bound {
		t.Errorf("want a 99th percentile of %s at most", bound)
	}
	if made := len(quiet.sorted()); made < events {
		t.Errorf("void: %d writes for %d deleted Pods", made, events)
	}
	if passes.Load() < workers {
		t.Errorf("void: the busy namespace had %d passes", passes.Load())
	}
}

// TestRestWhileSilent: looks that are in vain become rarer, and nothing that is due comes later by
// more than a tenth.
func TestRestWhileSilent(t *testing.T) {
	t.Parallel()
	type look struct {
		at, waited time.Duration
	}
	cases := map[string]struct {
		reason string
		looks  []look
		at     time.Duration
		want   time.Duration
	}{
		"Answers":  {reason: "a member that answers costs nothing", looks: []look{{0, time.Millisecond}}, at: time.Hour},
		"Slow":     {reason: "one that is slow is asked as often as ever", looks: []look{{0, 900 * time.Millisecond}}, at: time.Hour},
		"First":    {reason: "it may be back at once", looks: []look{{0, 2 * time.Second}}},
		"Minute":   {reason: "a tenth of a minute", looks: []look{{0, 2 * time.Second}, {30 * time.Second, 2 * time.Second}}, at: time.Minute, want: 6 * time.Second},
		"Hour":     {reason: "as rarely as at rest, and no more rarely", looks: []look{{0, 2 * time.Second}}, at: time.Hour, want: atRest},
		"CameBack": {reason: "another silence begins from nothing", looks: []look{{0, 2 * time.Second}, {time.Minute, 0}, {time.Minute, 2 * time.Second}}, at: 70 * time.Second, want: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, s := time.Now(), &unresponsive{}
			for _, l := range tc.looks {
				s.waited(turnOf("db"), l.waited, began.Add(l.at))
			}
			if got := s.rest(turnOf("db"), began.Add(tc.at)); got != tc.want {
				t.Errorf("%s: want a rest of %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
