//go:build linux

package membership

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestScrapeGivesUp: on a node that answers nothing no attempt to connect outlives the look that
// has begun it by much. The kernel would go on for two minutes.
func TestScrapeGivesUp(t *testing.T) {
	t.Parallel()
	host, port := answersNothing(t)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := Scrape(ctx, host, port); err == nil {
			t.Error("void: it answers")
		}
		cancel()
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for late := time.After(2 * CallTimeout); ; {
		n := connecting(t, port)
		if n == 0 {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("waited %s for the end of %d attempts to connect", 2*CallTimeout, n)
		}
	}
}

// answersNothing is an address at which the kernel drops what connects: the queue is full.
func answersNothing(t *testing.T) (string, int) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), 0) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	for range 10 {
		c, err := (&net.Dialer{Timeout: 200 * time.Millisecond}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return at(t, listener)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue is never full")
	return "", 0
}

// connecting counts the connections to a port that are not answered yet.
func connecting(t *testing.T, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(table), fmt.Sprintf(":%04X 02 ", port))
}
