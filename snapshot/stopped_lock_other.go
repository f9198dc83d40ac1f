//go:build !linux

package snapshot

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockDatabase takes a lock that many readers may have, and no etcd beside them.
func lockDatabase(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrInUse
	}
	return fmt.Errorf("lock it, to know that no etcd uses it: %w", err)
}

// lockLog does the same in the log.
func lockLog(file *os.File) error { return lockDatabase(file) }
