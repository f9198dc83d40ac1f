package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// directory is a Store in a directory of a mounted volume. An object is a file, first written
// beside its place under a name that no key has, fsynced, and then linked to its own name, which
// fails where a file is. So a file with the name of an object is complete, whatever died when; a
// file of two writers is that of the first.
type directory struct {
	config Config
	root   *os.Root // no path leads out of it, by ".." or by a symbolic link
}

const (
	partialSuffix = ".partial" // with a dot in front: the file of an unfinished write
	// partialAge is how long the file of an unfinished write must not have changed before it is
	// removed. A write changes it all the time.
	partialAge = 24 * time.Hour
)

func openDirectory(c Config) (Store, error) {
	info, err := os.Stat(c.Directory.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, &StoreError{
			Reason: ReasonNoSuchBucket, Op: "open", Location: c.location(), Detail: "no directory is there",
			Advice: advice(c, ReasonNoSuchBucket), Err: err,
		}
	}
	root, err := os.OpenRoot(c.Directory.Path)
	if err != nil {
		return nil, err
	}
	return &directory{config: c, root: root}, nil
}

func (d *directory) Close() error { return d.root.Close() }

func (d *directory) Location(key string) string { return d.config.location() + key }

func (d *directory) failed(op, key string, err error) error {
	return storeError(d.config, op, d.Location(key), err)
}

func (d *directory) Create(ctx context.Context, key string, write func(io.Writer) error) error {
	if err := checkKey(d.config, "create", key); err != nil {
		return err
	}
	if _, err := d.root.Lstat(key); err == nil {
		return d.failed("create", key, fs.ErrExist)
	}
	if err := d.root.MkdirAll(path.Dir(key), 0o750); err != nil {
		return d.failed("create", key, err)
	}
	d.removeLeftovers(path.Dir(key), time.Now())
	partial := path.Join(path.Dir(key), "."+path.Base(key)+"."+nonce()+partialSuffix)
	if err := d.writeFile(ctx, partial, key, write); err != nil {
		_ = d.root.Remove(partial) // the error of the write says more
		return err
	}
	if err := d.publish(partial, key); err != nil {
		_ = d.root.Remove(partial) // the error of the link says more
		return d.failed("create", key, err)
	}
	return nil
}

// writeFile writes a file and fsyncs it. The error of write is returned as that, unless it comes
// from the file.
func (d *directory) writeFile(ctx context.Context, name, key string, write func(io.Writer) error) error {
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return d.failed("create", key, err)
	}
	to := bufio.NewWriterSize(f, block)
	w := &tracked{ctx: ctx, to: to}
	err = write(w)
	switch {
	case w.failed != nil:
		err = d.failed("create", key, w.failed)
	case err != nil:
		err = writeFailed(d.Location(key), err)
	default:
		err = errors.Join(ctx.Err(), to.Flush(), f.Sync())
		if err != nil {
			err = d.failed("create", key, err)
		}
	}
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = d.failed("create", key, closeErr)
	}
	return err
}

// publish gives a complete file its name, only where no file is, and makes the name durable.
func (d *directory) publish(partial, key string) error {
	err := d.root.Link(partial, key)
	switch {
	case err == nil:
		if err := d.root.Remove(partial); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrExist):
		return err
	case !linkUnsupported(err):
		return err
	default:
		if err := d.renameIfAbsent(partial, key); err != nil {
			return err
		}
	}
	for dir := path.Dir(key); ; dir = path.Dir(dir) { // those above too: MkdirAll may have made them
		if err := d.syncDirectory(dir); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}

// renameIfAbsent is for file systems without hard links, such as SMB.
func (d *directory) renameIfAbsent(partial, key string) error {
	parent, err := d.root.Open(path.Dir(key))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // nothing was written to it
	return renameNoReplace(parent, path.Base(partial), path.Base(key))
}

func (d *directory) syncDirectory(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written to it
	if err := f.Sync(); err != nil && !syncUnsupported(err) {
		return err
	}
	return nil
}

// removeLeftovers removes what writes that were killed have left in a directory. Where it cannot,
// they stay: no list shows them.
func (d *directory) removeLeftovers(dir string, now time.Time) {
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") || !strings.HasSuffix(entry.Name(), partialSuffix) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > partialAge {
			_ = d.root.Remove(path.Join(dir, entry.Name())) // the next write tries again
		}
	}
}

func (d *directory) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(d.config, "open", key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, d.failed("open", key, err)
	}
	f, err := d.root.Open(key)
	if err != nil {
		return nil, d.failed("open", key, err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // nothing was read
		return nil, d.failed("open", key, errors.Join(err, fs.ErrNotExist))
	}
	return &reading{from: f, failed: func(err error) error { return d.failed("read", key, err) }}, nil
}

func (d *directory) List(ctx context.Context, prefix string, each func(Object) error) error {
	if prefix != "" && !validKey(strings.TrimSuffix(prefix, "/")) {
		return checkKey(d.config, "list", prefix)
	}
	var objects []Object
	start := path.Dir(prefix + "x") // the directory that holds all keys with this prefix
	err := fs.WalkDir(d.root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && errors.Is(err, fs.ErrNotExist) && name != ".":
			return nil // deleted meanwhile, or no object has this prefix
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir() && name != "." && (!validKey(name) || name == lostAndFound):
			return fs.SkipDir
		case entry.IsDir() || !entry.Type().IsRegular() || !validKey(name) || !strings.HasPrefix(name, prefix):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		objects = append(objects, Object{Key: name, Size: info.Size(), Modified: info.ModTime()})
		return nil
	})
	if err != nil {
		return d.failed("list", prefix, err)
	}
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	for _, o := range objects {
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// lostAndFound is what file systems such as ext4 have at their top. Only root may read it.
const lostAndFound = "lost+found"

func (d *directory) Delete(ctx context.Context, key string) error {
	if err := checkKey(d.config, "delete", key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return d.failed("delete", key, err)
	}
	err := d.root.Remove(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.syncDirectory(path.Dir(key))
	}
	if err != nil {
		return d.failed("delete", key, err)
	}
	return nil
}

// writeFailed is the error of what an object was to be made of. It is not the store's.
func writeFailed(location string, err error) error {
	return fmt.Errorf("nothing was stored as %s: %w", location, err)
}
