//go:build env && linux

package snapshot

import (
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mountTestVolume mounts a file system of its own, in memory, until the end of the test.
func mountTestVolume(t *testing.T, flags uintptr, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); errors.Is(err, unix.EPERM) {
		t.Skipf("a file system is mounted by root only: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDirectoryVolume keeps what every store promises on a file system other than that of temporary
// files.
func TestDirectoryVolume(t *testing.T) {
	testStore(t, func(t *testing.T) Store { return openTestDirectory(t, mountTestVolume(t, 0, "size=64m")) })
}

// TestDirectoryRefused are volumes that cannot be written.
func TestDirectoryRefused(t *testing.T) {
	cases := map[string]struct {
		reason  string
		flags   uintptr
		options string
		want    Reason
		says    string
	}{
		"Full":     {"The volume is smaller than the object.", 0, "size=1m", ReasonStoreFull, "delete old snapshots"},
		"ReadOnly": {"The volume is mounted without the right to write.", unix.MS_RDONLY, "", ReasonReadOnly, "mount the volume for writing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := mountTestVolume(t, tc.flags, tc.options)
			s := openTestDirectory(t, dir)
			err := s.Create(t.Context(), "a/b", func(w io.Writer) error {
				_, err := w.Write(make([]byte, 2<<20))
				return err
			})
			wantReason(t, err, tc.want, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q: %s", err, tc.says, tc.reason)
			}
			if left := files(t, dir); left != nil {
				t.Errorf("left are %v", left)
			}
		})
	}
}
