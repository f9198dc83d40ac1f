package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// unvoted is where a data directory goes before it is removed, so that etcd finds all of it or
// none.
const unvoted = ".unvoted"

// ClearUnvoted removes the data directory of a member of a first start where etcd has created its
// log and written no state to it, and reports whether it did. etcd ends there when it cannot commit
// its first transaction, or is killed within its first second. Started again, it finds a log, takes
// itself for a member of before, and has no members in it: it campaigns for nothing, for ever.
//
// Such a member has promised nothing: etcd writes a vote, a term and a commit index to its log
// before it tells others or a client of them (raft's HardState). What cannot be read stays as it
// is.
func ClearUnvoted(ctx context.Context, dataDir string) (bool, error) {
	if err := os.RemoveAll(dataDir + unvoted); err != nil {
		return false, err
	}
	files, err := filepath.Glob(filepath.Join(dataDir, "member", "wal", "*.wal"))
	if err != nil || len(files) == 0 {
		return false, err
	}
	l := logState{metadata: &etcdserverpb.Metadata{}, state: &raftpb.HardState{}, snapshot: &walpb.Snapshot{}}
	for _, file := range files {
		if err := l.readFile(ctx, file); err != nil {
			return false, ctx.Err() // etcd judges a damaged log
		}
	}
	behind, err := l.behind(files[len(files)-1])
	if err != nil || behind > 0 {
		return false, err
	}
	if l.state.GetTerm() != 0 || l.state.GetVote() != 0 || l.state.GetCommit() != 0 || l.snapshot.GetIndex() != 0 {
		return false, nil
	}
	err = os.Rename(dataDir, dataDir+unvoted)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, os.RemoveAll(dataDir + unvoted)
}
