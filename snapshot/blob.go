package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"gocloud.dev/blob"
)

const (
	// partSize and partsAtOnce bound what an upload of unknown length keeps in memory. S3 allows
	// 10,000 parts: with 12 MiB each, an object may have 125 GB. Its library keeps partsAtOnce+1
	// parts and the first 16 MiB, 52 MiB in all; Azure's keeps partsAtOnce parts, and allows
	// 50,000; Google's keeps one, and its uploads have no parts to count.
	partSize    = 12 << 20
	partsAtOnce = 2

	// createdBy is the metadata of an object that says which call of Create made it.
	createdBy = "quorate-create"
)

// bucket is a Store in a bucket of an object store.
//
// Create is conditional (If-None-Match: *, or what the store has instead): of several at once
// exactly one succeeds. A store that ignores the condition is looked at before and after instead.
// There, an object is overwritten only by a Create that had begun before the object was complete;
// then the last one stays, and each Create that ends before that one is told of success.
type bucket struct {
	config Config
	prefix string
	blobs  *blob.Bucket
	close  func() error // of the client, where it has something to close
}

func newBucket(c Config, blobs *blob.Bucket, closeClient func() error) Store {
	return &bucket{config: c, prefix: c.keyPrefix(), blobs: blobs, close: closeClient}
}

func (b *bucket) Close() error {
	err := b.blobs.Close()
	if b.close != nil {
		err = errors.Join(err, b.close())
	}
	return err
}

func (b *bucket) Location(key string) string { return b.config.location() + key }

func (b *bucket) failed(op, key string, err error) error {
	return storeError(b.config, op, b.Location(key), err)
}

func (b *bucket) Create(ctx context.Context, key string, write func(io.Writer) error) error {
	if err := checkKey(b.config, "create", key); err != nil {
		return err
	}
	if err := b.checkAbsent(ctx, key); err != nil {
		return err
	}
	id := nonce()
	// Cancelling this context before the content ends is how a write is given up: nothing appears,
	// and parts that are there are removed.
	writing, giveUp := context.WithCancel(ctx)
	defer giveUp()
	content, to := io.Pipe()
	uploaded := make(chan error, 1)
	var tries tries
	go func() {
		// Not NewWriter: that of Azure panics where a write is refused at its end (gocloud.dev
		// v0.47.0).
		err := b.blobs.Upload(writing, b.prefix+key, tries.between(content), &blob.WriterOptions{
			BufferSize: partSize, MaxConcurrency: partsAtOnce, IfNotExist: true, BeforeWrite: tries.bound,
			ContentType: "application/octet-stream", Metadata: map[string]string{createdBy: id},
		})
		_ = content.CloseWithError(err) // it never fails
		uploaded <- err
	}()
	w := &tracked{ctx: ctx, to: to}
	if err := write(w); err != nil || w.failed != nil || ctx.Err() != nil {
		giveUp()
		_ = to.CloseWithError(context.Canceled) // it never fails
		<-uploaded                              //nolint:errcheck // what it met first is what w.failed is
		switch {
		case ctx.Err() != nil:
			return b.failed("create", key, ctx.Err())
		case w.failed != nil:
			return b.failed("create", key, w.failed)
		}
		return writeFailed(b.Location(key), err)
	}
	_ = to.Close() // it never fails
	return b.created(ctx, key, id, <-uploaded)
}

// checkAbsent is ErrExists where an object is. What it cannot find out is left to the condition of
// the write: credentials may not look, or the store says nothing (an answer to HEAD has no words).
func (b *bucket) checkAbsent(ctx context.Context, key string) error {
	_, err := b.blobs.Attributes(ctx, b.prefix+key)
	if err == nil {
		return &StoreError{Reason: ReasonAlreadyExists, Op: "create", Location: b.Location(key)}
	}
	switch reason, _ := diagnose(err); reason {
	case ReasonNotFound, ReasonAccessDenied, ReasonStoreFailed:
		if ctx.Err() == nil {
			return nil
		}
	default:
	}
	return b.failed("create", key, err)
}

// created looks at the object after its write. A write that the store refused may be there
// nonetheless: the answer to a first attempt was lost, and the second found the object of the
// first. A write that it accepted may not be there: another one came at the same time, to a store
// that ignores the condition.
func (b *bucket) created(ctx context.Context, key, id string, writeErr error) error {
	if writeErr != nil && ctx.Err() != nil {
		return b.failed("create", key, ctx.Err())
	}
	refused := ReasonAlreadyExists
	if writeErr != nil {
		refused, _ = diagnose(writeErr)
	}
	if refused != ReasonAlreadyExists && refused != ReasonBusy {
		return b.failed("create", key, writeErr)
	}
	found, err := b.blobs.Attributes(ctx, b.prefix+key)
	switch {
	case err == nil && found.Metadata[createdBy] == id:
		return nil
	case err == nil && (writeErr != nil || found.Metadata[createdBy] != ""):
		return &StoreError{Reason: ReasonAlreadyExists, Op: "create", Location: b.Location(key), Err: writeErr}
	case writeErr != nil:
		return b.failed("create", key, writeErr)
	}
	return nil // the store said that it is there, and cannot be asked more
}

func (b *bucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(b.config, "open", key); err != nil {
		return nil, err
	}
	ctx, patience := withPatience(ctx, stallTimeout) // a library may begin a read that breaks again and again
	r, err := b.blobs.NewReader(ctx, b.prefix+key, nil)
	if err != nil {
		patience.end()
		return nil, b.failed("open", key, err)
	}
	return &reading{from: &patiently{r, patience}, failed: func(err error) error { return b.failed("read", key, err) }}, nil
}

func (b *bucket) List(ctx context.Context, prefix string, each func(Object) error) error {
	if prefix != "" && !validKey(strings.TrimSuffix(prefix, "/")) {
		return checkKey(b.config, "list", prefix)
	}
	objects := b.blobs.List(&blob.ListOptions{Prefix: b.prefix + prefix})
	for {
		o, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return b.failed("list", prefix, err)
		}
		key := strings.TrimPrefix(o.Key, b.prefix)
		if o.IsDir || !validKey(key) {
			continue // such as the empty object "prefix/" that consoles make for a folder
		}
		if err := each(Object{Key: key, Size: o.Size, Modified: o.ModTime}); err != nil {
			return err
		}
	}
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := checkKey(b.config, "delete", key); err != nil {
		return err
	}
	err := b.blobs.Delete(ctx, b.prefix+key)
	if err == nil {
		return nil
	}
	if failed := b.failed("delete", key, err); !errors.Is(failed, ErrNotFound) {
		return failed
	}
	return nil
}

// nonce is a word that no other call has.
func nonce() string { return strings.ToLower(rand.Text()) }

// tracked is the writer of an object. It remembers that the store failed, whatever its caller makes
// of it.
type tracked struct {
	ctx    context.Context // of the one call of Create that it lives in
	to     io.Writer
	failed error
}

func (t *tracked) Write(p []byte) (int, error) {
	if t.failed == nil {
		t.failed = t.ctx.Err()
	}
	if t.failed != nil {
		return 0, t.failed
	}
	n, err := t.to.Write(p)
	t.failed = err
	return n, err
}

// reading is an object that is read. Its errors name the store.
type reading struct {
	from   io.ReadCloser
	failed func(error) error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.failed(err)
	}
	return n, err
}

func (r *reading) Close() error { return r.from.Close() }
