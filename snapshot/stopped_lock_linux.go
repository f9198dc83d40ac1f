package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDatabase takes a lock that many readers may have, and no etcd beside them.
func lockDatabase(file *os.File) error {
	return inUse(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB))
}

// lockLog does the same in the log, where etcd has locks of another kind on Linux.
func lockLog(file *os.File) error {
	return inUse(unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: int16(io.SeekStart)}))
}

func inUse(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EACCES):
		return ErrInUse
	}
	return fmt.Errorf("lock it, to know that no etcd uses it: %w", err)
}
