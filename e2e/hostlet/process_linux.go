package hostlet

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when the test binary ends, also
// when that is by a panic, a timeout or a signal and nothing is cleaned up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
