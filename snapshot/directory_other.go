//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// renameNoReplace is for file systems without hard links, which only Linux is asked about.
func renameNoReplace(_ *os.File, from, to string) error {
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: errors.ErrUnsupported}
}

func linkUnsupported(error) bool { return false }

// syncUnsupported is true: systems other than Linux refuse in their own ways to fsync a directory.
func syncUnsupported(error) bool { return true }
