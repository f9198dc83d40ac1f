package snapshot

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestoreStored: the data directory is the one that Fetch and Restore make, a damaged object is
// refused as Fetch refuses it, and leaves nothing.
func TestRestoreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.store.objects[f.manifest.Object]
	flipped, lies := bytes.Clone(object), f.manifest
	flipped[len(flipped)/2] ^= 1
	lies.Revision++
	manifest, err := json.Marshal(lies)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		store  Store
		want   Check // empty: it is restored
	}{
		"Whole":    {reason: "it is as it was saved", store: f.store},
		"Flipped":  {reason: "the store has changed a bit", store: f.with(f.manifest.Object, flipped), want: CheckStoredSHA256},
		"Cut":      {reason: "the store has lost the end", store: f.with(f.manifest.Object, object[:len(object)-1]), want: CheckStoredSize},
		"Manifest": {reason: "the manifest says another revision", store: f.with(manifestKey("good"), manifest), want: CheckManifest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := restoreOptions(filepath.Join(dir, "data"))
			_, err := RestoreStored(t.Context(), tc.store, "good", FetchOptions{}, o)
			if tc.want != "" {
				judge(t, tc.reason, err, tc.want)
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("%s: %s is left", tc.reason, left[0].Name())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := restoreOptions(filepath.Join(t.TempDir(), "data"))
			if err := Restore(t.Context(), file(t, f.stream), want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, want.DataDir), tree(t, o.DataDir)); diff != "" {
				t.Errorf("%s: -Restore +RestoreStored:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(readOrigin(want.DataDir), readOrigin(o.DataDir)); diff != "" {
				t.Errorf("%s: -Restore +RestoreStored:\n%s", tc.reason, diff)
			}
		})
	}
}
