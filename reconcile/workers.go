package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
	"quorate.dev/reconcile/fair"
)

// workers limits how many clusters are reconciled at a time. A pass that waits for silent members
// does not count: otherwise a dozen clusters on dead nodes, each with a time-out in every pass,
// would delay all others. The clusters of one namespace never have all workers (fair.Shares). The
// zero value has no limit.
type workers struct{ *shared }

type shared struct {
	mu     sync.Mutex
	shares *fair.Shares[chan struct{}] // the channel of a waiting pass is closed when the pass gets a worker
}

func newWorkers(count int) workers { return workers{&shared{shares: fair.New[chan struct{}](count)}} }

// passesPerWorker is how many passes run for each worker, including those that wait for silent
// members or for a worker. Example: with the default of eight workers, 256 passes run at a time. If
// each takes a time-out of 2 s and is followed by a rest of 1 s, 85 passes begin each second, 64 of
// them in one namespace.
const passesPerWorker = 32

// slowAfter is how long a pass waits for members before it gives its worker back. A member that
// serves answers within some milliseconds.
const slowAfter = 100 * time.Millisecond

// acquire waits for a worker for a pass over a cluster of that namespace.
func (w workers) acquire(ctx context.Context, namespace string) error {
	if w.shared == nil {
		return nil
	}
	has := w.wait(namespace)
	select {
	case <-has:
		return nil
	case <-ctx.Done():
		w.leave(namespace, has)
		return context.Cause(ctx)
	}
}

func (w workers) release(namespace string) {
	if w.shared == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shares.Done(namespace)
	w.give()
}

// releaseIfSlow gives the worker of a pass back if the caller has not called reacquire after
// slowAfter. When reacquire returns, the pass has a worker again.
func (w workers) releaseIfSlow(namespace string) (reacquire func()) {
	if w.shared == nil {
		return func() {}
	}
	lent := time.AfterFunc(slowAfter, func() { w.release(namespace) })
	return func() {
		if !lent.Stop() {
			<-w.wait(namespace) // each worker becomes free: a pass has a deadline
		}
	}
}

// wait returns a channel that is closed when the pass gets a worker.
func (s *shared) wait(namespace string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := make(chan struct{})
	s.shares.Wait(namespace, has, 0)
	s.give()
	return has
}

// leave stops to wait, and gives back the worker if the pass has just got one.
func (s *shared) leave(namespace string, has chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shares.Leave(namespace, has) {
		s.shares.Done(namespace)
		s.give()
	}
}

// give hands the free workers to waiting passes.
func (s *shared) give() {
	for has, ok := s.shares.Next(); ok; has, ok = s.shares.Next() {
		close(has)
	}
}

// unresponsive remembers since when the members of a cluster do not answer. It saves time and
// guards nothing.
type unresponsive struct{ since sync.Map } // time.Time by types.NamespacedName

// silentAfter is how long a look waits for members at least where one does not answer at all.
const silentAfter = membership.CallTimeout / 2

// waited tells how long a look has waited for members.
func (s *unresponsive) waited(key types.NamespacedName, took time.Duration, now time.Time) {
	if took < silentAfter {
		s.since.Delete(key)
		return
	}
	s.since.LoadOrStore(key, now)
}

// rest is how long to wait at least before the next look: a tenth of the time for which looks have
// been in vain, so that nothing that is due after some time comes later by more than that. A
// member that becomes ready again wakes its cluster.
func (s *unresponsive) rest(key types.NamespacedName, now time.Time) time.Duration {
	since, silent := s.since.Load(key)
	if !silent {
		return 0
	}
	return min(now.Sub(since.(time.Time))/10, atRest)
}

func (s *unresponsive) forget(key types.NamespacedName) { s.since.Delete(key) }
