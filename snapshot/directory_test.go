package snapshot

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openTestDirectory(t *testing.T, dir string) Store {
	t.Helper()
	s, err := OpenStore(t.Context(), Config{Directory: &Directory{Path: dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // some are closed before
	return s
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	testStore(t, func(t *testing.T) Store { return openTestDirectory(t, t.TempDir()) })
}

// TestDirectoryFiles looks at the files themselves.
func TestDirectoryFiles(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		before func(t *testing.T, dir string)
		run    func(t *testing.T, s Store, dir string)
		want   []string // files after it
	}{
		"Whole": {
			reason: "While an object is written no file has its name, and afterwards no other file is left.",
			run: func(t *testing.T, s Store, dir string) {
				err := s.Create(t.Context(), "a/b", func(w io.Writer) error {
					_, err := w.Write([]byte("half"))
					if _, statErr := os.Stat(filepath.Join(dir, "a", "b")); !errors.Is(statErr, os.ErrNotExist) {
						t.Errorf("while it is written: %v, want %v", statErr, os.ErrNotExist)
					}
					if keys := list(t, s, ""); keys != nil {
						t.Errorf("while it is written, the list has %v", keys)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			},
			want: []string{"a/b"},
		},
		"Failed": {
			reason: "A failed write leaves no file.",
			run: func(t *testing.T, s Store, _ string) {
				if err := s.Create(t.Context(), "a", func(io.Writer) error { return errors.New("no") }); err == nil {
					t.Error("got no error")
				}
			},
		},
		"Leftovers": {
			reason: "What a killed write has left is listed never, and removed when it is old.",
			before: func(t *testing.T, dir string) {
				long := time.Now().Add(-partialAge - time.Hour)
				for name, modified := range map[string]time.Time{".a.x.partial": long, ".b.x.partial": time.Now(), "c.partial": long, ".d": long} {
					writeFile(t, filepath.Join(dir, name), modified)
				}
			},
			run: func(t *testing.T, s Store, _ string) {
				create(t, s, "e", nil)
				if diff := cmp.Diff([]string{"c.partial", "e"}, list(t, s, "")); diff != "" {
					t.Errorf("list: -want +got:\n%s", diff)
				}
			},
			want: []string{".b.x.partial", ".d", "c.partial", "e"},
		},
		"LostAndFound": {
			reason: "What a file system keeps at its top is no object.",
			before: func(t *testing.T, dir string) {
				if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, "lost+found", "#12"), time.Now())
			},
			run: func(t *testing.T, s Store, _ string) {
				if keys := list(t, s, ""); keys != nil {
					t.Errorf("got %v", keys)
				}
			},
			want: []string{"lost+found/#12"},
		},
		"SymbolicLinks": {
			reason: "No link leads out of the directory.",
			before: func(t *testing.T, dir string) {
				if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
					t.Fatal(err)
				}
			},
			run: func(t *testing.T, s Store, _ string) {
				if _, err := s.Open(t.Context(), "out/hostname"); err == nil {
					t.Error("a file outside of the directory was opened")
				}
				if err := s.Create(t.Context(), "out/quorate-test", func(io.Writer) error { return nil }); err == nil {
					t.Error("a file outside of the directory was created")
				}
				if keys := list(t, s, ""); keys != nil {
					t.Errorf("got %v", keys)
				}
			},
			want: []string{"out"},
		},
		"NoHardLinks": {
			reason: "Without hard links a file is renamed, where none is.",
			run: func(t *testing.T, s Store, dir string) {
				d := s.(*directory)
				for _, name := range []string{"one", "two"} {
					writeFile(t, filepath.Join(dir, name), time.Now())
				}
				if err := d.renameIfAbsent("one", "a"); err != nil {
					t.Error(err)
				}
				if err := d.renameIfAbsent("two", "a"); !errors.Is(err, os.ErrExist) {
					t.Errorf("got %v, want %v", err, os.ErrExist)
				}
			},
			want: []string{"a", "two"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tc.before != nil {
				tc.before(t, dir)
			}
			s := openTestDirectory(t, dir)
			t.Log(tc.reason)
			tc.run(t, s, dir)
			if diff := cmp.Diff(tc.want, files(t, dir)); diff != "" {
				t.Errorf("files: -want +got:\n%s", diff)
			}
		})
	}
}

func TestDirectoryMissing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, time.Now())
	for name, dir := range map[string]string{"Missing": filepath.Join(t.TempDir(), "missing"), "File": file} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := OpenStore(t.Context(), Config{Directory: &Directory{Path: dir}})
			wantReason(t, err, ReasonNoSuchBucket, nil)
			if !strings.Contains(err.Error(), "mount the volume") {
				t.Errorf("%v: it does not say what to do", err)
			}
		})
	}
}

// TestDirectoryRead shows that an error of reading names the store.
func TestDirectoryRead(t *testing.T) {
	t.Parallel()
	s := openTestDirectory(t, t.TempDir())
	create(t, s, "a", bytes.Repeat([]byte("x"), 1<<20))
	r, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	_, err = r.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), s.Location("a")) {
		t.Errorf("got %v, want the location and %v", err, os.ErrClosed)
	}
}

func writeFile(t *testing.T, name string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, modified, modified); err != nil {
		t.Fatal(err)
	}
}

// files are all files below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, err = filepath.Rel(dir, name)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
