package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// stage is the directory beside a data directory, in which that is made. Its parts are renamed when
// they are complete: the log first, the data directory at the end. A stage that is complete is
// finished by the next restore of the same.
type stage struct {
	RestoreOptions
	dir  string   // becomes DataDir
	wal  string   // becomes WALDir, where there is one
	lock *os.File // of dir: one restore at a time
}

// origin is what a directory was made of. It is written when the rest of the directory is complete.
type origin struct {
	SHA256 string `json:"sha256"`
	Member string `json:"member"`
	Token  string `json:"token"`
}

// originFile is where it is within a data directory: below what etcd looks at.
var originFile = filepath.Join("member", "restored.json")

const stageSuffix = ".restoring"

// stage takes the stage of a restore, and holds it until release.
func (o RestoreOptions) stage() (*stage, error) {
	s := &stage{RestoreOptions: o, dir: filepath.Clean(o.DataDir) + stageSuffix}
	if o.WALDir != "" {
		s.wal = filepath.Clean(o.WALDir) + stageSuffix
	}
	for {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, fmt.Errorf("make room beside the data directory: %w", err)
		}
		lock, err := os.Open(s.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another restore has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("make room beside the data directory: %w", err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close() // nothing was written
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("another restore into %s is running: %s is locked", o.DataDir, s.dir)
			}
			return nil, fmt.Errorf("lock %s: %w", s.dir, err)
		}
		if isAt(lock, s.dir) {
			s.lock = lock
			return s, nil
		}
		_ = lock.Close() // it was renamed meanwhile
	}
}

// isAt tells whether an open directory is the one at a path.
func isAt(open *os.File, path string) bool {
	a, errA := open.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func (s *stage) release() { _ = s.lock.Close() } // and so unlocks

// restore makes the directories, unless that was done.
func (s *stage) restore(ctx context.Context, m Manifest, write func(io.Writer) error) error {
	want := origin{SHA256: cmp.Or(s.Origin, m.SHA256), Member: s.Name, Token: s.Token}
	if s.Again && readOrigin(s.DataDir) == want {
		return s.clear()
	}
	if err := isFree(s.DataDir); err != nil {
		return errors.Join(err, s.clear())
	}
	if readOrigin(s.dir) != want {
		if err := s.make(ctx, m, write, want); err != nil {
			return errors.Join(err, s.clear())
		}
	}
	return s.publish()
}

// isFree tells that a directory may be taken: it is not there, or empty.
func isFree(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty (it has %s): give another directory, or remove what is of no use", dir, entries[0].Name())
	}
	return nil
}

func (s *stage) make(ctx context.Context, m Manifest, write func(io.Writer) error, o origin) error {
	if s.wal != "" {
		if err := isFree(s.WALDir); err != nil {
			return err
		}
		if err := os.RemoveAll(s.wal); err != nil {
			return err
		}
	}
	if err := empty(s.dir); err != nil {
		return err
	}
	d, err := s.fill(ctx, m, write)
	if err != nil {
		return err
	}
	if err := s.frame(s.dir, s.wal); err != nil {
		return err
	}
	if err := s.join(filepath.Join(s.dir, filled), databaseIn(s.dir)); err != nil {
		return err
	}
	if err := s.check(ctx, s.dir, d); err != nil {
		return err
	}
	for _, dir := range []string{s.dir, s.wal} {
		if dir == "" {
			continue
		}
		if err := syncAll(dir); err != nil {
			return fmt.Errorf("write to the disk: %w", err)
		}
	}
	return writeOrigin(s.dir, o)
}

// empty removes what is in a directory, but not the directory: it is locked.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the stage: what is half made takes room, and is of no use.
func (s *stage) clear() error {
	if s.wal != "" {
		if err := os.RemoveAll(s.wal); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.dir)
}

// publish renames what is complete.
func (s *stage) publish() error {
	if s.wal != "" {
		err := os.Rename(s.wal, s.WALDir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // then it was renamed before the restore was interrupted
			return err
		}
		if err := syncFile(filepath.Dir(filepath.Clean(s.WALDir))); err != nil {
			return err
		}
	}
	if err := os.Rename(s.dir, s.DataDir); err != nil {
		return err
	}
	return syncFile(filepath.Dir(filepath.Clean(s.DataDir)))
}

// readOrigin is zero where there is none that can be read.
func readOrigin(dataDir string) origin {
	text, err := os.ReadFile(filepath.Join(dataDir, originFile))
	if err != nil {
		return origin{}
	}
	var o origin
	if json.Unmarshal(text, &o) != nil {
		return origin{}
	}
	return o
}

// writeOrigin writes it whole, or not at all.
func writeOrigin(dataDir string, o origin) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	file := filepath.Join(dataDir, originFile)
	beside, err := os.CreateTemp(filepath.Dir(file), ".restored-*")
	if err != nil {
		return err
	}
	defer func() { _ = beside.Close() }() // it was closed before, or is of no use
	if _, err := beside.Write(append(text, '\n')); err != nil {
		return err
	}
	return publish(beside, file)
}
