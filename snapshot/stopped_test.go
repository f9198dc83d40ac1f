package snapshot

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// stoppedLog writes the log of a member, as etcd does.
type stoppedLog struct {
	*testing.T
	dir string
	*wal.WAL
}

// stoppedID is the member's.
const stoppedID = 0xbeef

func newStoppedLog(t *testing.T, dir string) *stoppedLog {
	t.Helper()
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: new(uint64(stoppedID)), ClusterID: new(uint64(0xcafe))})
	if err != nil {
		t.Fatal(err)
	}
	w, err := wal.Create(zap.NewNop(), dir, metadata)
	if err != nil {
		t.Fatal(err)
	}
	return &stoppedLog{t, dir, w}
}

// entries of a term, from one index to another, with the commit index that is written behind them.
func (l *stoppedLog) entries(term, from, to, commit uint64) {
	l.Helper()
	var all []*raftpb.Entry
	for index := from; index <= to; index++ {
		all = append(all, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: &term, Index: new(index), Data: []byte("entry")})
	}
	l.save(&raftpb.HardState{Term: &term, Vote: new(uint64(7)), Commit: &commit}, all)
}

func (l *stoppedLog) save(state *raftpb.HardState, entries []*raftpb.Entry) {
	l.Helper()
	if err := l.Save(state, entries); err != nil {
		l.Fatal(err)
	}
}

// change is an entry that adds the member itself, or removes it.
func (l *stoppedLog) change(index uint64, what raftpb.ConfChangeType, id uint64) {
	l.Helper()
	data, err := proto.Marshal(&raftpb.ConfChange{Type: what.Enum(), NodeId: &id})
	if err != nil {
		l.Fatal(err)
	}
	l.save(nil, []*raftpb.Entry{{Type: raftpb.EntryConfChange.Enum(), Term: new(uint64(2)), Index: &index, Data: data}})
}

func (l *stoppedLog) snapshotAt(term, index uint64) {
	l.Helper()
	if err := l.SaveSnapshot(&walpb.Snapshot{Term: &term, Index: &index, ConfState: &raftpb.ConfState{Voters: []uint64{stoppedID}}}); err != nil {
		l.Fatal(err)
	}
}

// tear has the last file end with half a record.
func (l *stoppedLog) tear() {
	l.Helper()
	files, err := filesIn(l.dir, ".wal")
	if err != nil {
		l.Fatal(err)
	}
	last := files[len(files)-1]
	file, err := os.OpenFile(last, os.O_RDWR, 0)
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = file.Close() }() // what was written is read again
	decoder, record := wal.NewDecoder(fileutil.NewFileReader(file)), &walpb.Record{}
	for decoder.Decode(record) == nil {
		if record.GetType() == wal.CrcType {
			decoder.UpdateCRC(record.GetCrc())
		}
	}
	// Of a record of 4,000 bytes the first sector has reached the disk.
	if _, err := file.WriteAt(append([]byte{0xa0, 0x0f, 0, 0, 0, 0, 0, 0, 0x08, 0x02, 0x1a}, bytes.Repeat([]byte{1}, 300)...), decoder.LastOffset()); err != nil {
		l.Fatal(err)
	}
}

