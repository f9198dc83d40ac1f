package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// unvoted is where a data directory goes before it is removed, so that etcd finds all of it or
// none.
const unvoted = ".unvoted"

// firstSegment is the file in which every log begins (walName in go.etcd.io/etcd/server/v3/storage/
// wal). etcd removes it when there are later ones and snapshots.
const firstSegment = "0000000000000000-0000000000000000.wal"

// ClearUnvoted removes the data directory of a member of a first start where etcd has created its
// log and written no state to it, and reports whether it did. etcd ends there when it cannot commit
// its first transaction, or is killed within its first second. Started again, it finds a log, takes
// itself for a member of before, and has no members in it: it campaigns for nothing, for ever.
//
// Such a member has promised nothing: etcd writes a vote, a term and a commit index to its log
// before it tells others or a client of them (raft's HardState). A directory also stays where its
// database has keys or a consistent index, of whatever log, and where anything in it cannot be
// read. An etcd that runs on it is an error (ErrInUse): it could vote while another one begins.
func ClearUnvoted(ctx context.Context, dataDir string) (bool, error) {
	if err := os.RemoveAll(dataDir + unvoted); err != nil {
		return false, err
	}
	files, err := StoppedMember{DataDir: dataDir}.open()
	if errors.Is(err, ErrInUse) {
		return false, err
	}
	if err != nil {
		return false, ctx.Err() // etcd judges what is there
	}
	defer files.close() // its locks are held until all is removed
	if voted, err := files.voted(ctx); voted || err != nil {
		return false, ctx.Err()
	}
	if err := os.Rename(dataDir, dataDir+unvoted); err != nil {
		return false, err
	}
	return true, os.RemoveAll(dataDir + unvoted)
}

// voted reports whether anything tells that the member has had a state or data, or may have had
// one.
func (f *stoppedFiles) voted(ctx context.Context) (bool, error) {
	if len(f.snap) > 0 || len(f.wal) != 1 || filepath.Base(f.wal[0]) != firstSegment {
		return true, nil
	}
	l := logState{metadata: &etcdserverpb.Metadata{}, state: &raftpb.HardState{}, snapshot: &walpb.Snapshot{}}
	if err := l.readFile(ctx, f.wal[0]); err != nil {
		return true, err
	}
	behind, err := l.behind(f.wal[0])
	if err != nil || behind > 0 {
		return true, err
	}
	if l.state.GetTerm() != 0 || l.state.GetVote() != 0 || l.state.GetCommit() != 0 || l.snapshot.GetIndex() != 0 {
		return true, nil
	}
	filled := false
	err = viewDatabase(ctx, f.database, func(tx *bbolt.Tx) error {
		if keys := tx.Bucket(schema.Key.Name()); keys != nil {
			last, _ := keys.Cursor().Last()
			filled = last != nil
		}
		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			for _, b := range meta.Get(schema.MetaConsistentIndexKeyName) {
				filled = filled || b != 0
			}
		}
		return nil
	})
	return filled || err != nil, err
}
