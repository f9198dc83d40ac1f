package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent has the kernel kill the process of a command when the thread ends that starts it.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// What envtest starts is a path with arguments, and nothing else can be said of the process. So the
// path leads to this very binary, in a directory whose name says so. It has the kernel kill it with
// its parent, and becomes the program, as which it keeps that and its process ID.
const (
	dirPrefix     = "child-of-" // and the process ID of the parent
	programSuffix = ".program"
)

// inPlaceOf returns the path to start in the place of a program's. remove it when no process is to
// be started from it any more; those that run do not need it.
func inPlaceOf(path string) (program string, remove func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find the own binary: %w", err)
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // links, in the directory for temporary files
	program = filepath.Join(dir, filepath.Base(path))
	for link, target := range map[string]string{program: self, program + programSuffix: path} {
		if err := os.Symlink(target, link); err != nil {
			remove()
			return "", nil, err
		}
	}
	return program, remove, nil
}

func init() {
	if err := become(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
}

// become makes this process the program for which it was started from a path of inPlaceOf. It
// returns where it was started from another one, or with an error.
func become() error {
	of, ours := strings.CutPrefix(filepath.Base(filepath.Dir(os.Args[0])), dirPrefix)
	if !ours {
		return nil
	}
	of, _, _ = strings.Cut(of, "-")
	parent, err := strconv.Atoi(of)
	if err != nil {
		return err
	}
	program, err := os.Readlink(os.Args[0] + programSuffix)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the kernel keeps this for each thread
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return fmt.Errorf("tie the process to its parent: %w", errno)
	}
	if now := os.Getppid(); now != parent { // it ended before that
		return fmt.Errorf("process %d, which started this one, has ended: %d is its parent now", parent, now)
	}
	return fmt.Errorf("become %s: %w", program, syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ()))
}
