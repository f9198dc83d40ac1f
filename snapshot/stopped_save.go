package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// SaveStoppedOptions says of which stopped member a snapshot is saved, and how.
type SaveStoppedOptions struct {
	StoppedMember
	// Etcd is the path of an etcd binary: of the minor of the data, or the next.
	Etcd string
	// Scratch is a directory with room for a copy of the data directory. Default: the directory for
	// temporary files. What is made there is removed again.
	Scratch string
	// Username and Password of a user with the role root, where the cluster had users.
	Username, Password string
	SaveOptions
}

// SaveStopped takes a snapshot of the data directory of a member that does not run, and that
// cannot: its cluster has lost the majority of its members for good. An etcd that no other machine
// can reach is started on a copy (Copy), and the snapshot is taken from that. It has every write
// that the member knows of. What the others acknowledged without the member is not in it.
func SaveStopped(ctx context.Context, store Store, o SaveStoppedOptions) (Manifest, error) {
	if o.Etcd == "" {
		return Manifest{}, errors.New("give the path of an etcd binary to start on a copy of the data directory")
	}
	version, err := etcdVersion(ctx, o.Etcd)
	if err != nil {
		return Manifest{}, err
	}
	state, err := o.Read(ctx)
	if err != nil {
		return Manifest{}, err
	}
	if err := state.Refuses(version); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", o.Etcd, err)
	}
	if err := state.damagedLog(); err != nil {
		return Manifest{}, err
	}
	dir, err := os.MkdirTemp(o.Scratch, "quorate-stopped-")
	if err == nil {
		dir, err = filepath.Abs(dir) // sockets are named within it
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("make room for a copy of the data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // whether it could be removed changes nothing for the snapshot
	if state, err = o.Copy(ctx, filepath.Join(dir, servedDir), o.Progress); err != nil {
		return Manifest{}, err
	}
	return o.saveCopy(ctx, store, dir, state)
}

// replayTimeout bounds how long etcd may take to read the copied log and to serve. A log has some
// 100,000 entries.
const replayTimeout = 15 * time.Minute

func (o SaveStoppedOptions) saveCopy(ctx context.Context, store Store, dir string, state StoppedState) (Manifest, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// The manifest has the name of the member, as in any other snapshot.
	served, err := serve(ctx, stop, o.Etcd, dir, "--name="+cmp.Or(state.Member, "default"), "--force-new-cluster", "--quota-backend-bytes=-1")
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	err = served.during(ctx, stop, func(endpoint string) (err error) {
		from := Source{Endpoints: []string{endpoint}, Username: o.Username, Password: o.Password}
		m, err = o.saveServed(ctx, from, store)
		return err
	})
	return m, err
}

func (o SaveStoppedOptions) saveServed(ctx context.Context, from Source, store Store) (Manifest, error) {
	serving, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	member, err := from.serving(serving)
	if err != nil {
		return Manifest{}, fmt.Errorf("wait for etcd to serve the copy of the data directory: %w", err)
	}
	member.close()
	return Save(ctx, from, store, o.SaveOptions)
}

// damagedLog says that the log has lost entries that were in it: the database has what they have
// changed, and nothing is written there before it is safe in the log. Entries that only the log had
// are lost with them, and nothing tells how many.
func (s StoppedState) damagedLog() error {
	if s.DatabaseIndex <= s.LastIndex {
		return nil
	}
	return fmt.Errorf("the write-ahead log can be read up to entry %d, and the database has entries up to %d: the log is damaged, and %d bytes behind that entry are lost", s.LastIndex, s.DatabaseIndex, s.Unreadable)
}
