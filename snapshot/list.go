package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Stored is a snapshot as a store has it.
type Stored struct {
	Manifest Manifest `json:"manifest"`
	// Verification is nil where it was not verified, or another of its name was.
	Verification *Verification `json:"verification,omitempty"`
	// Damaged is why it is of no use, as far as that shows without reading its data. Of the
	// manifest, the name alone is sure then.
	Damaged error `json:"-"`
	// Modified is when the store got the manifest, by the store's clock; zero: it does not tell.
	Modified time.Time `json:"-"`
}

// readAtOnce is how many manifests are read at a time: they are small, and far away.
const readAtOnce = 8

// List reads the manifests and verifications of a store: the newest first, and those that cannot be
// read last. Of one cluster ID, the newest is the one with the highest revision, whatever the times
// in the manifests say.
func List(ctx context.Context, store Store) ([]Stored, error) { return listOf(ctx, store, "") }

// Named is the List of the one snapshot of that name, and empty where there is none. Nothing of
// another snapshot is read.
func Named(ctx context.Context, store Store, name string) ([]Stored, error) {
	if !validName.MatchString(name) {
		return nil, nil
	}
	return listOf(ctx, store, name)
}

// listOf is of one snapshot, or of all where no name is given.
func listOf(ctx context.Context, store Store, only string) ([]Stored, error) {
	prefix := ""
	if only != "" {
		prefix = only + "."
	}
	objects := map[string]Object{}
	if err := store.List(ctx, prefix, func(o Object) error { objects[o.Key] = o; return nil }); err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var stored []Stored
	var mutex sync.Mutex // of stored
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(readAtOnce)
	for key := range objects {
		name, is := strings.CutSuffix(key, manifestKey(""))
		if !is || checkName(name) != nil || only != "" && name != only {
			continue // not ours, or not wanted
		}
		all.Go(func() error {
			s, err := readStored(ctx, store, name, objects)
			if errors.Is(err, ErrNoManifest) {
				return nil // it was deleted meanwhile
			}
			mutex.Lock()
			defer mutex.Unlock()
			stored = append(stored, s)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(stored, func(a, b Stored) int { return strings.Compare(a.Manifest.Name, b.Manifest.Name) })
	newestFirst(stored)
	return stored, nil
}

// newestFirst sorts snapshots. Those of one cluster ID are in the order of their revisions, for
// which no clock is needed. Those of different ones are in the order of the times when they were
// taken. That is by the clock of a node: where it is after a later revision was taken, or after the
// store got the snapshot, that earlier time counts.
func newestFirst(stored []Stored) {
	slices.SortStableFunc(stored, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(b.Manifest.Revision, a.Manifest.Revision), b.Manifest.TakenAt.Compare(a.Manifest.TakenAt))
	})
	type times struct{ known, said time.Time } // with the store's clock, and without
	taken, next := map[string]times{}, map[string]times{}
	for _, s := range stored {
		later := next[s.Manifest.ClusterID]
		at := times{known: earliest(s.Manifest.TakenAt, later.known, s.Modified), said: earliest(s.Manifest.TakenAt, later.said)}
		taken[s.Manifest.Name], next[s.Manifest.ClusterID] = at, at
	}
	slices.SortStableFunc(stored, func(a, b Stored) int {
		x, y := taken[a.Manifest.Name], taken[b.Manifest.Name]
		return cmp.Or(y.known.Compare(x.known), y.said.Compare(x.said)) // a store may have one time for all
	})
}

// earliest of times; those that are zero, after the first one, do not count.
func earliest(t time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if !other.IsZero() && other.Before(t) {
			t = other
		}
	}
	return t
}

