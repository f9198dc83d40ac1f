package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// TestClearUnvoted: a data directory goes only where its log shows that etcd has promised nothing,
// and its database that it holds nothing.
func TestClearUnvoted(t *testing.T) {
	t.Parallel()
	const first = "0000000000000000-0000000000000000.wal"
	type dir struct {
		*testing.T
		snap, wal string
	}
	log := func(write func(l *stoppedLog)) func(d dir) {
		return func(d dir) {
			d.Helper()
			database := newBackend(d.T, filepath.Join(d.snap, "db"))
			if err := database.Close(); err != nil {
				d.Fatal(err)
			}
			l := newStoppedLog(d.T, d.wal)
			write(l)
			if err := l.Close(); err != nil {
				d.Fatal(err)
			}
		}
	}
	nothing := func(*stoppedLog) {}
	filled := func(bucket, key, value []byte) func(d dir) {
		return func(d dir) {
			d.Helper()
			log(nothing)(d)
			db, err := bbolt.Open(filepath.Join(d.snap, "db"), 0o600, nil)
			if err != nil {
				d.Fatal(err)
			}
			err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) })
			if err := errors.Join(err, db.Close()); err != nil {
				d.Fatal(err)
			}
		}
	}
	type left struct {
		Cleared, Directory bool
		Err                error
	}
	cases := map[string]struct {
		reason string
		make   func(d dir)
		want   left
	}{
		"Absent": {reason: "there is nothing", make: func(d dir) {
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(d.snap))); err != nil {
				d.Fatal(err)
			}
		}},
		"Created": {reason: "etcd has ended before it wrote a state", make: log(nothing), want: left{Cleared: true}},
		"Entries": {reason: "it has written its first members, and not that they are committed", make: log(func(l *stoppedLog) { l.change(1, raftpb.ConfChangeAddNode, stoppedID) }), want: left{Cleared: true}},
		"Begun":   {reason: "it knows its first members", make: log(func(l *stoppedLog) { l.save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}, nil) }), want: left{Directory: true}},
		"Voted":   {reason: "it has given another one its vote", make: log(func(l *stoppedLog) { l.save(&raftpb.HardState{Term: new(uint64(2)), Vote: new(uint64(7))}, nil) }), want: left{Directory: true}},
		"Served":  {reason: "it has data", make: log(func(l *stoppedLog) { l.entries(2, 1, 5, 5) }), want: left{Directory: true}},
		"Received": {
			reason: "it was sent all data as a snapshot",
			make:   log(func(l *stoppedLog) { l.snapshotAt(2, 10) }), want: left{Directory: true},
		},
		"Torn": {
			reason: "half a record was written of what it has promised, or not",
			make:   log(func(l *stoppedLog) { l.tear() }), want: left{Directory: true},
		},
		"Damaged": {
			reason: "what is written there cannot be read",
			make: func(d dir) {
				log(nothing)(d)
				writeTestFile(d.T, filepath.Join(d.wal, first), "what is no log of etcd")
			}, want: left{Directory: true},
		},
		"Purged": {
			reason: "etcd has removed the beginning of the log, which it does when it has much data",
			make: func(d dir) {
				log(nothing)(d)
				if err := os.Rename(filepath.Join(d.wal, first), filepath.Join(d.wal, "0000000000000001-0000000000000100.wal")); err != nil {
					d.Fatal(err)
				}
			}, want: left{Directory: true},
		},
		"Snapshot": {
			reason: "etcd has made a snapshot, or was sent one",
			make: func(d dir) {
				log(nothing)(d)
				writeTestFile(d.T, filepath.Join(d.snap, "0000000000000002-0000000000000064.snap"), "")
			}, want: left{Directory: true},
		},
		"Keys": {
			reason: "the log was lost, and a new one begun beside what clients have written",
			make:   filled(schema.Key.Name(), []byte("key"), []byte("value")), want: left{Directory: true},
		},
		"Applied": {
			reason: "the same where clients have removed all keys",
			make:   filled(schema.Meta.Name(), schema.MetaConsistentIndexKeyName, []byte{0, 0, 0, 0, 0, 0, 1, 0}), want: left{Directory: true},
		},
		"Unreadable": {
			reason: "what is in the database cannot be read",
			make: func(d dir) {
				log(nothing)(d)
				writeTestFile(d.T, filepath.Join(d.snap, "db"), "what is no database")
			}, want: left{Directory: true},
		},
		"Restored": {
			reason: "its data was made of a snapshot, and no etcd has run on it yet",
			make: func(d dir) {
				data, source := filepath.Dir(filepath.Dir(d.snap)), newDatabase(d.T)
				if err := os.RemoveAll(data); err != nil {
					d.Fatal(err)
				}
				source.write(1, 50)
				source.stored(6)
				if err := Restore(d.Context(), file(d.T, source.snapshot()), restoreOptions(data)); err != nil {
					d.Fatal(err)
				}
			}, want: left{Directory: true},
		},
		"Running": {
			reason: "an etcd whose Pod was deleted by force may still vote on it",
			make: func(d dir) {
				log(nothing)(d)
				hold(d.T, filepath.Join(d.snap, "db"))
			}, want: left{Directory: true, Err: ErrInUse},
		},
		"RunningLog": {
			reason: "the same where it has yet to open its database",
			make: func(d dir) {
				log(nothing)(d)
				holdLog(d.T, d.wal)
			}, want: left{Directory: true, Err: ErrInUse},
		},
		"Database": {
			reason: "there is no log: etcd begins one",
			make:   func(d dir) { hold(d.T, filepath.Join(d.snap, "db")) }, want: left{Directory: true},
		},
		"Log": {reason: "there is no database", make: func(d dir) {
			if err := newStoppedLog(d.T, d.wal).Close(); err != nil {
				d.Fatal(err)
			}
		}, want: left{Directory: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			d := dir{t, filepath.Join(data, "member", "snap"), filepath.Join(data, "member", "wal")}
			if err := os.MkdirAll(d.snap, 0o700); err != nil {
				t.Fatal(err)
			}
			tc.make(d)
			cleared, err := ClearUnvoted(t.Context(), data)
			_, missing := os.Stat(data)
			if diff := cmp.Diff(tc.want, left{cleared, missing == nil, err}, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if rest, err := filepath.Glob(data + ".*"); err != nil || len(rest) > 0 {
				t.Errorf("%s: %v is left, %v", tc.reason, rest, err)
			}
		})
	}
}

// newBackend is a database as etcd makes it before it begins its log.
func newBackend(t *testing.T, path string) backend.Backend {
	t.Helper()
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	schema.CreateMetaBucket(b.BatchTx())
	b.BatchTx().Lock()
	b.BatchTx().UnsafeCreateBucket(schema.Key)
	b.BatchTx().Unlock()
	return b
}

func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
