package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
func live(t *testing.T, of workers, answers bool) *stub {
	t.Helper()
	w := serving(t)
	w.address()
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
	if busy := len(one.busy); busy != 0 {
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
	options := passesOf(workers)
	options.LogConstructor = func(*reconcile.Request) logr.Logger { return logr.Discard() }
	options.SkipNameValidation = new(true)
	options.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
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
	c, err := controller.NewTypedUnmanaged("sick", options)
	if err != nil {
		t.Fatal(err)
	}
	request := func(n int) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("c%d", n)}}
	}
	var queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	filled := make(chan struct{})
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		defer close(filled)
		queue = q
		for n := range sick {
			q.Add(request(n))
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { over <- c.Start(ctx) }()
	<-filled
	var took []time.Duration
	for n := range events {
		r, done := request(sick+n), make(chan struct{})
		mu.Lock()
		ended[r.Name] = done
		mu.Unlock()
		began := time.Now()
		queue.Add(r)
		<-done
		took = append(took, time.Since(began))
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	slices.Sort(took)
	median, late := took[events/2], took[events*99/100]
	t.Logf("from an event of a healthy cluster, beside %d of which no member answers, to the end of its pass: median %s, 99th percentile %s", sick, median, late)
	if late > bound {
		t.Errorf("want a 99th percentile of %s at most", bound)
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
