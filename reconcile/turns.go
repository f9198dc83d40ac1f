package reconcile

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// turns bound how many clusters change what they run at a time: a new version for a hundred of them, applied by one commit, is
// no reason for a hundred elections at once, and an image that does not work is found out by a few. It bounds disruption and
// guards nothing: an operator that is started anew counts from the beginning.
type turns struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]bool
}

// errOthersFirst: as many clusters change as may at a time.
var errOthersFirst = errors.New("other clusters change first")

// enter takes a turn, if there is one or the cluster has it already.
func (t *turns) enter(c *api.EtcdCluster, limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	if limit > 0 && len(t.taken) >= limit && !t.taken[key] {
		return false
	}
	if t.taken == nil {
		t.taken = map[types.NamespacedName]bool{}
	}
	t.taken[key] = true
	return true
}

// leave gives the turn of a cluster back that has come to rest, or to a stop that only a person ends.
func (t *turns) leave(c *api.EtcdCluster, step membership.Step) {
	if step.Action == membership.None || step.Action == membership.Stall {
		t.forget(client.ObjectKeyFromObject(c))
	}
}

func (t *turns) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, key)
}
