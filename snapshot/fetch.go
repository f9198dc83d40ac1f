package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// FetchOptions says how a stored snapshot is read.
type FetchOptions struct {
	Identities []age.Identity // read what is encrypted
	// Progress is called now and then, from one goroutine.
	Progress func(Progress)
}

// Fetch makes a plain file of a stored snapshot. Sizes and hashes of the object and of the stream
// in it are compared with the manifest, and etcd's hash with the stream. The file appears only when
// all are right.
func Fetch(ctx context.Context, store Store, name, file string, o FetchOptions) (Manifest, error) {
	manifest, err := ReadManifest(ctx, store, name)
	if err != nil {
		return Manifest{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return Manifest{}, fmt.Errorf("fetch snapshot %s: %w", name, err)
	}
	beside, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".part-*")
	if err != nil {
		return Manifest{}, fmt.Errorf("fetch snapshot %s: %w", name, err)
	}
	defer func() {
		_ = beside.Close()           // it was closed before, or is of no use
		_ = os.Remove(beside.Name()) // it has another name by now, or is of no use
	}()
	to := bufio.NewWriterSize(beside, block)
	if err := unpack(ctx, store, manifest, to, o); err != nil {
		return Manifest{}, err
	}
	if err := to.Flush(); err != nil {
		return Manifest{}, fmt.Errorf("fetch snapshot %s: %w", name, err)
	}
	if err := publish(beside, file); err != nil {
		return Manifest{}, fmt.Errorf("fetch snapshot %s: %w", name, err)
	}
	return manifest, nil
}

// publish gives a file its name, when all of it is on the disk.
func publish(beside *os.File, file string) error {
	if err := beside.Sync(); err != nil {
		return err
	}
	if err := beside.Close(); err != nil {
		return err
	}
	if err := os.Rename(beside.Name(), file); err != nil {
		return err
	}
	return syncFile(filepath.Dir(file))
}

// syncFile has a file, or the names in a directory, on the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return f.Sync()
}

// VerifyHash reads a stored snapshot to its end, and compares all that Fetch compares. It writes
// nothing. Of an encrypted one it compares the stored size and hash alone, unless it is given an
// identity.
func VerifyHash(ctx context.Context, store Store, name string, o FetchOptions) (Verification, error) {
	manifest, err := ReadManifest(ctx, store, name)
	if err != nil {
		return Verification{}, err
	}
	if manifest.Encrypted && len(o.Identities) == 0 {
		err = rehash(ctx, store, manifest, o)
	} else {
		err = unpack(ctx, store, manifest, io.Discard, o)
	}
	if err != nil {
		return Verification{}, err
	}
	return verified(manifest, ModeHash), nil
}

// object is a stored object that is being read: what has been read of it, and why no more could be.
type object struct {
	io.Reader
	err error
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		o.err = err
	}
	return n, err
}

// unpack writes the stream of a stored snapshot, and compares everything. What it has written
// before it fails is of no use.
func unpack(ctx context.Context, store Store, m Manifest, to io.Writer, o FetchOptions) error {
	opened, err := store.Open(ctx, m.Object)
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", m.Name, err)
	}
	defer opened.Close()
	read, stored, stream := &object{Reader: ctxReader{ctx, opened}}, newTally(), newDigest()
	raw := io.TeeReader(read, io.MultiWriter(stored, reporter{stored, m.StoredSize, o.Progress}))
	check, detail, err := decode(raw, m, o.Identities, io.MultiWriter(stream, to))
	if err != nil && !errors.Is(err, errOtherIdentity) { // of writing the file, or there is no identity
		return fmt.Errorf("fetch snapshot %s: %w", m.Name, err)
	}
	// Whatever could not be decoded: whether the object is the one that was stored says more.
	if read.err == nil {
		_, _ = io.Copy(io.Discard, raw) // read.err has its error
	}
	if read.err != nil {
		return fmt.Errorf("read snapshot %s from %s: %w", m.Name, store.Location(m.Object), read.err)
	}
	if err := stored.damage(m); err != nil {
		return err
	}
	if err != nil { // the stored snapshot is whole, and is encrypted to other recipients
		return fmt.Errorf("fetch snapshot %s: %w", m.Name, err)
	}
	if check == "" {
		check, detail = stream.differs(m)
	}
	if check != "" {
		return &Damage{Name: m.Name, Check: check, Detail: detail}
	}
	return nil
}

