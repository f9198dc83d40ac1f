package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"
)

// TestClearUnvoted: a data directory goes only where its log shows that etcd has promised nothing.
func TestClearUnvoted(t *testing.T) {
	t.Parallel()
	log := func(write func(l *stoppedLog)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(dir, "member"), 0o700); err != nil {
				t.Fatal(err)
			}
			l := newStoppedLog(t, filepath.Join(dir, "member", "wal"))
			write(l)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	type left struct{ Cleared, Directory bool }
	cases := map[string]struct {
		reason string
		make   func(t *testing.T, dir string)
		want   left
	}{
		"Absent":  {reason: "there is nothing", make: func(*testing.T, string) {}},
		"Created": {reason: "etcd has ended before it wrote a state", make: log(func(*stoppedLog) {}), want: left{Cleared: true}},
		"Entries": {reason: "it has written its first members, and not that they are committed", make: log(func(l *stoppedLog) { l.change(1, raftpb.ConfChangeAddNode, stoppedID) }), want: left{Cleared: true}},
		"Begun":   {reason: "it knows its first members", make: log(func(l *stoppedLog) { l.save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}, nil) }), want: left{Directory: true}},
		"Voted":   {reason: "it has given another one its vote", make: log(func(l *stoppedLog) { l.save(&raftpb.HardState{Term: new(uint64(2)), Vote: new(uint64(7))}, nil) }), want: left{Directory: true}},
		"Served":  {reason: "it has data", make: log(func(l *stoppedLog) { l.entries(2, 1, 5, 5) }), want: left{Directory: true}},
		"Received": {
			reason: "it was sent all data as a snapshot",
			make: log(func(l *stoppedLog) {
				l.snapshotAt(2, 10)
			}), want: left{Directory: true},
		},
		"Damaged": {
			reason: "what is written there cannot be read",
			make: func(t *testing.T, dir string) {
				t.Helper()
				log(func(*stoppedLog) {})(t, dir)
				files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
				if err != nil || len(files) != 1 {
					t.Fatal(files, err)
				}
				if err := os.WriteFile(files[0], []byte("what is no log of etcd"), 0o600); err != nil {
					t.Fatal(err)
				}
			}, want: left{Directory: true},
		},
		"Database": {
			reason: "there is no log: etcd begins one",
			make: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700); err != nil {
					t.Fatal(err)
				}
			}, want: left{Directory: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			tc.make(t, dir)
			cleared, err := ClearUnvoted(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			_, err = os.Stat(dir)
			if diff := cmp.Diff(tc.want, left{cleared, err == nil}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if rest, err := filepath.Glob(dir + ".*"); err != nil || len(rest) > 0 {
				t.Errorf("%s: %v is left, %v", tc.reason, rest, err)
			}
		})
	}
}
