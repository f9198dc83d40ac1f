package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
)

// looksPerSecond bounds the passes in a second over all clusters that wait, beside those that a
// watch causes. Up to thirty clusters that wait for etcd are looked at as often as one.
const looksPerSecond = 100

// pace spreads the passes over clusters that wait: the more clusters wait, the longer each waits
// for its next pass, up to the time of a cluster at rest. Mostly a watch of a Pod causes it
// earlier.
type pace struct {
	mu sync.Mutex
	// waiting are the clusters that wait, as the last pass over each has found that came to its
	// end. It is false for those over which a pass goes on.
	waiting map[types.NamespacedName]bool
}

// begin of a pass. It returns what ends it: a pass that has not come to wait, because it ended
// early, leaves no cluster that counts. Its next pass comes with an event, or with growing pauses.
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

// wait is how long to wait before the next look at a cluster that would be looked at after the
// given time if it were alone.
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
