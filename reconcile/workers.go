package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
)

// workers bound how many clusters are reconciled at a time. A pass that waits for members that do
// not answer does not count: otherwise a dozen clusters on dead nodes, each of which costs a
// time-out a pass, would delay all others. The zero workers have no bound.
type workers struct{ busy chan struct{} }

func newWorkers(count int) workers { return workers{make(chan struct{}, count)} }

// passesPerWorker is how many passes go on for each worker, those included that wait for silent
// members or for a worker. With the default of eight workers as many as 85 clusters may be looked
// at each second of which every look takes the time-out of two and is followed by a rest of one.
const passesPerWorker = 32

// slowAfter is after what time without an answer a pass gives its worker to others. A member that
// serves answers within some milliseconds.
const slowAfter = 100 * time.Millisecond

// acquire waits for a worker.
func (w workers) acquire(ctx context.Context) error {
	if w.busy == nil {
		return nil
	}
	select {
	case w.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w workers) release() {
	if w.busy != nil {
		<-w.busy
	}
}

// releaseIfSlow gives the worker of a pass to others where what follows is not done promptly. The
// pass has one again when the returned function has returned.
func (w workers) releaseIfSlow() (reacquire func()) {
	if w.busy == nil {
		return func() {}
	}
	lent := time.AfterFunc(slowAfter, w.release)
	return func() {
		if !lent.Stop() {
			w.busy <- struct{}{} // each worker becomes free: a pass has a deadline
		}
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
