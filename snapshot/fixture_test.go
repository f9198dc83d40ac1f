package snapshot

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// database is etcd's own store of keys, without an etcd.
type database struct {
	*testing.T
	backend backend.Backend
	mvcc.KV
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	b := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(t.TempDir(), "db"))
	schema.CreateMetaBucket(b.BatchTx())
	schema.NewMembershipBackend(zap.NewNop(), b).MustCreateBackendBuckets()
	d := &database{T: t, backend: b, KV: mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})}
	t.Cleanup(func() {
		_, _ = d.Close(), b.Close() // it goes with the test
	})
	return d
}

// write a history: keys with several values, deleted keys, and values of many sizes.
func (d *database) write(seed uint64, changes int) {
	d.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	for range changes {
		key := fmt.Appendf(nil, "key-%03d", random.IntN(60))
		if random.IntN(4) == 0 {
			d.DeleteRange(key, nil)
			continue
		}
		value := make([]byte, random.IntN(300))
		for n := range value {
			value[n] = byte(random.Uint32())
		}
		txn := d.Write(traceutil.TODO())
		txn.Put(key, value, lease.NoLease)
		if random.IntN(8) == 0 { // more of the same revision
			txn.Put(append(key, "-too"...), value, lease.NoLease)
		}
		txn.End()
	}
}

// compact the history up to a revision, and wait until that is done.
func (d *database) compact(revision int64) {
	d.Helper()
	done, err := d.Compact(traceutil.TODO(), revision)
	if err != nil {
		d.Fatal(err)
	}
	<-done
}

// compactHalf begins to compact the history, and stops when a few keys are removed.
func (d *database) compactHalf(revision int64) {
	d.Helper()
	_ = d.Close() // the same database is opened again
	d.KV = mvcc.NewStore(zap.NewNop(), d.backend, &lease.FakeLessor{}, mvcc.StoreConfig{CompactionBatchLimit: 100, CompactionSleepInterval: time.Hour})
	before := d.entries()
	if _, err := d.Compact(traceutil.TODO(), revision); err != nil {
		d.Fatal(err)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for d.entries() == before {
		select {
		case <-again.C:
		case <-d.Context().Done():
			d.Fatal("compaction removes nothing")
		}
	}
}

// entries is the number of all keys with all their revisions.
func (d *database) entries() int {
	count := 0
	tx := d.backend.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	if err := tx.UnsafeForEach(schema.Key, func(_, _ []byte) error { count++; return nil }); err != nil {
		d.Fatal(err)
	}
	return count
}

// stored sets a version of the storage, as etcd does from 3.6 on.
func (d *database) stored(minor int64) {
	d.Helper()
	tx := d.backend.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	tx.UnsafePut(schema.Meta, schema.MetaStorageVersionName, fmt.Appendf(nil, "3.%d.0", minor))
}

// bump the revision, as a restore does: by a revision without a key, up to which all is marked as
// compacted.
func (d *database) bump() {
	d.Helper()
	d.Commit()
	revision := d.Rev() + defaultBump
	tx := d.backend.BatchTx()
	tx.LockOutsideApply()
	tx.UnsafePut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: revision}, mvcc.NewRevBytes()), []byte{})
	tx.Unlock()
	mvcc.SetScheduledCompact(tx, revision)
}

// snapshot is the stream as etcd sends it.
func (d *database) snapshot() []byte {
	d.Helper()
	d.Commit()
	s := d.backend.Snapshot()
	defer func() { _ = s.Close() }() // it was only read
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		d.Fatal(err)
	}
	return sealed(b.Bytes())
}

// file is a plain file of a stream.
func file(t *testing.T, stream []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// keyspace is what etcd's own code says of all keys.
func (d *database) keyspace() keyspace {
	d.Helper()
	hash, revision, err := d.HashStorage().HashByRev(d.Rev())
	if err != nil {
		d.Fatal(err)
	}
	r, err := d.Range(d.Context(), []byte("\x00"), []byte{}, mvcc.RangeOptions{CountOnly: true})
	if err != nil {
		d.Fatal(err)
	}
	return keyspace{revision: revision, compacted: max(hash.CompactRevision, 0), hash: hash.Hash, live: int64(r.Count)}
}

// reopened is the same as an etcd has it that starts on a copy.
func (d *database) reopened() *database {
	d.Helper()
	stream := d.snapshot()
	b := backend.NewDefaultBackend(zap.NewNop(), file(d.T, stream[:len(stream)-sha256.Size]))
	again := &database{T: d.T, backend: b, KV: mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})}
	d.Cleanup(func() {
		_, _ = again.Close(), b.Close() // it goes with the test
	})
	return again
}

// sealed is a stream with the trailer that etcd would append.
func sealed(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}
