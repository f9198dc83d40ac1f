//go:build env

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/e2e/node"
	"quorate.dev/snapshot"
)

// alone starts the first member as a cluster of its own.
func (h *hosts) alone() {
	h.Helper()
	h.start("m1", "etcd --name m1 --data-dir /var/lib/etcd --listen-client-urls http://10.0.0.1:2379 --advertise-client-urls http://10.0.0.1:2379 "+
		"--listen-peer-urls http://10.0.0.1:2380 --initial-advertise-peer-urls http://10.0.0.1:2380 --initial-cluster m1=http://10.0.0.1:2380")
	h.serving("http://10.0.0.1:2379")
}

// TestAgentVerifies runs the commands of a Job one after the other, as its containers do: what was
// stored is read back, restored, and served by an etcd.
func TestAgentVerifies(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.alone()
	h.run("etcdctl --endpoints http://10.0.0.1:2379 put a b")
	config := snapshot.Config{Directory: &snapshot.Directory{Path: filepath.Join(h.dir, "backups")}}
	scratch := filepath.Join(h.dir, "m2")
	for _, dir := range []string{config.Directory.Path, scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	agent := func(args ...string) agentResult {
		t.Helper()
		for i, arg := range args {
			args[i] = h.here(arg, "m2")
		}
		result, err := runAgent(t, config, args...)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}

	file := filepath.Join(scratch, "db-1.db")
	saved := agent("save", "--name=db-1", "--endpoints=http://10.0.0.1:2379", "--cluster=team/db", "--keep="+scratch).Manifest
	if saved == nil || saved.Cluster != "team/db" || saved.EtcdVersion != node.Etcd36 {
		t.Fatalf("a save tells what it has saved, got %+v", saved)
	}
	if err := os.Remove(file); err != nil {
		t.Fatalf("a plain copy was to be kept: %v", err)
	}
	fetched := agent("fetch", "--name=db-1", "--file="+file).Manifest
	if diff := cmp.Diff(saved, fetched); diff != "" {
		t.Errorf("-saved, +fetched\n%s", diff)
	}
	restore := []string{
		"restore", "--file=" + file, "--data-dir=/var/lib/etcd", "--name=verify", "--initial-cluster=verify=http://10.0.0.2:2380",
		"--initial-cluster-token=verify", "--bump-revision=0", "--mark-compacted=false", "--etcd-version=" + node.Etcd36,
	}
	agent(restore...)
	agent(restore...) // the container was started again
	h.start("m2", "etcd --name verify --data-dir /var/lib/etcd --listen-client-urls http://10.0.0.2:2379 --advertise-client-urls http://10.0.0.2:2379 "+
		"--listen-peer-urls http://10.0.0.2:2380")
	verified := agent("verify-served", "--name=db-1", "--file="+file, "--endpoint=http://10.0.0.2:2379").Verification
	if verified == nil || verified.Mode != snapshot.ModeRestore || verified.EtcdVersion != node.Etcd36 {
		t.Errorf("a verification tells what it has verified, got %+v", verified)
	}
	found := agent("find", "--cluster=team/db", "--verified").Verification
	if diff := cmp.Diff(verified, found); diff != "" {
		t.Errorf("-verified, +recorded\n%s", diff)
	}
}

// TestAgentTimesOut: an etcd that does not serve is not waited for forever.
func TestAgentTimesOut(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.alone()
	config := snapshot.Config{Directory: &snapshot.Directory{Path: t.TempDir()}}
	if _, err := runAgent(t, config, "save", "--name=db-1", h.here("--endpoints=http://10.0.0.1:2379", ""), "--keep="+h.dir); err != nil {
		t.Fatal(err)
	}
	result, err := runAgent(t, config, "verify-served", "--name=db-1", "--file="+filepath.Join(h.dir, "db-1.db"), "--endpoint=http://127.0.0.1:1", "--timeout=1s")
	if err == nil || result.Error == nil || result.Error.Reason != "TimedOut" {
		t.Errorf("want TimedOut, got %+v (%v)", result.Error, err)
	}
}

// TestAgentInterrupted: a save whose Pod is deleted leaves nothing in the store, and says so.
func TestAgentInterrupted(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.alone()
	if out, err := h.try(h.here(`for n in $(seq 80); do head -c 1000000 /dev/urandom | etcdctl put --endpoints http://10.0.0.1:2379 key-$n > /dev/null || exit; done`, "")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store, scratch, result := filepath.Join(h.dir, "backups"), filepath.Join(h.dir, "scratch"), filepath.Join(h.dir, "result")
	for _, dir := range []string{store, scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.dir, "bin", "quorate"), "agent", "save", "--store="+store, "--name=db-1",
		h.here("--endpoints=http://10.0.0.1:2379", ""), "--result="+result)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(h.environment(), "TMPDIR="+scratch), t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	again, end := time.NewTicker(time.Millisecond), time.After(soon)
	defer again.Stop()
	for filesIn(t, store) == "" {
		select {
		case <-again.C:
		case <-end:
			t.Fatal("the save does not begin")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("want exit code 1, got %v", err)
	}
	if got := readResult(t, result); got.Error == nil || got.Error.Reason != "Interrupted" || got.Manifest != nil {
		t.Errorf("want Interrupted, got %+v", got)
	}
	if left := filesIn(t, store) + filesIn(t, scratch); left != "" {
		t.Errorf("an interrupted save has left %s", left)
	}
}

// filesIn are all files below a directory.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return nil // what goes meanwhile is gone
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}
