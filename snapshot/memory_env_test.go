//go:build env && linux

package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/e2e/node"
)

const (
	memoryBound = 128 << 20
	// memoryOf says in the environment that this process is the one that is measured, with the
	// endpoint to save from.
	memoryOf = "QUORATE_TEST_MEMORY_OF"
)

// TestMemory saves and fetches a database of 400 MiB in a process of its own, and computes the hash
// of all its keys. The memory of that process is bounded. The file that bbolt maps is not counted:
// its pages are the system's, as those of any file are.
func TestMemory(t *testing.T) {
	if endpoint := os.Getenv(memoryOf); endpoint != "" {
		saveMeasured(t, endpoint)
		return
	}
	t.Parallel()
	c := newEtcds(t, node.Etcd37, 1)
	c.form()
	client, random := c.members[0].dial(), rand.NewChaCha8([32]byte{})
	value := make([]byte, 1<<20)
	for n := range 380 {
		_, _ = random.Read(value) // it cannot fail, and what it makes cannot be compressed
		if _, err := client.Put(t.Context(), fmt.Sprintf("large-%d", n), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	small := string(value[:500])
	for batch := range 400 {
		puts := make([]clientv3.Op, 100)
		for n := range puts {
			puts[n] = clientv3.OpPut(fmt.Sprintf("small-%d-%d", batch, n), small)
		}
		if _, err := client.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemory$", "-test.v")
	cmd.Env = append(os.Environ(), memoryOf+"="+url(c.members[0].client))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// saveMeasured is what the process does that is measured.
func saveMeasured(t *testing.T, endpoint string) {
	store, err := OpenStore(t.Context(), Config{Directory: &Directory{Path: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // a test that fails here has failed before
	path := filepath.Join(t.TempDir(), "snapshot.db")
	var m Manifest
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"save", func() (err error) {
			m, err = Save(t.Context(), Source{Endpoints: []string{endpoint}}, store, SaveOptions{Name: "large"})
			return err
		}},
		{"fetch", func() error { _, err := Fetch(t.Context(), store, "large", path, FetchOptions{}); return err }},
		{"hash of all keys", func() error {
			d, err := Describe(t.Context(), path)
			if err == nil {
				_, err = hashKeyspace(t.Context(), path, d)
			}
			return err
		}},
		{"restore", func() error {
			o := restoreOptions(filepath.Join(t.TempDir(), "data"))
			return Restore(t.Context(), path, o)
		}},
	} {
		start, stop := time.Now(), measure(t)
		err := step.do()
		most := stop()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		t.Logf("%s of %d MiB: %d MiB of memory, %s", step.name, m.Size>>20, most>>20, time.Since(start).Round(time.Millisecond))
		if most == 0 || most > memoryBound {
			t.Errorf("%s: %d bytes of memory, and not at most %d", step.name, most, memoryBound)
		}
	}
	if m.Size < 350<<20 {
		t.Errorf("the database has no more than %d bytes", m.Size)
	}
}

var anonymous = regexp.MustCompile(`RssAnon:\s+(\d+) kB`)

// measure the memory of this process, until it is asked for the most that it was.
func measure(t *testing.T) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	most := make(chan int64, 1)
	go func() {
		var peak int64
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for {
			text, _ := os.ReadFile("/proc/self/status") // without it the peak stays 0
			if match := anonymous.FindSubmatch(text); match != nil {
				kib, _ := strconv.ParseInt(string(match[1]), 10, 64)
				peak = max(peak, kib<<10)
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				most <- peak
				return
			}
		}
	}()
	return func() int64 {
		cancel()
		return <-most
	}
}
