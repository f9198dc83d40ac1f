package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// TestHashKeyspace compares the hash of a file with that of etcd's own code, which has an index of
// all keys in memory.
func TestHashKeyspace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		write  func(*database)
	}{
		"Empty":       {"no key was ever written", func(*database) {}},
		"AllHistory":  {"nothing is compacted", func(d *database) { d.write(1, 500) }},
		"Compacted":   {"what was overwritten since is left out", func(d *database) { d.write(2, 500); d.compact(300) }},
		"CompactNow":  {"nothing was written since", func(d *database) { d.write(3, 500); d.compact(d.Rev()) }},
		"Twice":       {"compaction goes on from the last", func(d *database) { d.write(4, 500); d.compact(100); d.write(5, 100); d.compact(400) }},
		"Tombstone":   {"the compacted revision is a deletion", func(d *database) { d.write(6, 100); d.DeleteRange([]byte("key"), []byte("l")); d.compact(d.Rev()) }},
		"NothingLeft": {"all keys are deleted since", func(d *database) { d.write(7, 100); d.compact(50); d.DeleteRange([]byte("key"), []byte("l")) }},
		"Half":        {"compaction has removed a part", func(d *database) { d.write(9, 500); d.compactHalf(350) }},
		"HalfAgain":   {"it was compacted before", func(d *database) { d.write(12, 500); d.compact(150); d.write(13, 100); d.compactHalf(400) }},
		"Bumped":      {"the revision that a restore has written is no key", func(d *database) { d.write(14, 100); d.bump() }},
		"BumpedEmpty": {"it is all that compaction keeps", func(d *database) {
			d.write(15, 100)
			d.DeleteRange([]byte("key"), []byte("l"))
			d.bump()
		}},
		"Interrupted": {"compaction was begun, and has removed nothing yet", func(d *database) {
			d.write(8, 500)
			d.Commit()
			mvcc.SetScheduledCompact(d.backend.BatchTx(), 350)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			tc.write(d)
			path := file(t, d.snapshot())
			says, err := Describe(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			want := d.reopened().keyspace()
			for _, shard := range []int64{1, 7, shard} { // keys at once
				got, err := hashSharded(t.Context(), path, says, shard)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(keyspace{})); diff != "" {
					t.Errorf("%s: %d keys at once: -want +got:\n%s", tc.reason, shard, diff)
				}
			}
		})
	}
}

// TestKeyOf reads keys as etcd has written them.
func TestKeyOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		kv     []byte
		want   string
		fails  bool
	}{
		"Key":       {"it is the first field", []byte("\x0a\x03key\x10\x07"), "key", false},
		"Later":     {"it may come later", []byte("\x10\x07\x0a\x03key"), "key", false},
		"Bumped":    {"a bump of the revision writes nothing", nil, "", false},
		"Cut":       {"the key is longer than the rest", []byte("\x0a\x09key"), "", true},
		"CutTag":    {"a field without its value", []byte("\x10"), "", true},
		"CutNumber": {"a tag that does not end", []byte("\x80"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := keyOf(tc.kv)
			if string(got) != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}
