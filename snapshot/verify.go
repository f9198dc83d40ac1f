package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func verified(m Manifest, mode Mode) Verification {
	return Verification{Format: Format, Name: m.Name, Mode: mode, At: time.Now().UTC(), SHA256: m.SHA256}
}

// VerifyServed compares what a running etcd serves with a plain file of the snapshot that it was
// restored from. The file must be the manifest's, and the etcd restored with KeepRevisions and
// AuthOff. It waits until the etcd serves, or the context ends. Compared are:
//
//   - the hash of all keys with all their revisions, up to the revision of the manifest: etcd's
//     HashKV, and the same computed from the file;
//   - the number of keys that have a value at that revision: what etcd counts with its index, and
//     what the file has.
func VerifyServed(ctx context.Context, file, endpoint string, m Manifest) (Verification, error) {
	d, err := Describe(ctx, file)
	if err != nil {
		return Verification{}, err
	}
	if err := d.differs(m); err != nil {
		return Verification{}, err
	}
	want, err := hashKeyspace(ctx, file, d)
	if err != nil {
		return Verification{}, err
	}
	served, err := Source{Endpoints: []string{endpoint}}.serving(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("verify snapshot %s: %w", m.Name, err)
	}
	defer served.close()
	got, err := served.keyspace(ctx, d.Revision)
	if err != nil {
		return Verification{}, fmt.Errorf("verify snapshot %s: %w", m.Name, err)
	}
	if got != want {
		return Verification{}, &Damage{Name: m.Name, Check: CheckServed, Detail: fmt.Sprintf("etcd serves %s, and the snapshot has %s", got, want)}
	}
	v := verified(m, ModeRestore)
	v.EtcdVersion, v.Hash = served.version, got.hash
	return v, nil
}

// differs is in what a file is not that of the manifest.
func (d Description) differs(m Manifest) error {
	switch {
	case d.Size != m.Size:
		return &Damage{Name: m.Name, Check: CheckSize, Detail: fmt.Sprintf("the stream has %d bytes, not %d", d.Size, m.Size)}
	case d.SHA256 != m.SHA256:
		return &Damage{Name: m.Name, Check: CheckSHA256, Detail: fmt.Sprintf("it is %s, not %s", d.SHA256, m.SHA256)}
	case d.Revision != m.Revision || d.TotalKeys != m.TotalKeys:
		return &Damage{Name: m.Name, Check: CheckManifest, Detail: fmt.Sprintf("it says revision %d with %d keys, and the data has %d with %d", m.Revision, m.TotalKeys, d.Revision, d.TotalKeys)}
	}
	return nil
}

func (k keyspace) String() string {
	return fmt.Sprintf("%d keys with hash %d at revision %d (compacted %d)", k.live, k.hash, k.revision, k.compacted)
}

// untilServing is how often an etcd is asked that does not serve yet.
const untilServing = 200 * time.Millisecond

// serving waits until an etcd has a leader. It does not wait for one that lets this user in.
func (s Source) serving(ctx context.Context) (*member, error) {
	again := time.NewTicker(untilServing)
	defer again.Stop()
	for {
		m, err := s.askOne(ctx, s.Endpoints[0])
		if err == nil {
			if m.leader != 0 {
				return m, nil
			}
			m.close()
			err = fmt.Errorf("etcd %s has no leader", s.Endpoints[0])
		}
		for _, refused := range []error{rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied} {
			if errors.Is(err, refused) {
				return nil, err
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// keyspace is what the member serves at a revision.
func (m *member) keyspace(ctx context.Context, revision int64) (keyspace, error) {
	hash, err := m.maintenance().HashKV(ctx, &etcdserverpb.HashKVRequest{Revision: revision})
	if err != nil {
		return keyspace{}, m.atRevision("hash of all keys", revision, err)
	}
	count, err := m.client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly(), clientv3.WithRev(revision), clientv3.WithSerializable())
	if err != nil {
		return keyspace{}, m.atRevision("number of all keys", revision, err)
	}
	return keyspace{revision: revision, compacted: max(hash.CompactRevision, 0), hash: hash.Hash, live: count.Count}, nil
}

func (m *member) atRevision(what string, revision int64, err error) error {
	if errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) {
		return fmt.Errorf("%s of etcd %s at revision %d: it is compacted; restore with the revisions kept to compare them: %w", what, m.endpoint, revision, err)
	}
	return fmt.Errorf("%s of etcd %s at revision %d: %w", what, m.endpoint, revision, err)
}

// VerifyOptions says how a stored snapshot is verified.
type VerifyOptions struct {
	// Mode is ModeRestore by default.
	Mode Mode
	// Etcd is the path of an etcd binary, for ModeRestore: of the version of the snapshot, or
	// newer.
	Etcd string
	// Scratch is a directory where there is room for the plain file and the data directory, for
	// ModeRestore. Default: the directory for temporary files. What is made there is removed again.
	Scratch string
	FetchOptions
}

// Verify verifies a stored snapshot, and records it. ModeRestore fetches it, restores it, starts an
// etcd on it that no other client can reach, and compares what that serves.
func Verify(ctx context.Context, store Store, name string, o VerifyOptions) (Verification, error) {
	var v Verification
	var err error
	switch o.Mode {
	case ModeHash:
		v, err = VerifyHash(ctx, store, name, o.FetchOptions)
	case ModeRestore, "":
		v, err = verifyRestored(ctx, store, name, o)
	default:
		err = fmt.Errorf("mode %q: write %s or %s", o.Mode, ModeRestore, ModeHash)
	}
	if err != nil {
		return Verification{}, err
	}
	return v, RecordVerification(ctx, store, v)
}

// RecordVerification writes down that a snapshot was verified. What was recorded of the very same
// snapshot before stays.
func RecordVerification(ctx context.Context, store Store, v Verification) error {
	err := createJSON(ctx, store, verificationKey(v.Name), v)
	if errors.Is(err, ErrExists) {
		recorded, readErr := readVerification(ctx, store, Manifest{Name: v.Name, SHA256: v.SHA256})
		if readErr != nil {
			return readErr
		}
		if recorded != nil {
			return nil
		}
		return fmt.Errorf("record the verification of snapshot %s: one of another snapshot of this name is there, or it cannot be read; delete it: %w", v.Name, err)
	}
	if err != nil {
		return fmt.Errorf("record the verification of snapshot %s: %w", v.Name, err)
	}
	return nil
}