// TestCommitAll: up to where a log reaches, and that all of it counts as committed afterwards.
func TestCommitAll(t *testing.T) {
	type facts struct {
		Index, Term, Commit uint64
		Learner, Removed    bool
		Unreadable          int64
		After               []uint64 // the commit index of the copy, and its last entry
	}
	cases := map[string]struct {
		reason string
		write  func(l *stoppedLog)
		want   facts
	}{
		"Behind": {
			reason: "the commit index is written with the next entry",
			write:  func(l *stoppedLog) { l.entries(2, 1, 9, 7) },
			want:   facts{Index: 9, Term: 2, Commit: 7, After: []uint64{9, 9}},
		},
		"Overridden": {
			reason: "a later leader had other entries in their place, and fewer of them",
			write:  func(l *stoppedLog) { l.entries(2, 1, 9, 5); l.entries(3, 6, 7, 6) },
			want:   facts{Index: 7, Term: 3, Commit: 6, After: []uint64{7, 7}},
		},
		"OwnSnapshot": {
			reason: "the entries behind a snapshot that the member has made stay",
			write:  func(l *stoppedLog) { l.entries(2, 1, 9, 7); l.snapshotAt(2, 5) },
			want:   facts{Index: 9, Term: 2, Commit: 7, After: []uint64{9, 9}},
		},
		"SentSnapshot": {
			reason: "the entries before a snapshot that the member was sent are of no use",
			write:  func(l *stoppedLog) { l.entries(2, 1, 9, 5); l.snapshotAt(3, 7) },
			want:   facts{Index: 7, Term: 3, Commit: 5, After: []uint64{7, 9}},
		},
		"AfterSentSnapshot": {
			reason: "and those behind it count",
			write:  func(l *stoppedLog) { l.entries(2, 1, 9, 5); l.snapshotAt(3, 20); l.entries(3, 21, 22, 20) },
			want:   facts{Index: 22, Term: 3, Commit: 20, After: []uint64{22, 22}},
		},
		"Torn": {
			reason: "a record that was cut off is dropped, as etcd does",
			write:  func(l *stoppedLog) { l.entries(2, 1, 9, 7); l.tear() },
			want:   facts{Index: 9, Term: 2, Commit: 7, Unreadable: 311, After: []uint64{9, 9}},
		},
		"Learner": {
			reason: "a learner gets its vote",
			write:  func(l *stoppedLog) { l.entries(2, 1, 3, 3); l.change(4, raftpb.ConfChangeAddLearnerNode, stoppedID) },
			want:   facts{Index: 4, Term: 2, Commit: 3, Learner: true, After: []uint64{5, 5}},
		},
		"Promoted": {
			reason: "it has it",
			write: func(l *stoppedLog) {
				l.change(1, raftpb.ConfChangeAddLearnerNode, stoppedID)
				l.change(2, raftpb.ConfChangeAddNode, stoppedID)
			},
			want: facts{Index: 2, Term: 2, After: []uint64{2, 2}},
		},
		"Removed": {
			reason: "its data is old",
			write:  func(l *stoppedLog) { l.entries(2, 1, 3, 3); l.change(4, raftpb.ConfChangeRemoveNode, stoppedID) },
			want:   facts{Index: 4, Term: 2, Commit: 3, Removed: true, After: []uint64{4, 4}},
		},
		"OtherRemoved": {
			reason: "that is nothing to it",
			write:  func(l *stoppedLog) { l.entries(2, 1, 3, 3); l.change(4, raftpb.ConfChangeRemoveNode, 1) },
			want:   facts{Index: 4, Term: 2, Commit: 3, After: []uint64{4, 4}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newStoppedLog(t, filepath.Join(t.TempDir(), "wal"))
			tc.write(l)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			log := l.read()
			state := StoppedState{log: log, Learner: log.learner != nil && *log.learner}
			if err := state.commitAll(l.dir); err != nil {
				t.Fatal(err)
			}
			got := facts{
				Index: log.index, Term: log.term, Commit: log.state.GetCommit(),
				Unreadable: log.unreadable, Learner: state.Learner, Removed: log.removed, After: l.readByEtcd(log.snapshot),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if again := l.read(); again.unreadable > 0 || again.index != got.After[0] {
				t.Errorf("%s: read again, it ends at %d, with %d bytes behind", tc.reason, again.index, again.unreadable)
			}
		})
	}
}

func (l *stoppedLog) read() logState {
	l.Helper()
	files, err := filesIn(l.dir, ".wal")
	if err != nil {
		l.Fatal(err)
	}
	log, err := readLog(l.Context(), files)
	if err != nil {
		l.Fatal(err)
	}
	return log
}

// readByEtcd is the commit index and the last entry, as etcd reads the log when it starts.
func (l *stoppedLog) readByEtcd(at *walpb.Snapshot) []uint64 {
	l.Helper()
	w, err := wal.Open(zap.NewNop(), l.dir, at)
	if err != nil {
		l.Fatal(err)
	}
	_, state, entries, err := w.ReadAll()
	if err := errors.Join(err, w.Close()); err != nil {
		l.Fatal(err)
	}
	last := at.GetIndex()
	if len(entries) > 0 {
		last = entries[len(entries)-1].GetIndex()
	}
	return []uint64{state.GetCommit(), last}
}

// TestReadLogFiles: a log of several files is read from the first to the last, and one with a hole
// is not. It is not parallel: it changes how large the files of all logs are.
func TestReadLogFiles(t *testing.T) {
	size := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 1 << 10
	defer func() { wal.SegmentSizeBytes = size }()
	l := newStoppedLog(t, filepath.Join(t.TempDir(), "wal"))
	for index := uint64(1); index < 300; index += 10 {
		l.entries(2, index, index+9, index)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filesIn(l.dir, ".wal")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if log := l.read(); log.index != 300 || log.state.GetCommit() != 291 {
		t.Errorf("it ends at %d, committed %d", log.index, log.state.GetCommit())
	}
	if log, err := readLog(t.Context(), files[2:]); err != nil || log.index != 300 {
		t.Errorf("without the oldest files, which etcd deletes: %d, %v", log.index, err)
	}
	if _, err := readLog(t.Context(), append(files[:2:2], files[3:]...)); !errors.Is(err, wal.ErrCRCMismatch) {
		t.Errorf("without a file in the middle: %v", err)
	}
	if err := os.Truncate(files[1], 500); err != nil {
		t.Fatal(err)
	}
	if _, err := readLog(t.Context(), files); err == nil || !strings.Contains(err.Error(), files[1]+" is damaged") {
		t.Errorf("with half a file in the middle: %v", err)
	}
}

// newStoppedDir is the data directory of a member, as it lies there.
func newStoppedDir(t *testing.T) StoppedMember {
	t.Helper()
	m := StoppedMember{DataDir: filepath.Join(t.TempDir(), "data")}
	l := newStoppedLog(t, filepath.Join(m.DataDir, "member", "wal"))
	l.entries(2, 1, 9, 7)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	d := newDatabase(t)
	d.write(1, 20)
	d.stored(6)
	tx := d.backend.BatchTx()
	tx.LockOutsideApply()
	schema.UnsafeUpdateConsistentIndex(tx, 6, 2)
	tx.UnsafePut(schema.Cluster, schema.ClusterClusterVersionKeyName, []byte("3.5.0"))
	tx.UnsafePut(schema.Members, []byte("beef"), []byte(`{"id":48879,"peerURLs":["http://10.0.0.1:2380"],"name":"m1"}`))
	tx.Unlock()
	stream := d.snapshot()
	if err := os.MkdirAll(filepath.Dir(databaseIn(m.DataDir)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(databaseIn(m.DataDir), stream[:len(stream)-32], 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReadStopped: all that a person is told before a snapshot is made of a data directory.
func TestReadStopped(t *testing.T) {
	t.Parallel()
	m := newStoppedDir(t)
	got, err := m.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := StoppedState{
		ClusterID: "cafe", MemberID: "beef", Member: "m1", Term: 2, LastIndex: 9, CommitIndex: 7,
		DatabaseIndex: 6, DatabaseRevision: got.DatabaseRevision, EtcdVersion: "3.6", LastWrite: got.LastWrite, Size: got.Size, log: got.log,
	}
	if got != want || got.DatabaseRevision < 10 || got.LastWrite.IsZero() || got.Size < wal.SegmentSizeBytes {
		t.Errorf("want %+v, got %+v", want, got)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if _, err := m.Copy(t.Context(), copied, nil); err != nil {
		t.Fatal(err)
	}
	of, err := StoppedMember{DataDir: copied}.Read(t.Context())
	if err != nil || of.CommitIndex != 9 || of.LastIndex != 9 || of.DatabaseIndex != 6 {
		t.Errorf("the copy has %+v, %v", of, err)
	}
	elsewhere := filepath.Join(t.TempDir(), "wal")
	if err := os.Rename(filepath.Join(m.DataDir, "member", "wal"), elsewhere); err != nil {
		t.Fatal(err)
	}
	m.WALDir = elsewhere
	if got, err := m.Read(t.Context()); err != nil || got.LastIndex != 9 {
		t.Errorf("with the log elsewhere: %+v, %v", got, err)
	}
}

// TestCopyRefused: what is not copied, and that nothing is left of it.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	m := newStoppedDir(t)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Copy(t.Context(), full, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a directory that has something: %v", err)
	}
	if err := roomFor(full, math.MaxInt64); !errors.Is(err, ErrNoRoom) {
		t.Errorf("more than there is room for: %v", err)
	}
	m.WALDir = filepath.Join(t.TempDir(), "wal")
	l := newStoppedLog(t, m.WALDir)
	l.change(1, raftpb.ConfChangeRemoveNode, stoppedID)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "copy")
	if _, err := m.Copy(t.Context(), none, nil); err == nil || !strings.Contains(err.Error(), "member beef was removed from its cluster") {
		t.Errorf("of a member that was removed: %v", err)
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of it is there: %v", err)
	}
}

// TestStoppedRefused: what is no data directory of a stopped member, and what to give instead.
func TestStoppedRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(t *testing.T, m *StoppedMember)
		want   string
	}{
		"Nothing":  {"it must be given", func(_ *testing.T, m *StoppedMember) { m.DataDir = "" }, "give the data directory"},
		"Missing":  {"a mount may be missing", func(_ *testing.T, m *StoppedMember) { m.DataDir += "/none" }, "/none is no directory"},
		"Empty":    {"another directory", func(t *testing.T, m *StoppedMember) { m.DataDir = t.TempDir() }, "is no data directory of etcd: it has no member/snap/db"},
		"Within":   {"one too deep", func(_ *testing.T, m *StoppedMember) { m.DataDir += "/member" }, "give the directory above it"},
		"NoLog":    {"it was elsewhere", func(t *testing.T, m *StoppedMember) { remove(t, m.DataDir+"/member/wal") }, "where etcd had a --wal-dir"},
		"OtherLog": {"a wrong one", func(_ *testing.T, m *StoppedMember) { m.WALDir = m.DataDir + "/member/snap" }, "no file in it ends with .wal"},
		"BadLog": {"it is damaged", func(t *testing.T, m *StoppedMember) {
			path := m.DataDir + "/member/wal/0000000000000000-0000000000000000.wal"
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, path, int64(bytes.Index(data, []byte("entry"))), 1)
		}, "is damaged"},
		"NoEntry": {"nothing of it can be read", func(t *testing.T, m *StoppedMember) {
			overwrite(t, m.DataDir+"/member/wal/0000000000000000-0000000000000000.wal", 16, 16<<10)
		}, "has no entry"},
		"BadDB":   {"it is damaged", func(t *testing.T, m *StoppedMember) { overwrite(t, databaseIn(m.DataDir), 0, 16<<10) }, "member/snap/db is damaged"},
		"UsedDB":  {"an etcd runs", func(t *testing.T, m *StoppedMember) { hold(t, databaseIn(m.DataDir)) }, "an etcd is using it"},
		"UsedLog": {"an etcd runs", func(t *testing.T, m *StoppedMember) { holdLog(t, m.DataDir+"/member/wal") }, "an etcd is using it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newStoppedDir(t)
			tc.change(t, &m)
			if _, err := m.Read(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func remove(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// overwrite a part of a file.
func overwrite(t *testing.T, path string, from int64, size int) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, size), from)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// hold a database as a running etcd does.
func hold(t *testing.T, database string) {
	t.Helper()
	db, err := bbolt.Open(database, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // it goes with the test
}

// holdLog holds a log as a running etcd does.
func holdLog(t *testing.T, dir string) {
	t.Helper()
	w, err := wal.Open(zap.NewNop(), dir, &walpb.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _, _, _ = w.ReadAll() // a log is closed when it was read
		_ = w.Close()
	})
}

// TestRefuses: which etcd is started on a copy.
func TestRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		data, etcd string
		want       string
	}{
		"Same":    {"its own", "3.6", "3.6.16", ""},
		"Next":    {"it may have run already, while the cluster was upgraded", "3.5", "v3.6.16", ""},
		"Older":   {"it cannot read the data", "3.6", "3.5.35", "take an etcd 3.6, of the newest patch"},
		"Skips":   {"etcd goes up one by one", "3.5", "3.7.3", "skips a minor: take an etcd 3.5, of the newest patch"},
		"Unknown": {"nothing is known", "", "3.7.3", ""},
		"NoEtcd":  {"nothing is known", "3.5", "main", `etcd version "main"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := StoppedState{EtcdVersion: tc.data}.Refuses(tc.etcd)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestHighestMinor: which minor reads what a stopped member has.
func TestHighestMinor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		versions []string
		want     string
	}{
		"None":      {"nothing is known", nil, ""},
		"Differ":    {"the cluster is being upgraded", []string{"3.5.0", "3.6.0"}, "3.6"},
		"Undecided": {"etcd writes this until its leader knows the versions of all members", []string{"3.0.0"}, ""},
		"Decided":   {"a moment later", []string{"3.0.0", "3.6.0"}, "3.6"},
		"NoVersion": {"something else", []string{"main"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, highestMinor(tc.versions)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
