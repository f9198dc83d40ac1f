//go:build env

package hostlet

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asParent makes this binary start a process of its own and wait to be killed.
const asParent = "HOSTLET_TEST_PARENT"

func beParent() int {
	cmd := exec.Command("sleep", "infinity")
	cmd.Stdout = os.Stdout
	p, err := startProcess(cmd)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.WriteString("started\n"); err != nil {
		panic(err)
	}
	awaitEnd(p.done, p.cmd.String())
	return 1
}

// A test binary that is killed cleans up nothing.
func TestProcessesDieWithTheirParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a process to its parent's life")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=yes")
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	started := make([]byte, len("started\n"))
	if _, err := io.ReadFull(r, started); err != nil || !strings.HasPrefix(string(started), "started") {
		t.Fatalf("parent says %q: %v", started, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	// The pipe ends when the last process that can write to it has.
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
}
