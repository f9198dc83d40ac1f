package node

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCachedBuildsOnce(t *testing.T) {
	t.Setenv("QUORATE_CACHE", t.TempDir())
	var builds atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			dir, err := cached(t.Context(), "thing", func(dir string) error {
				builds.Add(1)
				return os.WriteFile(filepath.Join(dir, "result"), []byte("complete"), 0o644)
			})
			if err != nil {
				t.Errorf("cached: %v", err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(dir, "result")); err != nil || string(got) != "complete" {
				t.Errorf("a caller saw %q, %v", got, err)
			}
		})
	}
	callers.Wait()
	if got := builds.Load(); got != 1 {
		t.Errorf("built %d times", got)
	}
}

func TestCachedAfterInterruption(t *testing.T) {
	t.Setenv("QUORATE_CACHE", t.TempDir())
	interrupted := errors.New("interrupted")
	_, err := cached(t.Context(), "thing", func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return interrupted
	})
	if !errors.Is(err, interrupted) {
		t.Fatalf("error %v, want the one of the build", err)
	}
	dir, err := cached(t.Context(), "thing", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "result"), nil, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(dir, "half")) {
		t.Error("what the interrupted build left is in the result")
	}
}
