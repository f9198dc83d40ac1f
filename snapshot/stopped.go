package snapshot

import (
	"cmp"
	"context"
	integers "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// StoppedMember is the data directory of a member that does not run. Nothing in it is ever written
// to.
type StoppedMember struct {
	// DataDir is etcd's --data-dir.
	DataDir string
	// WALDir is etcd's --wal-dir, where it had one. Default: member/wal within DataDir.
	WALDir string
}

// StoppedState is what a data directory says of itself. IDs are in hexadecimal digits, as etcdctl
// prints them.
type StoppedState struct {
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
	// Member is etcd's name of the member. It may be empty: a member writes it down when it serves
	// for the first time.
	Member string `json:"member"`
	// Learner is whether the member has no vote: no write waits for a learner.
	Learner bool `json:"learner,omitempty"`

	// Term and LastIndex are of the last entry of the log. Of two members of one cluster, that with
	// the higher term has more, and of two with the same term that with the higher index.
	Term      uint64 `json:"term"`
	LastIndex uint64 `json:"lastIndex"`
	// CommitIndex is up to where the log says that a majority has the entries. The member writes it
	// with the next entry: it is behind.
	CommitIndex uint64 `json:"commitIndex"`
	// DatabaseIndex is the entry up to which the database was written (etcd's consistent index),
	// and DatabaseRevision its revision.
	DatabaseIndex    uint64 `json:"databaseIndex"`
	DatabaseRevision int64  `json:"databaseRevision"`
	// Unreadable is how many bytes follow at the end of the log that cannot be read, and that etcd
	// drops: what was being written when the machine lost its power. Many of them are a damaged
	// log, and writes that are lost.
	Unreadable int64 `json:"unreadable,omitempty"`

	// EtcdVersion is the minor that can read it, such as 3.6. Empty: nothing there says it.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// LastWrite is when the log was last written to.
	LastWrite time.Time `json:"lastWrite"`
	// Size is what a copy takes, in bytes.
	Size int64 `json:"size"`

	log logState
}

// ErrInUse is the error of a data directory that an etcd has open.
var ErrInUse = errors.New("an etcd is using it")

// Read says what is in the data directory. It reads the whole log, and a few pages of the database.
func (m StoppedMember) Read(ctx context.Context) (StoppedState, error) {
	files, err := m.open()
	if err != nil {
		return StoppedState{}, err
	}
	defer files.close()
	return files.read(ctx)
}

// stoppedFiles are the files of a stopped member, locked so that no etcd starts on them.
type stoppedFiles struct {
	dataDir, database string
	snap, wal         []string // paths; of wal in the order of the log
	locked            []*os.File
}

// open finds the files, and locks them as etcd would: an etcd that is started meanwhile waits.
func (m StoppedMember) open() (*stoppedFiles, error) {
	if m.DataDir == "" {
		return nil, errors.New("give the data directory of the stopped member")
	}
	member := filepath.Join(m.DataDir, "member")
	f := &stoppedFiles{dataDir: m.DataDir, database: databaseIn(m.DataDir)}
	if _, err := os.Stat(f.database); err != nil {
		return nil, notDataDir(m.DataDir, err)
	}
	walDir, given := m.WALDir, m.WALDir != ""
	if !given {
		walDir = filepath.Join(member, "wal")
	}
	var err error
	if f.wal, err = filesIn(walDir, ".wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch {
	case len(f.wal) == 0 && given:
		return nil, fmt.Errorf("%s is no directory of a write-ahead log: no file in it ends with .wal", walDir)
	case len(f.wal) == 0:
		return nil, fmt.Errorf("%s has no write-ahead log: give its directory too, where etcd had a --wal-dir; without it the last writes are lost", m.DataDir)
	}
	if f.snap, err = filesIn(filepath.Join(member, "snap"), ".snap", ".snap.db"); err != nil {
		return nil, err
	}
	if err := f.lock(); err != nil {
		f.close()
		return nil, fmt.Errorf("data directory %s: %w", m.DataDir, err)
	}
	return f, nil
}

// notDataDir says what the directory is instead.
func notDataDir(dir string, cause error) error {
	if !errors.Is(cause, fs.ErrNotExist) {
		return cause
	}
	if _, err := os.Stat(filepath.Join(dir, "snap", "db")); err == nil {
		return fmt.Errorf("%s is within a data directory: give the directory above it", dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no directory", dir)
	}
	return fmt.Errorf("%s is no data directory of etcd: it has no member/snap/db", dir)
}

// filesIn are the files of a directory with one of the endings, in the order of their names.
func filesIn(dir string, endings ...string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		for _, ending := range endings {
			if strings.HasSuffix(entry.Name(), ending) {
				files = append(files, filepath.Join(dir, entry.Name()))
				break
			}
		}
	}
	return files, nil
}

func (f *stoppedFiles) lock() error {
	for n, path := range append([]string{f.database}, f.wal...) {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		f.locked = append(f.locked, file)
		lock := lockLog
		if n == 0 {
			lock = lockDatabase
		}
		if err := lock(file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (f *stoppedFiles) close() {
	for _, file := range f.locked {
		_ = file.Close() // it was only read; its lock goes with it
	}
}

func (f *stoppedFiles) read(ctx context.Context) (StoppedState, error) {
	log, err := readLog(ctx, f.wal)
	if err != nil {
		return StoppedState{}, err
	}
	s := StoppedState{
		ClusterID: hexID(log.metadata.GetClusterID()), MemberID: hexID(log.metadata.GetNodeID()),
		Term: log.term, LastIndex: log.index, CommitIndex: log.state.GetCommit(), Unreadable: log.unreadable, log: log,
	}
	err = viewDatabase(ctx, f.database, s.readDatabase)
	if damage, ok := errors.AsType[*Damage](err); ok {
		err = fmt.Errorf("%s is damaged: %s", f.database, damage.Detail)
	}
	if err != nil {
		return StoppedState{}, err
	}
	if log.learner != nil { // it says more than the database does
		s.Learner = *log.learner
	}
	for _, path := range slices.Concat([]string{f.database}, f.snap, f.wal) {
		info, err := os.Stat(path)
		if err != nil {
			return StoppedState{}, err
		}
		s.Size += info.Size()
		if strings.HasSuffix(path, ".wal") && info.ModTime().After(s.LastWrite) {
			s.LastWrite = info.ModTime().UTC()
		}
	}
	return s, nil
}

// readDatabase looks up what etcd has written beside the keys, and the last of the keys.
func (s *StoppedState) readDatabase(tx *bbolt.Tx) error {
	keys, meta := tx.Bucket(schema.Key.Name()), tx.Bucket(schema.Meta.Name())
	if keys == nil || meta == nil {
		return errors.New("it has none of the buckets of etcd")
	}
	if v := meta.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
		s.DatabaseIndex = integers.BigEndian.Uint64(v)
	}
	s.DatabaseRevision = max(revisionIn(meta, schema.ScheduledCompactKeyName), revisionIn(meta, schema.FinishedCompactKeyName), 1)
	if last, _ := keys.Cursor().Last(); last != nil {
		s.DatabaseRevision = max(s.DatabaseRevision, mvcc.BytesToRev(last).Main)
	}
	var member struct {
		Name      string `json:"name"`
		IsLearner bool   `json:"isLearner"`
	}
	if members := tx.Bucket(schema.Members.Name()); members != nil {
		if v := members.Get([]byte(s.MemberID)); v != nil {
			if err := json.Unmarshal(v, &member); err != nil {
				return fmt.Errorf("member %s: %w", s.MemberID, err)
			}
		}
	}
	s.Member, s.Learner = cmp.Or(s.log.name, member.Name), member.IsLearner
	said := []string{s.log.version, string(meta.Get(schema.MetaStorageVersionName))}
	if cluster := tx.Bucket(schema.Cluster.Name()); cluster != nil {
		said = append(said, string(cluster.Get(schema.ClusterClusterVersionKeyName)))
	}
	s.EtcdVersion = highestMinor(said)
	return nil
}
