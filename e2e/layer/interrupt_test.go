package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestInterrupted: an interrupt reaches what the command has started, which has to remove its clusters and processes.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ready, heard := filepath.Join(dir, "ready"), filepath.Join(dir, "heard")
	for _, pipe := range []string{ready, heard} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	child := "trap 'echo > " + heard + "; exit 1' INT; echo > " + ready + "; while :; do sleep 0.01; done"
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		var l layer
		ended <- l.execute(ctx, []string{"sh", "-c", `sh -c "$0"; exit 1`, child})
	}()
	await(t, "the child of the command to be ready", ready)
	interrupt()
	await(t, "the child of the command to hear of the interrupt", heard)
	if err := <-ended; err == nil {
		t.Error("the command was interrupted, and its layer passes")
	}
}

// await waits until a pipe is written to.
func await(t *testing.T, what, pipe string) {
	t.Helper()
	opened := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe) // until the other end opens it, too
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			t.Fatalf("wait for %s: %v", what, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("waited 30 s for %s", what)
	}
}
