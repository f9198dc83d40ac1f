package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// SaveOptions says what is saved, and how.
type SaveOptions struct {
	// Name of the snapshot. Default: the last word of Cluster, or "etcd", and the time:
	// "db-20261125t075000z".
	Name string
	// Cluster is recorded in the manifest.
	Cluster string
	// ClusterID in hexadecimal digits, as etcdctl prints it. An endpoint of another one is refused
	// (ErrOtherCluster).
	ClusterID string
	// Recipients are age recipients (age1...). Without any, the snapshot is not encrypted.
	Recipients []string
	// Keep is a directory where a plain copy of the stream stays, as NAME.db. Without it there is a
	// copy in the directory for temporary files (TMPDIR) until the save has ended: only of the
	// whole database can be told which revision it is.
	Keep string
	// Unfinished removes first what an earlier save of this name has stored, where that has left no
	// manifest. It is for a caller that knows that the earlier save does not run any more: a Job
	// that tries again.
	Unfinished bool
	// Progress is called now and then, from one goroutine.
	Progress func(Progress)
}

// Progress says how far something has come, in bytes. Total is 0 where it is not known.
type Progress struct {
	Stage       string
	Done, Total int64
}

// cleanUpTimeout bounds what is done after a failure, when the caller may have given up.
const cleanUpTimeout = 30 * time.Second

// Save takes a snapshot of a running etcd: of the member with the highest revision, that is under
// no CORRUPT alarm, and no learner. The stream is stored as etcd sends it, compressed, and
// encrypted where there are recipients. The manifest is written last. A save that fails leaves no
// manifest, and what it has stored it tries to remove.
func Save(ctx context.Context, from Source, store Store, o SaveOptions) (Manifest, error) {
	o.Name = cmp.Or(o.Name, defaultName(o.Cluster, time.Now()))
	if err := checkName(o.Name); err != nil {
		return Manifest{}, err
	}
	if len(from.Endpoints) == 0 {
		return Manifest{}, fmt.Errorf("%w: give the URL of at least one endpoint", ErrNoMember)
	}
	if _, err := encrypt(io.Discard, o.Recipients); err != nil {
		return Manifest{}, err
	}
	if err := nameIsFree(ctx, store, o); err != nil {
		return Manifest{}, err
	}
	members, silent := from.ask(ctx)
	defer func() {
		for _, m := range members {
			m.close()
		}
	}()
	m, err := choose(members, o.ClusterID, silent)
	if err != nil {
		return Manifest{}, err
	}
	dir, err := os.MkdirTemp(o.Keep, ".quorate-snapshot-")
	if err != nil {
		return Manifest{}, fmt.Errorf("keep a copy of the database: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // whether it could be removed changes nothing for the snapshot
	s := &saving{SaveOptions: o, store: store, member: m, file: filepath.Join(dir, o.Name+".db")}
	manifest, err := s.run(ctx)
	if err == nil && o.Keep != "" {
		if err := os.Rename(s.file, filepath.Join(o.Keep, o.Name+".db")); err != nil {
			return manifest, fmt.Errorf("snapshot %s is stored; keep a copy of the database: %w", o.Name, err)
		}
	}
	return manifest, err
}

// nameIsFree finds out before anything is saved what the store would say at the end. A store may
// forbid to read, or answer so for what is not there (T50): that is found out at the end then.
func nameIsFree(ctx context.Context, store Store, o SaveOptions) error {
	manifest, data := manifestKey(o.Name), dataKey(o.Name, len(o.Recipients) > 0)
	_, err := ReadManifest(ctx, store, o.Name)
	switch finished := err == nil || errors.Is(err, ErrDamaged); {
	case finished:
		return fmt.Errorf("save snapshot %s: %s: %w", o.Name, store.Location(manifest), ErrExists)
	case o.Unfinished && errors.Is(err, ErrNoManifest):
		return Delete(ctx, store, o.Name)
	case isThere(ctx, store, data):
		return fmt.Errorf("save snapshot %s: %s: %w, of a save that runs, or that has not ended: give another name, or delete that",
			o.Name, store.Location(data), ErrExists)
	}
	return nil
}

func isThere(ctx context.Context, store Store, key string) bool {
	r, err := store.Open(ctx, key)
	if err != nil {
		return false
	}
	_ = r.Close() // nothing was read
	return true
}

// saving is one Save, from a member that was chosen.
type saving struct {
	SaveOptions
	store  Store
	member *member
	file   string // the plain copy
}

func (s *saving) run(ctx context.Context) (Manifest, error) {
	manifest := Manifest{
		Format: Format, Name: s.Name, Cluster: s.Cluster,
		ClusterID: hexID(s.member.clusterID), MemberID: hexID(s.member.id), EtcdVersion: s.member.version,
		Object: dataKey(s.Name, len(s.Recipients) > 0), Encrypted: len(s.Recipients) > 0,
	}
	// The revision of a linearizable read is reached by the member: what was acknowledged before it
	// is in what follows.
	manifest.StartedAt = time.Now().UTC()
	atLeast, err := s.member.reads(ctx)
	if err != nil {
		return Manifest{}, err
	}
	if manifest.Member, err = s.member.name(ctx); err != nil {
		return Manifest{}, err
	}
	err = s.store.Create(ctx, manifest.Object, func(w io.Writer) error { return s.stream(ctx, w, &manifest) })
	if err != nil {
		return Manifest{}, fmt.Errorf("store snapshot %s: %w", s.Name, err)
	}
	if err := s.complete(ctx, &manifest, atLeast); err != nil {
		return Manifest{}, s.takeBack(ctx, manifest, err)
	}
	return manifest, nil
}

// complete tells what was stored, and writes the manifest.
func (s *saving) complete(ctx context.Context, manifest *Manifest, atLeast int64) error {
	d, err := describeDatabase(ctx, s.file)
	if err != nil {
		return err
	}
	if d.Revision < atLeast {
		return &Damage{Name: s.Name, Check: CheckDatabase, Detail: fmt.Sprintf("it is of revision %d, and %d had been read from the member before", d.Revision, atLeast)}
	}
	manifest.Revision, manifest.TotalKeys = d.Revision, d.TotalKeys
	return createJSON(ctx, s.store, manifestKey(s.Name), manifest)
}

// takeBack removes what a save that failed has stored. A manifest that could not be written may be
// there nevertheless: it goes first, so that there is never one without its data.
func (s *saving) takeBack(ctx context.Context, manifest Manifest, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	if !errors.Is(cause, ErrExists) { // then it is another's
		if err := s.store.Delete(ctx, manifestKey(s.Name)); err != nil {
			return fmt.Errorf("save snapshot %s: %w (and %s stays: %w)", s.Name, cause, s.store.Location(manifest.Object), err)
		}
	}
	if err := s.store.Delete(ctx, manifest.Object); err != nil {
		return fmt.Errorf("save snapshot %s: %w (and %s stays: %w)", s.Name, cause, s.store.Location(manifest.Object), err)
	}
	return fmt.Errorf("save snapshot %s: %w", s.Name, cause)
}
