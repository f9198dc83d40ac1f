package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// commitAll makes all entries of a log count as committed. An etcd that is started with
// --force-new-cluster drops the others, and a member may have acknowledged an entry to its leader
// without having heard that a majority has it. An entry that was never acknowledged to a client may
// take place; one that was must not be lost.
//
// A learner gets a vote by one more entry: of a learner alone no etcd makes a cluster.
func (s StoppedState) commitAll(walDir string) (err error) {
	l := s.log
	if l.unreadable > 0 && !wal.Repair(zap.NewNop(), walDir) {
		return fmt.Errorf("the last record of the write-ahead log %s is damaged, and cannot be dropped", walDir)
	}
	w, err := wal.Open(zap.NewNop(), walDir, l.snapshot)
	if err != nil {
		return fmt.Errorf("open the copy of the write-ahead log: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if _, _, _, err := w.ReadAll(); err != nil {
		return fmt.Errorf("read the copy of the write-ahead log: %w", err)
	}
	state := &raftpb.HardState{Term: new(l.state.GetTerm()), Vote: new(l.state.GetVote()), Commit: new(l.index)}
	if l.term > state.GetTerm() { // it was stopped between both
		state.Term, state.Vote = new(l.term), new(uint64(0))
	}
	var more []*raftpb.Entry
	if s.Learner {
		promotion, err := promote(l.metadata.GetNodeID(), l.index+1, state.GetTerm())
		if err != nil {
			return err
		}
		more, state.Commit = append(more, promotion), promotion.Index
	}
	if err := w.Save(state, more); err != nil {
		return fmt.Errorf("write to the copy of the write-ahead log: %w", err)
	}
	return nil
}

// promote is the entry by which etcd gives a learner its vote.
func promote(id, index, term uint64) (*raftpb.Entry, error) {
	member, err := json.Marshal(membership.ConfigChangeContext{Member: membership.Member{ID: types.ID(id)}, IsPromote: true})
	if err != nil {
		return nil, err
	}
	change, err := proto.Marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: &id, Context: member})
	if err != nil {
		return nil, err
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Term: &term, Index: &index, Data: change}, nil
}
