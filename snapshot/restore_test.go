package snapshot

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// restored is a plain file, and where its data directory will be.
type restored struct {
	file, parent string
	options      RestoreOptions
	says         Description
}

func newRestored(t *testing.T) *restored {
	t.Helper()
	d := newDatabase(t)
	d.write(30, 300)
	d.compact(d.Rev() - 50)
	d.stored(6)
	r := &restored{file: file(t, d.snapshot()), parent: t.TempDir()}
	r.options = restoreOptions(filepath.Join(r.parent, "data"))
	var err error
	if r.says, err = Describe(t.Context(), r.file); err != nil {
		t.Fatal(err)
	}
	return r
}

// tree is what is below a directory: the directories, and the files that there is one of.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if rel, _ := filepath.Rel(dir, path); entry.IsDir() || entry.Name() == "db" || entry.Name() == filepath.Base(originFile) {
			paths = append(paths, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestRestore: what is in the data directory, with its revisions bumped and kept.
func TestRestore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*RestoreOptions)
		want   func(Description) Description
		wal    bool
	}{
		"Bumped": {"revisions never go back, and watchers of before end", func(*RestoreOptions) {}, func(d Description) Description {
			d.Revision += defaultBump
			d.Compacted, d.TotalKeys = d.Revision, d.TotalKeys+1
			return d
		}, false},
		"BumpedBy": {"by as much as was asked for", func(o *RestoreOptions) { o.BumpRevision = 7 }, func(d Description) Description {
			d.Revision += 7
			d.Compacted, d.TotalKeys = d.Revision, d.TotalKeys+1
			return d
		}, false},
		"Kept":   {"the history is there", func(o *RestoreOptions) { o.KeepRevisions = true }, func(d Description) Description { return d }, false},
		"WALDir": {"the log is elsewhere", func(o *RestoreOptions) { o.KeepRevisions = true }, func(d Description) Description { return d }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestored(t)
			want := []string{".", "data", "data/member", "data/member/restored.json", "data/member/snap", "data/member/snap/db", "data/member/wal"}
			if tc.wal {
				r.options.WALDir = filepath.Join(r.parent, "log")
				want = append(want[:6:6], "log")
			}
			tc.change(&r.options)
			if err := Restore(t.Context(), r.file, r.options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, tree(t, r.parent)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			got, err := describeDatabase(t.Context(), filepath.Join(r.options.DataDir, "member/snap/db"))
			if err != nil {
				t.Fatal(err)
			}
			expected := tc.want(r.says)
			expected.Size, expected.SHA256 = 0, ""
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRestoreRefused: nothing is made, and the error says what to do.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*restored)
		want   error
		says   string
	}{
		"TooOld":    {"a 3.5 cannot read what a 3.6 has written", func(r *restored) { r.options.EtcdVersion = "3.5.35" }, ErrTooOld, "take an etcd 3.6 or newer"},
		"NoVersion": {"no version", func(r *restored) { r.options.EtcdVersion = "latest" }, nil, "write it as 3.6.16"},
		"TooLarge":  {"it would raise the alarm at once", func(r *restored) { r.options.QuotaBytes = r.says.Size - 1 }, ErrTooLarge, "raise the quota"},
		"NotEmpty":  {"data of before is not touched", func(r *restored) { write(r.options.DataDir, "member/wal/0.wal") }, nil, "is not empty"},
		"WALThere": {"a log of before is not touched", func(r *restored) {
			r.options.WALDir = filepath.Join(r.parent, "log")
			write(r.options.WALDir, "0.wal")
		}, nil, "is not empty"},
		"NoToken":      {"a token of before would let members of before in", func(r *restored) { r.options.Token = "" }, nil, "give a token"},
		"NoName":       {"it has no name", func(r *restored) { r.options.Name = "" }, nil, "give the name"},
		"NotListed":    {"it is not in the initial cluster", func(r *restored) { r.options.Name = "db-7" }, nil, "db-7"},
		"OtherPeerURL": {"it is in it with another URL", func(r *restored) { r.options.PeerURLs = []string{"http://10.9.9.9:2380"} }, nil, "10.9.9.9"},
		"KeptAndBump":  {"it cannot be both", func(r *restored) { r.options.KeepRevisions, r.options.BumpRevision = true, 5 }, nil, "one of both"},
		"FarBump":      {"there is an end", func(r *restored) { r.options.BumpRevision = 1 << 63 }, nil, "the most is"},
		"NoFile":       {"no snapshot", func(r *restored) { r.file += "x" }, fs.ErrNotExist, "read snapshot"},
		"NotTheParent": {"there is nothing beside", func(r *restored) { r.options.DataDir = r.file + "/data" }, syscall.ENOTDIR, "beside the data directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestored(t)
			tc.change(r)
			before := tree(t, r.parent)
			err := Restore(t.Context(), r.file, r.options)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: want %v that says %q, got %v", tc.reason, tc.want, tc.says, err)
			}
			if diff := cmp.Diff(before, tree(t, r.parent)); diff != "" {
				t.Errorf("%s: what is there: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// write an empty file, and its directories.
func write(dir, file string) {
	path := filepath.Join(dir, file)
	_ = os.MkdirAll(filepath.Dir(path), 0o700) // the next line fails as well
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		panic(err)
	}
}

// TestVersionRule: an etcd of the minor of the snapshot, or of a newer one.
func TestVersionRule(t *testing.T) {
	t.Parallel()
	for _, was := range []string{"", "3.6.0", "3.7.0"} {
		for _, will := range []string{"3.5.35", "3.6.16", "v3.6.16", "3.7.3", "4.0.0", ""} {
			err := RestoreOptions{EtcdVersion: will}.refuses(Description{StorageVersion: was})
			refused := errors.Is(err, ErrTooOld)
			if want := will != "" && was != "" && strings.TrimPrefix(will, "v")[:3] < was[:3]; refused != want {
				t.Errorf("a snapshot of %q for an etcd %q: refused %t, want %t: %v", was, will, refused, want, err)
			}
		}
	}
}

// TestRestoreAgain: an init container may run twice.
func TestRestoreAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*testing.T, *restored)
		fails  bool
	}{
		"Same":     {"nothing is done the second time", func(_ *testing.T, r *restored) { r.options.Again = true }, false},
		"NotAsked": {"without being asked for, it is refused", func(*testing.T, *restored) {}, true},
		"OtherMember": {"it is another member's", func(_ *testing.T, r *restored) {
			r.options.Again, r.options.Name, r.options.PeerURLs = true, "db-1", []string{"http://10.0.0.2:2380"}
		}, true},
		"OtherToken":    {"it is of another restore", func(_ *testing.T, r *restored) { r.options.Again, r.options.Token = true, "third" }, true},
		"OtherSnapshot": {"it is of another snapshot", func(t *testing.T, r *restored) { r.options.Again, r.file = true, newRestoredOther(t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestored(t)
			if err := Restore(t.Context(), r.file, r.options); err != nil {
				t.Fatal(err)
			}
			// Since then etcd has run.
			database := filepath.Join(r.options.DataDir, "member/snap/db")
			if err := os.WriteFile(database, []byte("served"), 0o600); err != nil {
				t.Fatal(err)
			}
			before := tree(t, r.parent)
			tc.change(t, r)
			if err := Restore(t.Context(), r.file, r.options); (err != nil) != tc.fails {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if got, err := os.ReadFile(database); err != nil || !bytes.Equal([]byte("served"), got) {
				t.Errorf("%s: the database was touched: %v", tc.reason, err)
			}
			if diff := cmp.Diff(before, tree(t, r.parent)); diff != "" {
				t.Errorf("%s: what is there: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func newRestoredOther(t *testing.T) string {
	t.Helper()
	d := newDatabase(t)
	d.write(31, 20)
	return file(t, d.snapshot())
}

// TestRestoreInterrupted: a restore that was killed at any moment is done again, or finished, by
// the next.
func TestRestoreInterrupted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		until  func(*testing.T, *restored) // what was done before
	}{
		"Empty":    {"the stage was made", func(_ *testing.T, r *restored) { write(r.options.DataDir+stageSuffix, ".x") }},
		"HalfCopy": {"a part of the database was copied", func(_ *testing.T, r *restored) { write(r.options.DataDir+stageSuffix, "member/snap/db") }},
		"NoOrigin": {"all was written, but that it was", func(t *testing.T, r *restored) {
			r.interrupt(t, func(s *stage) { _ = os.Remove(filepath.Join(s.dir, originFile)) })
		}},
		"Complete": {"it was not renamed yet", func(t *testing.T, r *restored) { r.interrupt(t, func(*stage) {}) }},
		"Log": {"the log was renamed, the data directory not yet", func(t *testing.T, r *restored) {
			r.interrupt(t, func(s *stage) { _ = os.Rename(s.wal, s.WALDir) })
		}},
		"OtherSnapshot": {"what is complete is of another snapshot", func(t *testing.T, r *restored) {
			own := r.file
			r.file = newRestoredOther(t)
			r.interrupt(t, func(*stage) {})
			r.file = own
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestored(t)
			r.options.WALDir = filepath.Join(r.parent, "log")
			tc.until(t, r)
			if err := Restore(t.Context(), r.file, r.options); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := []string{".", "data", "data/member", "data/member/restored.json", "data/member/snap", "data/member/snap/db", "log"}
			if diff := cmp.Diff(want, tree(t, r.parent)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			want = []string{"0000000000000000-0000000000000000.wal"}
			if diff := cmp.Diff(want, names(t, filepath.Join(r.parent, "log"))); diff != "" {
				t.Errorf("%s: the log: -want +got:\n%s", tc.reason, diff)
			}
			got, err := describeDatabase(t.Context(), filepath.Join(r.options.DataDir, "member/snap/db"))
			if err != nil || got.Revision != r.says.Revision+defaultBump {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// interrupt a restore when its stage is complete.
func (r *restored) interrupt(t *testing.T, then func(*stage)) {
	t.Helper()
	d, err := Describe(t.Context(), r.file)
	if err != nil {
		t.Fatal(err)
	}
	m := Manifest{Name: r.file, Size: d.Size, SHA256: d.SHA256, Revision: d.Revision, TotalKeys: d.TotalKeys}
	s, err := r.options.stage()
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	if err := s.make(t.Context(), m, func(to io.Writer) error { return copyOf(t.Context(), m, to) }, origin{SHA256: d.SHA256, Member: s.Name, Token: s.Token}); err != nil {
		t.Fatal(err)
	}
	then(s)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".tmp") }) // etcd makes the next ahead
}

// TestRestoreTwiceAtOnce: the second is refused while the first runs, and leaves it alone.
func TestRestoreTwiceAtOnce(t *testing.T) {
	t.Parallel()
	r := newRestored(t)
	first, err := r.options.stage()
	if err != nil {
		t.Fatal(err)
	}
	write(first.dir, "half")
	if err := Restore(t.Context(), r.file, r.options); err == nil || !strings.Contains(err.Error(), "another restore") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"half"}, names(t, first.dir)); diff != "" {
		t.Errorf("what the first has made: -want +got:\n%s", diff)
	}
	first.release()
	if err := Restore(t.Context(), r.file, r.options); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}
