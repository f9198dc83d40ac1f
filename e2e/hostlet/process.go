package hostlet

import (
	"os"
	"os/exec"
	"syscall"

	"quorate.dev/e2e/child"
)

// process is one run of a container.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := child.Start(cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // its error repeats what ProcessState says
		close(p.done)
	}()
	return p, nil
}

// signal the process. One that has just ended needs no signal any more, so
// that error is no one's business.
func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }

// kill the process and wait for its end, stopped or not.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	awaitEnd(p.done, p.cmd.String()+", which was killed")
}

// exitCode as container runtimes report it: 128 and the signal for a process
// that a signal ended. Only valid once done is closed.
func (p *process) exitCode() int32 {
	state, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && state.Signaled() {
		return 128 + int32(state.Signal())
	}
	return int32(p.cmd.ProcessState.ExitCode())
}
