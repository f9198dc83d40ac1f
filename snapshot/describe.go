package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Description is what a plain file of a snapshot says of itself.
type Description struct {
	// Size and SHA256 are of the file, with etcd's own hash at its end, as in a Manifest.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Revision is that of the data, Compacted the one up to which its history is compacted, 0 where
	// it is not.
	Revision  int64 `json:"revision"`
	Compacted int64 `json:"compacted,omitempty"`
	// TotalKeys is the number of all keys with all their revisions.
	TotalKeys int64 `json:"totalKeys"`
	// StorageVersion is the minor that can read it, such as 3.6.0. Etcd 3.5 writes none.
	StorageVersion string `json:"storageVersion,omitempty"`
}

// Describe reads a plain file of a snapshot (NAME.db, or what "etcdctl snapshot save" wrote) from
// its beginning to its end: etcd's hash, and every bucket and key of the database. An error that
// wraps ErrDamaged says what is wrong with it.
func Describe(ctx context.Context, file string) (Description, error) {
	var stream Description
	if err := stream.digest(ctx, file); err != nil {
		return Description{}, err
	}
	d, err := describeDatabase(ctx, file)
	if err != nil {
		return Description{}, err
	}
	d.Size, d.SHA256 = stream.Size, stream.SHA256
	return d, nil
}

// describeDatabase reads the database in a file, and neither its size nor its hash.
func describeDatabase(ctx context.Context, file string) (Description, error) {
	var d Description
	err := viewDatabase(ctx, file, func(tx *bbolt.Tx) error { return d.read(ctx, tx) })
	return d, err
}

// digest compares the trailer.
func (d *Description) digest(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	stream := newDigest()
	if _, err := io.Copy(stream, ctxReader{ctx, f}); err != nil {
		return fmt.Errorf("read snapshot %s: %w", file, err)
	}
	if detail := stream.trailer(); detail != "" {
		return &Damage{Name: file, Check: CheckTrailer, Detail: detail}
	}
	d.Size, d.SHA256 = stream.size, stream.sum()
	return nil
}

// ctxReader ends with its context.
type ctxReader struct {
	ctx context.Context
	io.Reader
}

func (r ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// viewDatabase opens the database in a file, whose trailer has been compared. bbolt maps the file
// into memory: its pages are the system's, which takes them back when it needs them.
func viewDatabase(ctx context.Context, file string, view func(*bbolt.Tx) error) (err error) {
	defer func() { // bbolt panics where a page is not what it should be
		if r := recover(); r != nil {
			err = &Damage{Name: file, Check: CheckDatabase, Detail: fmt.Sprint(r)}
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return &Damage{Name: file, Check: CheckDatabase, Detail: err.Error()}
	}
	defer func() { _ = db.Close() }() // nothing was written
	err = db.View(view)
	if err != nil && ctx.Err() == nil {
		return &Damage{Name: file, Check: CheckDatabase, Detail: err.Error()}
	}
	return err
}

// read every bucket and key. They are in order in a database that is whole.
func (d *Description) read(ctx context.Context, tx *bbolt.Tx) error {
	keys, meta := tx.Bucket(schema.Key.Name()), tx.Bucket(schema.Meta.Name())
	if keys == nil || meta == nil {
		return errors.New("it has none of the buckets of etcd")
	}
	if v := schema.ReadStorageVersionFromSnapshot(tx); v != nil {
		d.StorageVersion = v.String()
	}
	d.Compacted = max(revisionIn(meta, schema.ScheduledCompactKeyName), revisionIn(meta, schema.FinishedCompactKeyName))
	d.Revision = max(d.Compacted, 1) // etcd begins with 1, and what was compacted may have been the last
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		count, last, err := inOrder(ctx, b)
		if err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
		if bytes.Equal(name, schema.Key.Name()) && count > 0 {
			d.TotalKeys, d.Revision = count, max(d.Revision, mvcc.BytesToRev(last).Main)
		}
		return nil
	})
}

// inOrder reads a bucket to its end, and returns the number of its keys and the last of them.
func inOrder(ctx context.Context, b *bbolt.Bucket) (int64, []byte, error) {
	var count int64
	var last []byte
	err := b.ForEach(func(k, _ []byte) error {
		if count > 0 && bytes.Compare(last, k) >= 0 {
			return errors.New("its keys are not in order")
		}
		last = k
		count++
		return ctx.Err()
	})
	return count, last, err
}

// revisionIn is a revision that etcd keeps under a name, and 0 where it keeps none.
func revisionIn(meta *bbolt.Bucket, name []byte) int64 {
	if v := meta.Get(name); v != nil {
		return mvcc.BytesToRev(v).Main
	}
	return 0
}
