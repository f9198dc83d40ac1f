package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// TestJoined: the data directory has what etcdutl makes of the same snapshot.
func TestJoined(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   func(*database)
		keep   bool
	}{
		"Bumped": {reason: "a revision without a key is written", args: func(d *database) { d.write(40, 300) }},
		"Kept":   {reason: "the revisions stay", args: func(d *database) { d.write(41, 300) }, keep: true},
		"Empty":  {reason: "it has no key", args: func(*database) {}},
		"Compacted": {reason: "its history was compacted to the last revision, which was a deletion", args: func(d *database) {
			d.write(42, 100)
			d.DeleteRange([]byte("key-"), []byte("key."))
			d.compact(d.Rev())
		}},
		"BumpedBefore": {reason: "it was restored before", args: func(d *database) {
			d.write(43, 50)
			d.bump()
		}},
		"Members": {reason: "it has members of before, and some that were removed", args: func(d *database) {
			d.write(44, 50)
			before := schema.NewMembershipBackend(zap.NewNop(), d.backend)
			for id := range 3 {
				before.MustSaveMemberToBackend(&membership.Member{ID: types.ID(id + 1), Attributes: membership.Attributes{Name: fmt.Sprintf("before-%d", id)}})
				before.MustDeleteMemberFromBackend(types.ID(id + 11))
			}
		}},
		"Indexed": {reason: "it has the index and the term of the cluster of before", args: func(d *database) {
			d.write(45, 50)
			tx := d.backend.BatchTx()
			tx.LockOutsideApply()
			defer tx.Unlock()
			schema.UnsafeUpdateConsistentIndexForce(tx, 4711, 17)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			tc.args(d)
			d.stored(6)
			stream, dir := file(t, d.snapshot()), t.TempDir()
			o := restoreOptions(filepath.Join(dir, "data"))
			o.KeepRevisions = tc.keep
			if err := Restore(t.Context(), stream, o); err != nil {
				t.Fatal(err)
			}
			byUtl := filepath.Join(dir, "by-etcdutl")
			err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
				SnapshotPath: stream, Name: o.Name, OutputDataDir: byUtl, PeerURLs: o.PeerURLs,
				InitialCluster: o.InitialCluster, InitialClusterToken: o.Token,
				RevisionBump: o.bump(), MarkCompacted: o.bump() > 0,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(allOf(t, byUtl), allOf(t, o.DataDir)); diff != "" {
				t.Errorf("%s: -etcdutl +Restore:\n%s", tc.reason, diff)
			}
		})
	}
}

// allOf a member: all keys of a database by their buckets, the log, and the names of the other
// files.
func allOf(t *testing.T, dataDir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"snap", "wal"} {
		for _, file := range names(t, filepath.Join(dataDir, "member", dir)) {
			path := filepath.Join(dataDir, "member", dir, file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if dir == "snap" { // etcdutl itself writes the members in any order
				text = nil
			}
			all[file] = string(text)
		}
	}
	db, err := bbolt.Open(databaseIn(dataDir), 0o400, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it was only read
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("%s: %v", dataDir, err)
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			all[string(name)] = "a bucket"
			return b.ForEach(func(k, v []byte) error {
				all[fmt.Sprintf("%s %q", name, k)] = fmt.Sprintf("%q", v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
