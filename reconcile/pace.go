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
	mu      sync.Mutex
	waiting map[types.NamespacedName]bool
}

// wait is how long to wait before the next look at a cluster that would be looked at after the
// given time if it were alone.
func (p *pace) wait(key types.NamespacedName, step membership.Step, alone time.Duration) time.Duration {
	if step.Action != membership.Wait || alone >= atRest {
		p.forget(key)
		return alone
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[types.NamespacedName]bool{}
	}
	p.waiting[key] = true
	return max(alone, min(time.Duration(len(p.waiting))*time.Second/looksPerSecond, atRest))
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, key)
}
