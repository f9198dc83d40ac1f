package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// cacheRoot is where everything that was built is kept: $QUORATE_CACHE, or the user's cache
// directory.
func cacheRoot() (string, error) {
	if dir := os.Getenv("QUORATE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set QUORATE_CACHE to choose one): %w", err)
	}
	return filepath.Join(dir, "quorate"), nil
}

// cached returns the directory of this name in the cache. When there is none, fill gets an empty
// directory that becomes it in one rename: whatever interrupts fill, a directory that has its final
// name is complete. Callers in other processes wait for the one that builds.
func cached(ctx context.Context, name string, fill func(dir string) error) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	final := filepath.Join(root, name)
	if exists(final) {
		return final, nil
	}
	unlock, err := lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(final) {
		return final, nil
	}
	// The lock is ours, so what a partial directory holds was left by an interrupted run.
	partial := final + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", fmt.Errorf("remove what an interrupted run left: %w", err)
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return "", fmt.Errorf("create %s: %w", partial, err)
	}
	if err := fill(partial); err != nil {
		return "", err
	}
	if err := os.Rename(partial, final); err != nil {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	return final, nil
}

// lock takes the lock of this name for the calling process and its like, and returns how to give it
// back. The kernel drops the lock of a process that dies.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	root, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	return lockIn(ctx, root, name)
}

func lockIn(ctx context.Context, root, name string) (unlock func(), err error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("create the cache: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(root, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w", name, err)
	}
	release := func() { _ = f.Close() } // closing drops the lock; there is nothing else to lose
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return release, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		release()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	say("waiting for another process that works on %s", name)
	taken := make(chan struct{})
	var flockErr error // read after taken is closed
	go func() {
		flockErr = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		close(taken)
	}()
	select {
	case <-taken:
		if flockErr != nil {
			release()
			return nil, fmt.Errorf("lock %s: %w", name, flockErr)
		}
		return release, nil
	case <-ctx.Done():
		// The blocked call cannot be interrupted: let it finish, then give up what it took.
		go func() { <-taken; release() }()
		return nil, fmt.Errorf("lock %s: %w", name, ctx.Err())
	}
}

// fingerprint is a short hash of everything that decides what a build gives.
func fingerprint(inputs any) string {
	raw, err := json.Marshal(inputs)
	if err != nil {
		panic(fmt.Sprintf("a recipe is plain data: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:10]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// writeNew writes a file whose directories may not exist yet.
func writeNew(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, mode)
}
