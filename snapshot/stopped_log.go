package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// logState is what a write-ahead log comes to, when it is read to its end.
type logState struct {
	metadata *etcdserverpb.Metadata
	state    *raftpb.HardState
	snapshot *walpb.Snapshot // the last one
	// index and term are of the last entry, or of the snapshot that came after it and took its
	// place.
	index, term uint64
	// learner is whether the member is one, by the last entry that tells; nil where none does.
	learner *bool
	removed bool
	// version is that of the cluster, and name that of the member: the database may not have them
	// yet.
	version, name string
	// unreadable is how many bytes follow at the end that are no record.
	unreadable int64

	crc    uint32
	offset int64 // behind the last record
}

// readLog reads the files of a log. Entries are looked at one by one: a log may be larger than the
// memory.
func readLog(ctx context.Context, files []string) (logState, error) {
	l := logState{metadata: &etcdserverpb.Metadata{}, state: &raftpb.HardState{}, snapshot: &walpb.Snapshot{}}
	for n, file := range files {
		err := l.readFile(ctx, file)
		if n == len(files)-1 && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
			l.unreadable, err = l.behind(file)
		}
		if err != nil {
			return logState{}, err
		}
	}
	if l.index == 0 {
		return logState{}, fmt.Errorf("the write-ahead log %s has no entry", filepath.Dir(files[0]))
	}
	return l, nil
}

func (l *logState) readFile(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	l.offset = 0
	decoder := wal.NewDecoder(fileutil.NewFileReader(file))
	record := &walpb.Record{}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := decoder.Decode(record)
		if errors.Is(err, io.EOF) {
			l.crc = decoder.LastCRC()
			return nil
		}
		if err == nil {
			err = l.record(record, decoder)
		}
		if err != nil {
			return fmt.Errorf("%s is damaged %d bytes from its beginning, and etcd cannot read it either: %w", path, l.offset, err)
		}
		l.offset = decoder.LastOffset()
	}
}

// behind is how many bytes follow the last record of a file, up to the last one that is not zero.
// Etcd allocates files in advance, and they are zero where nothing was written.
func (l *logState) behind(path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return 0, err
	}
	var read, last int64
	chunk := make([]byte, 64<<10)
	for {
		n, err := file.Read(chunk)
		if filled := len(bytes.TrimRight(chunk[:n], "\x00")); filled > 0 {
			last = read + int64(filled)
		}
		read += int64(n)
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

func (l *logState) record(r *walpb.Record, decoder wal.Decoder) error {
	switch r.GetType() {
	case wal.CrcType:
		// Each file begins with the sum of the one before it.
		before := cmp.Or(decoder.LastCRC(), l.crc)
		if before != 0 && r.GetCrc() != before {
			return wal.ErrCRCMismatch
		}
		decoder.UpdateCRC(r.GetCrc())
		return nil
	case wal.MetadataType:
		return proto.Unmarshal(r.GetData(), l.metadata)
	case wal.StateType:
		return proto.Unmarshal(r.GetData(), l.state)
	case wal.SnapshotType:
		return l.snapshotRecord(r.GetData())
	case wal.EntryType:
		return l.entry(r.GetData())
	}
	return fmt.Errorf("it has a record of type %d, which is not known", r.GetType())
}

// snapshotRecord is written before the commit index where the member was sent the snapshot, and
// after it where the member made it by itself. What is sent takes the place of all entries before.
func (l *logState) snapshotRecord(data []byte) error {
	s := &walpb.Snapshot{}
	if err := proto.Unmarshal(data, s); err != nil {
		return err
	}
	l.snapshot = s
	if s.GetIndex() > l.state.GetCommit() || s.GetIndex() > l.index {
		l.index, l.term = s.GetIndex(), s.GetTerm()
	}
	return nil
}

func (l *logState) entry(data []byte) error {
	e := &raftpb.Entry{}
	if err := proto.Unmarshal(data, e); err != nil {
		return err
	}
	l.index, l.term = e.GetIndex(), e.GetTerm()
	if e.GetType() == raftpb.EntryConfChange {
		return l.change(e.GetData())
	}
	l.request(e.GetData())
	return nil
}

// change is an entry about a member.
func (l *logState) change(data []byte) error {
	c := &raftpb.ConfChange{}
	if err := proto.Unmarshal(data, c); err != nil {
		return err
	}
	if c.GetNodeId() != l.metadata.GetNodeID() {
		return nil
	}
	switch c.GetType() {
	case raftpb.ConfChangeAddNode, raftpb.ConfChangeAddLearnerNode:
		l.learner, l.removed = new(c.GetType() == raftpb.ConfChangeAddLearnerNode), false
	case raftpb.ConfChangeRemoveNode:
		l.removed = true
	case raftpb.ConfChangeUpdateNode:
	}
	return nil
}

// smallRequest is more than what etcd writes of itself has, in bytes.
const smallRequest = 1 << 10

// request is an entry of a client, or one that etcd writes of itself.
func (l *logState) request(data []byte) {
	if len(data) > smallRequest {
		return
	}
	r := &etcdserverpb.InternalRaftRequest{}
	if proto.Unmarshal(data, r) != nil { // etcd 3.5 writes of itself in the way of etcd 2
		l.version = cmp.Or(l.version, "3.5.0")
		return
	}
	if v := r.GetClusterVersionSet(); v != nil {
		l.version = v.GetVer()
	}
	if a := r.GetClusterMemberAttrSet(); a != nil && a.GetMember_ID() == l.metadata.GetNodeID() {
		l.name = a.GetMemberAttributes().GetName()
	}
}