func readStored(ctx context.Context, store Store, name string, objects map[string]Object) (Stored, error) {
	manifest, err := ReadManifest(ctx, store, name)
	switch {
	case errors.Is(err, ErrNoManifest), err != nil && ofTheStore(ctx, err):
		return Stored{}, err
	case err != nil:
		return Stored{Manifest: Manifest{Name: name}, Damaged: err}, nil //nolint:nilerr // it is listed, with what is wrong with it
	}
	s := Stored{Manifest: manifest, Modified: objects[manifestKey(name)].Modified}
	switch data, there := objects[manifest.Object]; {
	case !there:
		s.Damaged = &Damage{Name: name, Check: CheckStoredSize, Detail: "the object " + store.Location(manifest.Object) + " is not there"}
	case data.Size != manifest.StoredSize:
		s.Damaged = &Damage{Name: name, Check: CheckStoredSize, Detail: fmt.Sprintf("the object has %d bytes, not %d", data.Size, manifest.StoredSize)}
	}
	if _, there := objects[verificationKey(name)]; there {
		s.Verification, err = readVerification(ctx, store, manifest)
		switch {
		case err != nil && ofTheStore(ctx, err):
			return Stored{}, err
		case err != nil:
			s.Damaged = err // it may have been verified: it stays, and does not count
		}
	}
	return s, nil
}

// ofTheStore tells whether an object was not read because nothing can be read now. What is read
// later may be the newest: a list without it would lead to an older one. Any other error is of the
// object alone.
func ofTheStore(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	failed, is := errors.AsType[*StoreError](err)
	if !is {
		return false
	}
	return slices.Contains([]Reason{
		ReasonNoSuchBucket, ReasonNoCredentials, ReasonInvalidCredentials, ReasonCredentialsExpired,
		ReasonClockSkew, ReasonUnreachable, ReasonUntrustedCertificate, ReasonBusy,
	}, failed.Reason)
}

// readVerification is nil where there is none of this very snapshot: one that cannot be read proves
// nothing.
func readVerification(ctx context.Context, store Store, m Manifest) (*Verification, error) {
	var v Verification
	switch err := readJSON(ctx, store, verificationKey(m.Name), &v); {
	case errors.Is(err, ErrNotFound), errors.Is(err, errSyntax):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the verification of snapshot %s: %w", m.Name, err)
	}
	if v.Name != m.Name || v.SHA256 != m.SHA256 || v.Format > Format || v.Mode != ModeHash && v.Mode != ModeRestore {
		return nil, nil
	}
	return &v, nil
}

// Selection says which snapshot is wanted.
type Selection struct {
	// Name is that of a snapshot. Empty, or "latest", is the newest that fits the rest.
	Name string
	// Before is a time that it was taken before, or at. Zero is no bound.
	Before time.Time
	// Cluster and ClusterID are those of its manifest, where they are set.
	Cluster, ClusterID string
	// VerifiedOnly leaves out those that were not verified.
	VerifiedOnly bool
}

// latest is the name by which the newest is asked for.
const latest = "latest"

// Select returns the snapshot that is wanted of those that List returned. ErrNotFound says what
// there is instead; ErrDamaged and ErrOtherCluster are of one that was asked for by its name.
func Select(stored []Stored, wanted Selection) (Stored, error) {
	byName := wanted.Name != "" && wanted.Name != latest
	fits := slices.DeleteFunc(slices.Clone(stored), func(s Stored) bool {
		if byName {
			return s.Manifest.Name != wanted.Name
		}
		return s.Damaged != nil || wanted.refuses(s) != nil
	})
	switch {
	case len(fits) == 0:
		return Stored{}, fmt.Errorf("snapshot %s: %w%s", wanted, ErrNotFound, there(stored))
	case fits[0].Damaged != nil:
		return Stored{}, fits[0].Damaged
	case byName:
		return fits[0], wanted.refuses(fits[0])
	case wanted.Cluster == "" && wanted.ClusterID == "":
		if other := slices.IndexFunc(fits, func(s Stored) bool { return s.Manifest.Cluster != fits[0].Manifest.Cluster }); other >= 0 {
			return Stored{}, fmt.Errorf("the store has snapshots of several clusters, among them %q and %q: say of which one, or name the snapshot",
				fits[0].Manifest.Cluster, fits[other].Manifest.Cluster)
		}
	}
	return fits[0], nil
}

