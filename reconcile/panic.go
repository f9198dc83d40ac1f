package reconcile

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// crew does things at once for one pass. A panic of any of them is one of that pass, which
// controller-runtime recovers: it fails, is logged and tried again with growing pauses, and the
// other clusters go on. In a goroutine of its own it would end the operator.
type crew struct {
	all   sync.WaitGroup
	mutex sync.Mutex
	fell  any
}

func (c *crew) do(work func()) {
	c.all.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				c.mutex.Lock()
				defer c.mutex.Unlock()
				c.fell = fmt.Sprintf("%v, in:\n%s", p, debug.Stack())
			}
		}()
		work()
	})
}

// wait until all is done, and hand a panic over.
func (c *crew) wait() {
	c.all.Wait()
	if c.fell != nil {
		panic(c.fell)
	}
}
