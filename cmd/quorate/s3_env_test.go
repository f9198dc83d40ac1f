//go:build env

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
)

// s3 runs an S3 server with a bucket called backups, and returns its address.
func (h *hosts) s3() string {
	h.Helper()
	program, err := node.S3(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	dir := filepath.Join(h.dir, "s3")
	if err := os.MkdirAll(filepath.Join(dir, "backups"), 0o700); err != nil { // a bucket is a directory there
		h.Fatal(err)
	}
	address := loopback(freePorts(h.T))
	server := exec.CommandContext(h.Context(), program, "--quiet", "--access=somebody", "--secret=known-to-nobody", "--region=eu-central-1", "--port="+address, "posix", dir)
	if err := child.Start(server); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()         // by a signal
	})
	again, end := time.NewTicker(50*time.Millisecond), time.After(soon)
	defer again.Stop()
	for {
		if _, err := h.try("exec 3<>/dev/tcp/" + strings.Replace(address, ":", "/", 1)); err == nil {
			return address
		}
		select {
		case <-again.C:
		case <-end:
			h.Fatal("the S3 server does not listen")
		}
	}
}

// TestSnapshotInS3 saves to an S3 server, and restores from it, with the store as
// docs/snapshots-by-hand.md has it.
func TestSnapshotInS3(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.alone()
	h.run("etcdctl --endpoints http://10.0.0.1:2379 put before saved")
	var store string
	for _, command := range documentedCommands(t, byHand, "Stores") {
		if found := documentedStore.FindString(command); found != "" {
			store = found
		}
	}
	h.as = append(h.as, "https://s3.example:9000", "http://"+h.s3())

	const save = "quorate snapshot save --quiet --endpoints http://10.0.0.1:2379 --name first --store "
	if out, err := h.try(h.here(save+store, "")); err == nil || !strings.Contains(out, "AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials it is told where they come from, got %v\n%s", err, out)
	}
	h.env = append(h.env, "AWS_ACCESS_KEY_ID=somebody", "AWS_SECRET_ACCESS_KEY=wrong")
	if out, err := h.try(h.here(save+store, "")); err == nil || !strings.Contains(out, "InvalidCredentials") {
		t.Errorf("with wrong credentials it is told so, got %v\n%s", err, out)
	}
	h.env = append(h.env, "AWS_SECRET_ACCESS_KEY=known-to-nobody")
	if out := h.run(save + store); !strings.Contains(out, "s3://backups/prod/first.db.zst") {
		t.Errorf("it is told where the data is, got\n%s", out)
	}
	if out, err := h.try(h.here(save+store, "")); err == nil || !strings.Contains(out, "exists already: write another --name") {
		t.Errorf("nothing is overwritten, got %v\n%s", err, out)
	}
	if out := h.run("quorate snapshot verify first --store " + store); !strings.Contains(out, "Verified snapshot first: restored, and etcd "+node.Etcd36) {
		t.Errorf("it is told what was verified, got\n%s", out)
	}
	for _, command := range documentedCommands(t, byHand, "Stores") {
		if strings.HasPrefix(command, "quorate ") {
			if out := h.run(command); !strings.Contains(out, "first") || !strings.Contains(out, "Restore") {
				t.Errorf("%s does not show what was verified:\n%s", command, out)
			}
		}
	}
	h.lose()
	h.run("mv /var/lib/etcd /var/lib/etcd.lost")
	out := h.run("quorate snapshot restore latest --data-dir /var/lib/etcd --initial-cluster default=http://10.0.0.1:2380 --store " + store)
	for line := range strings.Lines(out) {
		if command, is := strings.CutPrefix(line, "  etcd "); is {
			h.start("m1", "etcd "+command)
		}
	}
	h.serving("http://10.0.0.1:2379")
	if got := h.run("etcdctl get before --endpoints http://10.0.0.1:2379"); got != "before\nsaved\n" {
		t.Errorf("want what was saved, got %q", got)
	}
}