// refuses says why a snapshot is not one that is wanted.
func (w Selection) refuses(s Stored) error {
	m := s.Manifest
	switch {
	case w.Cluster != "" && m.Cluster != w.Cluster, w.ClusterID != "" && m.ClusterID != w.ClusterID:
		return fmt.Errorf("snapshot %s: %w: it is of cluster %q with ID %s", m.Name, ErrOtherCluster, m.Cluster, m.ClusterID)
	case !w.Before.IsZero() && m.TakenAt.After(w.Before):
		return fmt.Errorf("snapshot %s: %w before %s: it was taken at %s", m.Name, ErrNotFound, when(w.Before), when(m.TakenAt))
	case w.VerifiedOnly && s.Verification == nil:
		return fmt.Errorf("snapshot %s: %w among those that were verified", m.Name, ErrNotFound)
	}
	return nil
}

func when(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// String is the selection in words.
func (w Selection) String() string {
	words := []string{cmp.Or(w.Name, latest)}
	if !w.Before.IsZero() {
		words = append(words, "before "+when(w.Before))
	}
	if w.Cluster != "" {
		words = append(words, "of cluster "+w.Cluster)
	}
	if w.ClusterID != "" {
		words = append(words, "of cluster ID "+w.ClusterID)
	}
	if w.VerifiedOnly {
		words = append(words, "that was verified")
	}
	return strings.Join(words, " ")
}

// maxThere bounds the snapshots that an error lists.
const maxThere = 10

// there says what there is.
func there(stored []Stored) string {
	if len(stored) == 0 {
		return ": the store has no snapshots"
	}
	var words []string
	for _, s := range stored[:min(len(stored), maxThere)] {
		word := s.Manifest.Name
		if s.Damaged != nil {
			word += " (damaged)"
		} else {
			word += fmt.Sprintf(" (%s, cluster %s %s)", when(s.Manifest.TakenAt), s.Manifest.Cluster, s.Manifest.ClusterID)
		}
		words = append(words, word)
	}
	if more := len(stored) - maxThere; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return ": there are " + strings.Join(words, ", ")
}

// DeleteOf removes a snapshot that is of the cluster with that ID, as Delete does. One whose
// manifest is of another cluster is ErrOtherCluster, and nothing of it is removed. What has no
// manifest, or one that cannot be understood, goes by its name, and so does all without an ID.
// Where the store does not let the manifest be read it may not be there: some answer so.
func DeleteOf(ctx context.Context, store Store, name, clusterID string) error {
	if clusterID == "" {
		return Delete(ctx, store, name)
	}
	m, err := ReadManifest(ctx, store, name)
	refused, is := errors.AsType[*StoreError](err)
	switch {
	case err == nil && m.ClusterID != clusterID:
		return fmt.Errorf("delete snapshot %s: %w: it is of cluster %q with ID %s, and that of cluster ID %s is to be deleted: it stays in the store",
			name, ErrOtherCluster, m.Cluster, m.ClusterID, clusterID)
	case err == nil, errors.Is(err, ErrNoManifest), errors.Is(err, ErrDamaged), is && refused.Reason == ReasonAccessDenied:
		return Delete(ctx, store, name)
	}
	return fmt.Errorf("delete snapshot %s: %w", name, err)
}

// Delete removes a snapshot, the manifest first: what is left of it, should the rest fail, does not
// count. Deleting again goes on.
func Delete(ctx context.Context, store Store, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for _, key := range []string{manifestKey(name), verificationKey(name), dataKey(name, false), dataKey(name, true)} {
		if err := store.Delete(ctx, key); err != nil {
			return fmt.Errorf("delete snapshot %s: %w", name, err)
		}
	}
	return nil
}
