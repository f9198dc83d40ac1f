package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
)

// looksPerSecond limits the passes in a second over all clusters that wait, without those that a
// watch causes. With up to thirty clusters that wait for etcd, each gets as many passes as one
// alone.
const looksPerSecond = 100

// pace spreads the passes over clusters that wait: the more clusters wait, the longer each one's
// pause before its next pass, up to the pause of a cluster at rest. A watch, such as that of Pods,
// mostly causes a pass earlier.
type pace struct {
	mu sync.Mutex
	// waiting has the clusters that waited in their last completed pass. The value is false while
	// another pass over the cluster is running.
	waiting map[types.NamespacedName]bool
}

// begin begins a pass, and returns the function that ends it. If the pass ended early and did not
// call wait, the cluster does not count as waiting: its next pass comes with an event, or after an
// error with growing pauses.
func (p *pace) begin(key types.NamespacedName) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[key] {
		p.waiting[key] = false
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.waiting[key] {
			delete(p.waiting, key)
		}
	}
}

// wait is the pause before the next pass over a cluster; alone is the pause if it were the only
// one.
func (p *pace) wait(key types.NamespacedName, step membership.Step, alone time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if step.Action != membership.Wait || alone >= atRest {
		delete(p.waiting, key)
		return alone
	}
	if p.waiting == nil {
		p.waiting = map[types.NamespacedName]bool{}
	}
	p.waiting[key] = true
	return max(alone, min(time.Duration(len(p.waiting))*time.Second/looksPerSecond, atRest))
}
