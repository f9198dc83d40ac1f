package child

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// asParent makes this binary start two processes, and wait to be killed.
const asParent = "CHILD_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) == "" {
		os.Exit(m.Run())
	}
	sleep := func(program string) *exec.Cmd {
		cmd := exec.Command(program, "infinity")
		cmd.Stdout = os.Stdout
		return cmd
	}
	program, err := exec.LookPath("sleep")
	if err != nil {
		panic(err)
	}
	binary, err := filepath.EvalSymlinks(program)
	if err != nil {
		panic(err)
	}
	direct := sleep(program)
	if err := Start(direct); err != nil {
		panic(err)
	}
	was, through := program, (*exec.Cmd)(nil)
	err = Do(func() error {
		through = sleep(program)
		if err := through.Start(); err != nil {
			return err
		}
		for !runs(through, binary) {
			<-time.After(time.Millisecond) // there is no event; the test that reads the output bounds it
		}
		return nil
	}, &program)
	if err != nil || through.Path == was || program != was || !runs(direct, binary) {
		panic(fmt.Sprintf("started %s, left %s: %v", through.Path, program, err))
	}
	fmt.Println("started")
	_ = direct.Wait() // until this process is killed
}

// runs reports whether a process runs a program, and not this binary any more.
func runs(cmd *exec.Cmd, program string) bool {
	now, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
	return err == nil && now == program
}

// TestKilled: processes end with the one that has started them, also those that something else has
// started for it, and these run the program that was asked for under the process ID that it knows.
func TestKilled(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=yes", "TMPDIR="+t.TempDir())
	parent.Stdout, parent.Stderr = w, t.Output()
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const patience = time.Minute
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewReader(r)
	if started, err := printed.ReadString('\n'); err != nil || started != "started\n" {
		t.Fatalf("the parent says %q: %v", started, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	// The pipe ends when the last process that can write to it has.
	if _, err := io.Copy(io.Discard, printed); err != nil {
		t.Errorf("%s later a process still runs: %v", patience, err)
	}
}
