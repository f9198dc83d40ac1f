package snapshot

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// A data directory is made by etcdutl, of an empty database. What that has written into it, of the
// members and of the log, is then written into the database of the snapshot, which takes the place
// of the empty one. Of the snapshot itself etcdutl would make a copy, hash that, and open it four
// times. TestJoined holds the result against that of etcdutl.

// What is in a stage until the database is complete. It is on the volume of the data directory, and
// is removed with the stage.
const (
	framed = "framed" // the data directory that etcdutl makes
	blank  = "blank.db"
	filled = "filled.db" // the database of the snapshot
)

// frame makes the directories of a member, with a database of its members that has no keys.
func (o RestoreOptions) frame(dataDir, walDir string) error {
	from := filepath.Join(dataDir, blank)
	db, err := bbolt.Open(from, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(schema.Key.Name())
		_, metaErr := tx.CreateBucket(schema.Meta.Name())
		return errors.Join(err, metaErr)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	// It has no context: etcd's own code cannot be interrupted.
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: from, SkipHashCheck: true, // an empty database that was written just now
		Name:          o.Name,
		OutputDataDir: filepath.Join(dataDir, framed), OutputWALDir: walDir,
		PeerURLs:       o.PeerURLs,
		InitialCluster: o.InitialCluster, InitialClusterToken: o.Token,
	})
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dataDir, framed, "member"), filepath.Join(dataDir, "member")); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(dataDir, framed)), os.Remove(from))
}

// fill has the database of the snapshot written, and reads it.
func (s *stage) fill(ctx context.Context, m Manifest, write func(io.Writer) error) (Description, error) {
	file := filepath.Join(s.dir, filled)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Description{}, err
	}
	to := bufio.NewWriterSize(f, block)
	err = write(to)
	if err == nil {
		err = to.Flush()
	}
	if err == nil {
		err = f.Truncate(m.Size - sha256.Size) // etcd's hash, which was compared, is no part of it
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return Description{}, err
	}
	d, err := describeDatabase(ctx, file)
	if err != nil {
		return Description{}, err
	}
	d.Size, d.SHA256 = m.Size, m.SHA256
	if err := d.differs(m); err != nil {
		return Description{}, err
	}
	return d, s.refuses(d)
}

// copyOf writes a plain file that was described, unless it is another one by now.
func copyOf(ctx context.Context, m Manifest, to io.Writer) error {
	f, err := os.Open(m.Name)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	stream := newDigest()
	if _, err := io.CopyBuffer(io.MultiWriter(stream, to), ctxReader{ctx, f}, make([]byte, block)); err != nil {
		return fmt.Errorf("copy snapshot %s: %w", m.Name, err)
	}
	if check, detail := stream.differs(m); check != "" {
		return &Damage{Name: m.Name, Check: check, Detail: detail}
	}
	return nil
}

// join writes into the database of the snapshot what the one that etcdutl has made says of the
// members, and puts it in its place. Nothing of it is on the disk when it returns.
func (o RestoreOptions) join(database, members string) error {
	from, err := bbolt.Open(members, 0o400, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := bbolt.Open(database, 0o600, &bbolt.Options{
		NoSync: true, Timeout: time.Second,
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, // as etcd has it
	})
	if err != nil {
		return err
	}
	err = from.View(func(of *bbolt.Tx) error {
		return to.Update(func(tx *bbolt.Tx) error { return o.carry(of, tx) })
	})
	if err := errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("write the members into the database: %w", err)
	}
	return os.Rename(database, members)
}

// carry writes into the database of the snapshot what a restore changes.
func (o RestoreOptions) carry(from, to *bbolt.Tx) error {
	for _, bucket := range []backend.Bucket{schema.Members, schema.MembersRemoved, schema.Cluster} {
		if _, err := to.CreateBucketIfNotExists(bucket.Name()); err != nil {
			return err
		}
	}
	for _, bucket := range []backend.Bucket{schema.Members, schema.MembersRemoved} {
		if err := replace(from.Bucket(bucket.Name()), to.Bucket(bucket.Name())); err != nil {
			return err
		}
	}
	keys, meta := to.Bucket(schema.Key.Name()), to.Bucket(schema.Meta.Name())
	for _, name := range [][]byte{schema.MetaConsistentIndexKeyName, schema.MetaTermKeyName} {
		if err := meta.Put(name, from.Bucket(schema.Meta.Name()).Get(name)); err != nil {
			return err
		}
	}
	if err := o.bumped(keys, meta); err != nil {
		return err
	}
	if auth := to.Bucket(schema.Auth.Name()); auth != nil && o.AuthOff {
		return auth.Put(schema.AuthEnabledKeyName, []byte{0})
	}
	return nil
}

// replace what a bucket has by what another one has.
func replace(from, to *bbolt.Bucket) error {
	c := to.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return from.ForEach(to.Put)
}

// bumped writes a revision that has no key, as etcdutl does, and marks all until then as compacted.
func (o RestoreOptions) bumped(keys, meta *bbolt.Bucket) error {
	bump := o.bump()
	if bump == 0 {
		return nil
	}
	var revision mvcc.Revision
	if last, _ := keys.Cursor().Last(); last != nil {
		revision.Main = mvcc.BytesToRev(last).Main
	}
	revision.Main += int64(bump)
	if err := keys.Put(mvcc.RevToBytes(revision, mvcc.NewRevBytes()), nil); err != nil {
		return err
	}
	return meta.Put(schema.ScheduledCompactKeyName, mvcc.RevToBytes(revision, mvcc.NewRevBytes()))
}

// databaseIn is the database in a data directory.
func databaseIn(dataDir string) string { return filepath.Join(dataDir, "member", "snap", "db") }
