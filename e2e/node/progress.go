package node

import (
	"fmt"
	"os"
	"time"
)

var started = time.Now()

// say tells the person who waits what is being done and why, with the time since the start.
// It goes to standard error: standard output belongs to results.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0fs] %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}