// decode decrypts and decompresses. What cannot be decoded is a check that fails; an error is of
// the writer, or of the identities.
func decode(from io.Reader, m Manifest, identities []age.Identity, to io.Writer) (Check, string, error) {
	if m.Encrypted {
		opened, err := decrypt(from, identities)
		if errors.Is(err, ErrIdentity) {
			return "", "", err
		}
		if err != nil {
			return CheckEncryption, err.Error(), nil
		}
		from = opened
	}
	unpacked, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return CheckCompression, err.Error(), nil
	}
	defer unpacked.Close()
	out := &target{Writer: to}
	n, err := io.CopyBuffer(out, io.LimitReader(unpacked, m.Size+1), make([]byte, block))
	switch {
	case out.err != nil:
		return "", "", out.err
	case err != nil:
		return CheckCompression, err.Error(), nil
	case n > m.Size:
		return CheckSize, fmt.Sprintf("the stream has more than %d bytes", m.Size), nil
	}
	return "", "", nil
}

// block is how much of a file is read or written at once. With the 32 KiB of io.Copy the system
// took three times as long for each MiB.
const block = 1 << 20

// maxWindow bounds the memory of decompression, in bytes. What Save writes needs 4 MiB.
const maxWindow = 32 << 20

// target remembers why it could not be written.
type target struct {
	io.Writer
	err error
}

func (t *target) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	t.err = err
	return n, err
}

// differs is in what the stream is not that of the manifest.
func (d *digest) differs(m Manifest) (Check, string) {
	if d.size != m.Size {
		return CheckSize, fmt.Sprintf("the stream has %d bytes, not %d", d.size, m.Size)
	}
	if detail := d.trailer(); detail != "" {
		return CheckTrailer, detail
	}
	if sum := d.sum(); sum != m.SHA256 {
		return CheckSHA256, fmt.Sprintf("it is %s, not %s", sum, m.SHA256)
	}
	return "", ""
}

// damage is in what the object is not that of the manifest.
func (t *tally) damage(m Manifest) error {
	if t.size != m.StoredSize {
		return &Damage{Name: m.Name, Check: CheckStoredSize, Detail: fmt.Sprintf("the object has %d bytes, not %d", t.size, m.StoredSize)}
	}
	if sum := t.sum(); sum != m.StoredSHA256 {
		return &Damage{Name: m.Name, Check: CheckStoredSHA256, Detail: fmt.Sprintf("it is %s, not %s", sum, m.StoredSHA256)}
	}
	return nil
}

// rehash compares the stored object alone.
func rehash(ctx context.Context, store Store, m Manifest, o FetchOptions) error {
	opened, err := store.Open(ctx, m.Object)
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", m.Name, err)
	}
	defer opened.Close()
	stored := newTally()
	_, err = io.Copy(io.MultiWriter(stored, reporter{stored, m.StoredSize, o.Progress}), ctxReader{ctx, opened})
	if err != nil {
		return fmt.Errorf("read snapshot %s from %s: %w", m.Name, store.Location(m.Object), err)
	}
	return stored.damage(m)
}

// reporter tells how much of an object has been read.
type reporter struct {
	read   *tally
	total  int64
	report func(Progress)
}

func (r reporter) Write(p []byte) (int, error) {
	if r.report != nil {
		r.report(Progress{Stage: "read", Done: r.read.size, Total: r.total})
	}
	return len(p), nil
}
