package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/coreos/go-semver/semver"
)

// RestoreOptions says of which member a data directory is made.
type RestoreOptions struct {
	// DataDir is made. It must not be there, or be empty. What is beside it, with the ending
	// ".restoring", is used meanwhile.
	DataDir string
	// WALDir is the directory of the write-ahead log, where it is not within DataDir. It must be on
	// the same terms.
	WALDir string

	// Name, InitialCluster, Token and PeerURLs are as etcd's --name, --initial-cluster,
	// --initial-cluster-token and --initial-advertise-peer-urls. All members are made of one
	// snapshot, with the same InitialCluster and Token: a token that no cluster had before, so that
	// no member of before takes them for its own.
	Name, InitialCluster, Token string
	PeerURLs                    []string

	// EtcdVersion is the version that will run, such as 3.6.16. Empty: it is not compared with the
	// snapshot.
	EtcdVersion string
	// QuotaBytes is the quota of the etcd that will run. A larger snapshot is refused. 0: it is not
	// compared.
	QuotaBytes int64

	// BumpRevision is added to the revision, so that no client sees revisions go back (T46).
	// Default: 1,000,000,000.
	BumpRevision uint64
	// KeepRevisions adds nothing, and leaves the history as it was. Otherwise all of the history is
	// marked as compacted, so that watches of before end with an error, and do not miss anything in
	// silence.
	KeepRevisions bool

	// AuthOff has the etcd serve without authentication. It is for a verification, which has no
	// password, and whose etcd no other client reaches.
	AuthOff bool

	// Origin is what the directory says that it was made of. Default: the SHA-256 of the snapshot.
	Origin string

	// Again makes nothing of a directory that this very restore has made before: of the same
	// snapshot, for the same member.
	Again bool
}

// defaultBump is more than a cluster writes between a snapshot and its loss: a week at 1,600 writes
// in a second.
const defaultBump = 1_000_000_000

// Restore makes a data directory of a plain file of a snapshot. It is made beside, read again, and
// written to the disk before it gets its name: a damaged snapshot, or a restore that was
// interrupted, never becomes a data directory.
func Restore(ctx context.Context, file string, o RestoreOptions) error {
	if err := o.valid(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	d, err := Describe(ctx, file)
	if err != nil {
		return err
	}
	m := Manifest{Name: file, Size: d.Size, SHA256: d.SHA256, Revision: d.Revision, TotalKeys: d.TotalKeys}
	return o.restore(ctx, m, func(to io.Writer) error { return copyOf(ctx, m, to) })
}

// RestoreStored restores a stored snapshot, and compares what Fetch and Restore compare. No plain
// file is on the way: the stream is written where the database will be, and its hashes are computed
// as it passes by.
func RestoreStored(ctx context.Context, store Store, name string, fetch FetchOptions, o RestoreOptions) (Manifest, error) {
	if err := o.valid(); err != nil {
		return Manifest{}, fmt.Errorf("restore: %w", err)
	}
	m, err := ReadManifest(ctx, store, name)
	if err != nil {
		return Manifest{}, err
	}
	return m, o.restore(ctx, m, func(to io.Writer) error { return unpack(ctx, store, m, to, fetch) })
}

// restore what write writes, which compares the size and the hashes of m.
func (o RestoreOptions) restore(ctx context.Context, m Manifest, write func(io.Writer) error) error {
	if err := o.refuses(Description{Size: m.Size}); err != nil {
		return fmt.Errorf("restore %s: %w", m.Name, err)
	}
	s, err := o.stage()
	if err != nil {
		return fmt.Errorf("restore %s: %w", m.Name, err)
	}
	defer s.release()
	var notWritten error // it names the snapshot
	err = s.restore(ctx, m, func(to io.Writer) error {
		notWritten = write(to)
		return notWritten
	})
	if err != nil && notWritten == nil {
		return fmt.Errorf("restore %s: %w", m.Name, err)
	}
	return err
}

func (o RestoreOptions) valid() error {
	for _, given := range []struct{ what, value string }{
		{"a data directory", o.DataDir}, {"the name of the member", o.Name}, {"the initial cluster (NAME=PEER-URL,...)", o.InitialCluster},
		{"a token that no cluster had before", o.Token}, {"the peer URLs of the member", strings.Join(o.PeerURLs, ",")},
	} {
		if given.value == "" {
			return fmt.Errorf("give %s", given.what)
		}
	}
	if o.KeepRevisions && o.BumpRevision > 0 {
		return errors.New("revisions can be kept, or bumped: give one of both")
	}
	if o.BumpRevision > math.MaxInt64/2 {
		return fmt.Errorf("the revision cannot be bumped by %d: the most is %d", o.BumpRevision, int64(math.MaxInt64/2))
	}
	return nil
}

// refuses says why an etcd would not serve the snapshot.
func (o RestoreOptions) refuses(d Description) error {
	if o.QuotaBytes > 0 && d.Size > o.QuotaBytes {
		return fmt.Errorf("%w: it has %d bytes, and the quota is %d: raise the quota", ErrTooLarge, d.Size, o.QuotaBytes)
	}
	if o.EtcdVersion == "" || d.StorageVersion == "" { // etcd 3.5 writes none, and is the oldest
		return nil
	}
	will, err := semver.NewVersion(strings.TrimPrefix(o.EtcdVersion, "v"))
	if err != nil {
		return fmt.Errorf("etcd version %q: write it as 3.6.16", o.EtcdVersion)
	}
	was, err := semver.NewVersion(d.StorageVersion)
	if err != nil {
		return fmt.Errorf("storage version %q: %w", d.StorageVersion, err)
	}
	if cmp.Or(cmp.Compare(will.Major, was.Major), cmp.Compare(will.Minor, was.Minor)) < 0 {
		return fmt.Errorf("%w: it is of etcd %d.%d, and etcd %s cannot read that: take an etcd %d.%d or newer",
			ErrTooOld, was.Major, was.Minor, o.EtcdVersion, was.Major, was.Minor)
	}
	return nil
}

// bump is how much is added to the revision.
func (o RestoreOptions) bump() uint64 {
	if o.KeepRevisions {
		return 0
	}
	return cmp.Or(o.BumpRevision, defaultBump)
}

// check reads what was written.
func (o RestoreOptions) check(ctx context.Context, dataDir string, from Description) error {
	got, err := describeDatabase(ctx, databaseIn(dataDir))
	if err != nil {
		return err
	}
	want := from
	if bump := o.bump(); bump > 0 {
		// The last revision that is written is bumped: compaction may have reached further, by a
		// revision that it removed.
		want.Revision, want.Compacted, want.TotalKeys = got.Revision, got.Revision, from.TotalKeys+1
		if got.Revision <= from.Revision {
			return fmt.Errorf("the restored revision is %d, and that of the snapshot %d", got.Revision, from.Revision)
		}
	}
	if got.Revision != want.Revision || got.Compacted != want.Compacted || got.TotalKeys != want.TotalKeys {
		return fmt.Errorf("the restored database has revision %d, compacted %d, with %d keys, instead of %d, %d, %d",
			got.Revision, got.Compacted, got.TotalKeys, want.Revision, want.Compacted, want.TotalKeys)
	}
	return nil
}

// syncAll has all that is below a directory on the disk.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncFile(path)
	})
}
