//go:build !linux

package hostlet

import "os/exec"

// dieWithParent has no counterpart here: only [Hostlet.Stop] ends the processes.
func dieWithParent(*exec.Cmd) {}
