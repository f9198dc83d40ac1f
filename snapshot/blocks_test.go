package snapshot

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestBlocks: what is written in stretches is the same file.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		size   int // of all that is written
		most   int // at once
	}{
		"Nothing":   {reason: "there may be nothing", size: 0, most: 1},
		"Small":     {reason: "it is less than a block", size: block - 1, most: 32 << 10},
		"Stretches": {reason: "the disk is waited for twice", size: 4*stretch + 17, most: 100 << 10},
		"Large":     {reason: "more than a stretch is written at once", size: 5 * stretch, most: 2 * stretch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.NewChaCha8([32]byte{byte(tc.most)})
			want := make([]byte, tc.size)
			_, _ = random.Read(want) // it cannot fail
			f, err := os.Create(filepath.Join(t.TempDir(), "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }() // it is read by its name
			to := newBlocks(f)
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+int(random.Uint64()%uint64(tc.most)))
				if _, err := to.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := to.Flush(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s: %d bytes were written, and %d other ones are there", tc.reason, len(want), len(got))
			}
		})
	}
}
