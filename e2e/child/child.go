// Package child starts the processes of tests: API servers and etcds. On Linux the kernel ends them
// with the test binary, however that ends: by a time-out, a panic or a signal it cleans up nothing.
// Elsewhere they go on then.
package child

import (
	"fmt"
	"os/exec"
	"runtime"
	"sync"
)

// Start starts a command as its own Start does.
func Start(cmd *exec.Cmd) error {
	dieWithParent(cmd)
	started := make(chan error)
	starts() <- func() { started <- cmd.Start() }
	return <-started
}

// starts takes what is to be run on one thread, which lives as long as the test binary. The kernel
// ties a child to the thread that has made it, not to the process.
var starts = sync.OnceValue(func() chan<- func() {
	all := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range all {
			start()
		}
	}()
	return all
})

// Do runs what starts programs by itself, such as envtest, from these paths: their processes end
// with the test binary, as long as the same goroutine starts them. It takes a thread for as long as
// the test binary lives. The paths are changed until start returns, which it does when the programs
// run.
func Do(start func() error, programs ...*string) error {
	for _, program := range programs {
		instead, remove, err := inPlaceOf(*program)
		if err != nil {
			return fmt.Errorf("start %s: %w", *program, err)
		}
		defer func(was string) {
			*program = was
			remove()
		}(*program)
		*program = instead
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- start()
		select {} // for the thread to stay
	}()
	return <-done
}
