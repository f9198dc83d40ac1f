package reconcile

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// An intent says when it was begun by the clock of its holder. Another operator must not take that
// for the truth. With a holder an hour ahead it would begin nothing for an hour; with a holder that
// is behind it would begin something else while the request of the holder is still under way. So an
// intent lives from when this process saw it first, on the monotonic clock: it was written before
// that, and what its holder asked for has ended intentLife later.
//
// An operator that has just started would wait so long for an intent that is over. There two clocks
// have to agree, so that one that is wrong does no harm: the intent is as old as both its own time
// against our clock, and the last write of the status against the API server's own clock, say that
// it is at least. Where the latter is not known, its life begins at first sight.
//
// Nothing of this is truth that a restart loses: what is forgotten is waited for once more.

// intents remembers since when the intents of clusters count as begun.
type intents struct {
	mu   sync.Mutex
	seen map[types.NamespacedName][]seenIntent
}

type seenIntent struct {
	cluster   types.UID
	operation api.Operation
	begun     time.Time
}

// begun is since when the intent of a cluster counts as begun: what is remembered, or first, which
// is remembered from then on. What was written and lost to another writer is forgotten after
// intentLife.
func (s *intents) begun(c *api.EtcdCluster, op *api.Operation, first, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	stored := op.DeepCopy()
	stored.Since = &metav1.Time{Time: op.Since.Truncate(time.Second)} // as the API server keeps it
	is := func(i seenIntent) bool {
		return i.cluster == c.UID && equality.Semantic.DeepEqual(i.operation, *stored)
	}
	kept := slices.DeleteFunc(s.seen[key], func(i seenIntent) bool { return !is(i) && now.Sub(i.begun) > intentLife })
	n := slices.IndexFunc(kept, is)
	if n < 0 {
		n, kept = len(kept), append(kept, seenIntent{c.UID, *stored, first})
	}
	if s.seen == nil {
		s.seen = map[types.NamespacedName][]seenIntent{}
	}
	s.seen[key] = kept
	return kept[n].begun
}

func (s *intents) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}

// begun is since when the intent of a cluster counts as begun; zero where it has none, or one of an
// earlier release, which wrote no time. One of our own that is not remembered was written by a
// request whose answer was lost, and has the time of our own clock.
func (r *Reconciler) begun(c *api.EtcdCluster, now time.Time) time.Time {
	op := c.Status.Operation
	if op == nil || op.Since == nil {
		return time.Time{}
	}
	first := now
	age, known := r.writtenFor(c, now)
	switch {
	case op.Holder == r.identity:
		first = op.Since.Time
	case known && op.Since.After(now.Add(-age)):
		first = op.Since.Time
	case known:
		first = now.Add(-age)
	}
	if first.After(now) {
		first = now
	}
	return r.intents.begun(c, op, first, now)
}

// writtenFor is for how long at least the status of a cluster has been as it is, by the clock of
// the API server alone; false where that is not known. Both its times are in whole seconds.
func (r *Reconciler) writtenFor(c *api.EtcdCluster, now time.Time) (time.Duration, bool) {
	var last time.Time
	for _, entry := range c.ManagedFields {
		if entry.Manager == api.Manager && entry.Subresource == "status" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	server, known := r.ServerTime.now(now)
	if !known || last.IsZero() {
		return 0, false
	}
	return max(0, server.Sub(last)-rounding), true
}
