//go:build e2e

package footprint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// build builds the operator with the flags of its image (Makefile), and returns the path of the
// binary.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quorate")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "quorate.dev/cmd/quorate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, said)
	}
	return path
}

// process is a running operator.
type process struct {
	id    int
	ended <-chan struct{} // closed at its end
}

// startOperator starts the operator without leader election, which would need a namespace of its
// own. Of two values of one flag, the later one counts.
func startOperator(t *testing.T, binary, kubeconfig string, flags ...string) process {
	t.Helper()
	log := &bytes.Buffer{}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"operator", "--leader-elect=false", "--health-probe-bind-address=0"}, flags...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is interrupted, or its last lines tell
		close(ended)
	}()
	t.Cleanup(func() {
		<-ended
		if t.Failed() {
			t.Logf("the operator's last lines:\n%s", log.Bytes()[max(0, log.Len()-8<<10):])
		}
	})
	return process{cmd.Process.Pid, ended}
}

// cpu is the CPU time of the process so far.
func (p process) cpu(t *testing.T) time.Duration {
	t.Helper()
	const ticks = time.Second / 100 // USER_HZ, the same on every Linux that Go runs on
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.id))
	if err != nil {
		t.Fatal(err)
	}
	// The second field is the program's name in brackets; utime and stime are the 14th and 15th.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * ticks
	}
	return sum
}

// memory is the resident memory, in MiB.
func (p process) memory(t *testing.T) float64 {
	t.Helper()
	return p.mebibytes(t, "VmRSS")
}

// peak is the most resident memory that the process has had so far, in MiB.
func (p process) peak(t *testing.T) float64 {
	t.Helper()
	return p.mebibytes(t, "VmHWM")
}

func (p process) mebibytes(t *testing.T, of string) float64 {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatal("the operator has ended")
	default:
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.id))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), of+":")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
