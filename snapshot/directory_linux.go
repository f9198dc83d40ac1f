package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace renames a file within a directory, in one step that fails where a file of the new
// name is.
func renameNoReplace(dir *os.File, from, to string) error {
	fd := int(dir.Fd())
	if err := unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE); err != nil {
		return &os.LinkError{Op: "renameat2", Old: from, New: to, Err: err}
	}
	return nil
}

// linkUnsupported tells whether the file system has no hard links.
func linkUnsupported(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK, unix.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// syncUnsupported tells whether the file system cannot fsync a directory. One that cannot makes
// names durable by itself.
func syncUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EBADF)
}

// toDisk begins to write a file to the disk from before until the end, and waits for what was begun
// from first until before. It is no fsync. What the disk could not write is an error; a file system
// that cannot do it writes when it likes.
func toDisk(f *os.File, first, before, end int64) error {
	fd := int(f.Fd())
	err := unix.SyncFileRange(fd, before, end-before, unix.SYNC_FILE_RANGE_WRITE)
	if err == nil && before > first {
		err = unix.SyncFileRange(fd, first, before-first, unix.SYNC_FILE_RANGE_WAIT_BEFORE)
	}
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &os.PathError{Op: "sync_file_range", Path: f.Name(), Err: err}
	}
	return nil
}
