package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// logRoom is what etcd allocates in advance for its log when it starts: two files of 64 MB.
const logRoom = 128 << 20

// Copy copies the data directory to another, which must not be there, or be empty, and makes all
// entries of the copied log count as committed. The log is within the copy, wherever it was before.
//
// An etcd whose version is not refused (Refuses), started on the copy with --force-new-cluster
// where no other machine can reach it, serves every write that the member can know of. The copy is
// for one snapshot: no member may go on with it. What is returned is the state as it was found.
func (m StoppedMember) Copy(ctx context.Context, dir string, progress func(Progress)) (StoppedState, error) {
	files, err := m.open()
	if err != nil {
		return StoppedState{}, err
	}
	defer files.close()
	state, err := files.read(ctx)
	if err != nil {
		return StoppedState{}, err
	}
	if state.log.removed {
		return StoppedState{}, fmt.Errorf("member %s was removed from its cluster, by an entry of its own log: what was written later is in the data of the other members", state.MemberID)
	}
	if err := isFree(dir); err != nil {
		return StoppedState{}, err
	}
	if err := files.copyTo(ctx, dir, state.Size, progress); err != nil {
		return StoppedState{}, fmt.Errorf("copy data directory %s: %w", m.DataDir, err)
	}
	return state, state.commitAll(filepath.Join(dir, "member", "wal"))
}

func (f *stoppedFiles) copyTo(ctx context.Context, dir string, size int64, progress func(Progress)) error {
	snap, wal := filepath.Join(dir, "member", "snap"), filepath.Join(dir, "member", "wal")
	for _, d := range []string{snap, wal} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := roomFor(dir, size+logRoom); err != nil {
		return err
	}
	c := &copying{done: progress, total: size}
	for _, path := range append([]string{f.database}, f.snap...) {
		if err := c.file(ctx, path, snap); err != nil {
			return err
		}
	}
	for _, path := range f.wal {
		if err := c.file(ctx, path, wal); err != nil {
			return err
		}
	}
	return nil
}

// roomFor finds out before, and not after hours, that a copy does not fit.
func roomFor(dir string, want int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("ask how much room there is in %s: %w", dir, err)
	}
	if has := int64(s.Bavail) * int64(s.Bsize); has < want {
		return fmt.Errorf("%w: %d bytes are needed in %s, and %d are free", ErrNoRoom, want, dir, has)
	}
	return nil
}

// ErrNoRoom is the error of a copy that does not fit where it is to be made.
var ErrNoRoom = errors.New("no room for the copy")

// copying is one copy of several files.
type copying struct {
	done          func(Progress)
	copied, total int64
}

// copyChunk is how much is copied between two looks at the context.
const copyChunk = 64 << 20

func (c *copying) file(ctx context.Context, path, into string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := os.OpenFile(filepath.Join(into, filepath.Base(path)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(to, from, copyChunk) // the system copies from file to file
		c.copied += n
		if c.done != nil {
			c.done(Progress{Stage: "copying the data directory", Done: c.copied, Total: c.total})
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
