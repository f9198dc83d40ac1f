package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
	"quorate.dev/reconcile/fair"
)

// workers bound how many clusters are reconciled at a time. A pass that waits for members that do
// not answer does not count: otherwise a dozen clusters on dead nodes, each of which costs a
// time-out a pass, would delay all others. The clusters of one namespace have a part of the workers
// at most (fair.Shares). The zero workers have no bound.
type workers struct{ *shared }

type shared struct {
	mu     sync.Mutex
	shares *fair.Shares[chan struct{}] // what waits is closed when it has a worker
}

func newWorkers(count int) workers { return workers{&shared{shares: fair.New[chan struct{}](count)}} }

// passesPerWorker is how many passes go on for each worker, those included that wait for silent
// members or for a worker. With the default of eight workers as many as 85 clusters, 64 of one
// namespace, may be looked at each second of which every look takes the time-out of two and is
// followed by a rest of one.
const passesPerWorker = 32

// slowAfter is after what time without an answer a pass gives its worker to others. A member that
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

// releaseIfSlow gives the worker of a pass to others where what follows is not done promptly. The
// pass has one again when the returned function has returned.
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

// wait returns what is closed when there is a worker.
func (s *shared) wait(namespace string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := make(chan struct{})
	s.shares.Wait(namespace, has, 0)
	s.give()
	return has
}

// leave waits no longer. It may just have got a worker.
func (s *shared) leave(namespace string, has chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shares.Leave(namespace, has) {
		s.shares.Done(namespace)
		s.give()
	}
}

// give the free workers.
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
