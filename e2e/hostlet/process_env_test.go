//go:build env

package hostlet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"quorate.dev/e2e/node"
)

// asParent makes this binary start an API server and an etcd in the directory that it names, and
// wait to be killed.
const asParent = "HOSTLET_TEST_PARENT"

// allStarted is what it prints then.
const allStarted = "all processes have started"

func beParent(dir string) int {
	ctx := context.Background() //nolint:forbidigo // TestMain has the context of no test
	if _, err := StartEnv(ctx); err != nil {
		panic(err)
	}
	etcd, err := node.Etcd(ctx, node.Etcd37)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(filepath.Join(etcd, "etcd"), "--data-dir=data", "--listen-client-urls=unix://clients", "--listen-peer-urls=unix://peers")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	p, err := startProcess(cmd)
	if err != nil {
		panic(err)
	}
	fmt.Println("\n" + allStarted)
	awaitEnd(p.done, p.cmd.String())
	return 1
}

// TestProcessesDieWithTheirParent: a test binary that is killed cleans up nothing. Its API server,
// the etcd of that, and the etcd of a Pod are killed by the kernel.
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
	parent.Env = append(os.Environ(), asParent+"="+t.TempDir(), "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true", "TMPDIR="+t.TempDir())
	parent.Stdout, parent.Stderr = w, w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	printed, said := bufio.NewReader(r), &strings.Builder{}
	for !strings.HasSuffix(said.String(), allStarted+"\n") {
		line, err := printed.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("the parent has ended before all had started: %v\n%s", err, said)
		}
	}
	if !strings.Contains(said.String(), "Serving securely") {
		t.Errorf("the output of the API server does not come here, so its end would not be seen:\n%s", said)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	// The pipe ends when the last process that can write to it has.
	const soon = 10 * time.Second
	if err := r.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, printed); err != nil {
		t.Errorf("%s after its parent was killed a process that it has started still runs: %v", soon, err)
	}
}
