// Command demo shows Quorate to a person: it makes a kind cluster, installs the operator, applies a
// sample EtcdCluster and uses the etcd that comes of it. Each run goes on from what the last one
// left; --clean removes it.
//
// What changes the cluster goes through kubectl, and is printed as a user would type it. Read
// demo.go for the story.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"quorate.dev/e2e/node"
)

func main() {
	clean := flag.Bool("clean", false, "remove all that the demo made")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	ctrl.SetLogger(logr.Discard())
	if err := do(ctx, *clean); err != nil {
		os.Exit(explain(ctx, err))
	}
}

func do(ctx context.Context, clean bool) error {
	if _, err := os.Stat(kindConfig); err != nil {
		return errors.New("run it at the root of Quorate's sources, best as: make demo")
	}
	if clean {
		return remove(ctx)
	}
	if err := node.AskHost(ctx, node.NeedCluster); err != nil {
		return err
	}
	return run(ctx)
}

// explain says what a person can do about an error, and returns the exit code.
func explain(ctx context.Context, err error) int {
	const interrupted = 130 // as shells report SIGINT
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\nInterrupted. What was made so far stays: make demo goes on from it, make demo-clean removes it.")
		return interrupted
	}
	fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
	fmt.Fprintln(os.Stderr, "\nmake demo tries again and goes on from what is there; make demo-clean removes it.")
	return 1
}
