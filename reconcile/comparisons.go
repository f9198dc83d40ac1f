package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"quorate.dev/membership"
	"quorate.dev/reconcile/fair"
)

// The data of the voters is compared beside the passes, since reading 2 GB takes seconds: one
// member after the other, and the leader last, since a member applies nothing while it reads. What
// comes of it is a fact as long as it is about the voters that there are. It is kept in memory
// alone: an operator that starts compares again.

const (
	// mostComparing is how many clusters are compared at a time, and mostOfNamespace how many of
	// one namespace: a member may take HashTimeout for its answer.
	mostComparing, mostOfNamespace = 8, 2
	// inPass is how long a pass waits for a comparison: a small database takes some milliseconds.
	inPass = 100 * time.Millisecond
	// comparingShare is the part of the time that comparisons may take: one in so many.
	comparingShare = 100
	// compareAtRest is how often a cluster is compared in which nothing happens, at most.
	compareAtRest = 5 * time.Minute
	// compareAgain is when one is tried again on which a step waits.
	compareAgain = time.Second
	// mostUnanswered is what one counts for at most that has waited for a member in vain.
	mostUnanswered = 10 * time.Second
)

// comparisons are those of all clusters.
type comparisons struct {
	// wake has a cluster looked at again; nil in tests of this type alone.
	wake func(types.NamespacedName)

	slots workers // of those that run

	mu      sync.Mutex
	cluster map[types.NamespacedName]*comparison
}

// comparison of one cluster: the last one, and the one that runs.
type comparison struct {
	about  string // the voters and alarms that it is about
	hashes map[string]membership.Hash
	whole  bool // each voter that serves was compared
	differ bool
	ended  time.Time
	took   time.Duration

	running chan struct{} // closed at its end; nil where none runs
	subject string        // of the one that runs
	late    bool          // the pass that began it has not got it
	cancel  context.CancelFunc
}

// forget a cluster that is gone.
func (all *comparisons) forget(key types.NamespacedName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.cluster[key]; k != nil && k.running != nil {
		k.cancel()
	}
	delete(all.cluster, key)
}

// end all that run, with the operator.
func (all *comparisons) end() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, k := range all.cluster {
		if k.running != nil {
			k.cancel()
		}
	}
}

// late: the pass that has begun a comparison goes on without it.
func (all *comparisons) late(key types.NamespacedName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.cluster[key]; k != nil && k.running != nil {
		k.late = true
	}
}

// result of the last comparison, where it was about this.
func (all *comparisons) result(key types.NamespacedName, about string) map[string]membership.Hash {
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.cluster[key]; k != nil && k.about == about {
		return k.hashes
	}
	return nil
}

// begin a comparison, where one is due. It returns the end of the one that runs and is about this.
func (all *comparisons) begin(ctx context.Context, key types.NamespacedName, about string, urgent bool, compare func(context.Context) (map[string]membership.Hash, bool)) <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.cluster == nil {
		all.cluster = map[types.NamespacedName]*comparison{}
		all.slots = workers{&shared{shares: fair.Limited[chan struct{}](mostComparing, mostOfNamespace)}}
	}
	k := all.cluster[key]
	if k == nil {
		k = &comparison{}
		all.cluster[key] = k
	}
	switch {
	case k.running != nil && k.subject != about:
		k.late = true // what would come of it is no fact any more
		k.cancel()
		return nil
	case k.running != nil:
		return nil // the pass that began it has waited
	case !k.due(about, urgent, time.Now()):
		return nil
	}
	// The operator's end ends it (end), and so does a change of what it is about. The end of the
	// pass does not.
	ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	running := make(chan struct{})
	k.running, k.subject, k.late = running, about, false
	go func() {
		var hashes map[string]membership.Hash
		var whole bool
		var took time.Duration
		if all.slots.acquire(ctx, key.Namespace) == nil {
			began := time.Now()
			hashes, whole = guarded(ctx, compare)
			took = time.Since(began)
			all.slots.release(key.Namespace)
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		k.cancel()
		k.running, k.ended = nil, time.Now()
		switch {
		case whole:
			k.took = took
		case took > 0:
			k.took = min(took, mostUnanswered)
		}
		k.about, k.hashes, k.whole = about, hashes, whole
		k.differ = differ(hashes)
		close(running)
		if k.late && all.wake != nil {
			all.wake(key)
		}
	}()
	return running
}

// guarded: what goes wrong here is this cluster's, and not the end of the operator, which nothing
// else would keep from it beside a pass.
func guarded(ctx context.Context, compare func(context.Context) (map[string]membership.Hash, bool)) (hashes map[string]membership.Hash, whole bool) {
	defer func() {
		if p := recover(); p != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "Members cannot be compared", "stack", string(debug.Stack()))
			hashes, whole = nil, false
		}
	}()
	return compare(ctx)
}

// due reports whether a comparison is to begin: at once where a step waits for it; else when enough
// time has passed for what the last one took, after a member has started and from time to time.
func (k *comparison) due(about string, urgent bool, now time.Time) bool {
	since, pause := now.Sub(k.ended), comparingShare*k.took
	known := k.about == about
	switch {
	case k.ended.IsZero():
		return true
	case known && k.whole:
		return since >= max(compareAtRest, pause)
	case urgent || k.differ:
		return !known || since >= max(compareAgain, k.took)
	default:
		return since >= max(compareAgain, pause)
	}
}
