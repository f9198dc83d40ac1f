package snapshot

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestOpenSocket: a socket is reached however long the name of its directory is.
func TestOpenSocket(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   string // the directory
	}{
		"Short": {reason: "its own path does", args: "d"},
		"Long":  {reason: "its own path has more than a socket may have", args: strings.Repeat("d", longestSocket)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && name == "Long" {
				t.Skip("there is no /proc")
			}
			dir := filepath.Join(t.TempDir(), tc.args)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			s, err := openSocket(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			l, err := net.Listen("unix", s.path)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			defer func() { _ = l.Close() }() // it served nothing
			if _, err := os.Stat(filepath.Join(dir, clientSocket)); err != nil {
				t.Errorf("%s: the socket is not in the directory: %v", tc.reason, err)
			}
		})
	}
}
