// Command pause is the first process of every Pod on a node image that is built from source: it
// keeps the Pod's namespaces, and it waits to be told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Where containers share a process namespace, orphans become children of this process: with
	// the signal ignored, the kernel reaps them.
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
