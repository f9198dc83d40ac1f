package reconcile

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// taskGroup runs functions of one pass in goroutines. If one of them panics, wait panics in the
// goroutine of the pass. There controller-runtime recovers: the pass fails, is logged and retried
// with growing pauses, and other clusters go on. A panic in another goroutine would end the
// operator.
type taskGroup struct {
	all      sync.WaitGroup
	mutex    sync.Mutex
	panicked any
}

func (c *taskGroup) do(work func()) {
	c.all.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				c.mutex.Lock()
				defer c.mutex.Unlock()
				c.panicked = fmt.Sprintf("%v, in:\n%s", p, debug.Stack())
			}
		}()
		work()
	})
}

// wait waits for all functions, and panics if one of them did.
func (c *taskGroup) wait() {
	c.all.Wait()
	if c.panicked != nil {
		panic(c.panicked)
	}
}
