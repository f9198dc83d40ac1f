//go:build env

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
	"quorate.dev/snapshot"
)

// TestAgentKilled kills what makes the data of a first member, at each path that it makes on the
// volume, and runs it again there: the data is complete, nothing else is left, and etcd serves it.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.alone()
	h.run("etcdctl --endpoints http://10.0.0.1:2379 put before saved")
	store := filepath.Join(h.dir, "backups")
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	saved, err := runAgent(t, snapshot.Config{Directory: &snapshot.Directory{Path: store}}, "save", "--name=db-1", h.here("--endpoints=http://10.0.0.1:2379", ""), "--keep="+h.dir)
	if err != nil {
		t.Fatal(err)
	}
	h.lose()
	etcd, _, _ := strings.Cut(strings.TrimPrefix(h.path, filepath.Join(h.dir, "bin")+":"), ":")
	made := []string{
		"--name=m1", "--initial-cluster=m1=http://10.0.0.1:2380", "--initial-advertise-peer-urls=http://10.0.0.1:2380", "--initial-cluster-token=second",
		"--etcd-version=" + node.Etcd36, "--data-dir=VOLUME/etcd", "--scratch=VOLUME/restore",
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		within []string // directories whose paths count, beside those of the volume itself
		least  int      // paths, below which too few were seen
	}{
		"restore-member": {
			reason: "of a stored snapshot",
			args:   []string{"--store=" + store, "--snapshot=db-1", "--sha256=" + saved.Manifest.SHA256, "--wanted=db-1"},
			within: []string{
				"/etcd.restoring", "/etcd.restoring/framed", "/etcd.restoring/framed/member", "/etcd.restoring/framed/member/snap", "/etcd.restoring/framed/member/wal",
				"/etcd.restoring/framed/member/wal.tmp", "/etcd.restoring/member", "/etcd.restoring/member/snap",
			},
			least: 8,
		},
		"copy-member": {
			reason: "of a former member, with an etcd on a copy of what that has; the data is made of that as above",
			args: []string{
				"--from=" + h.here("/var/lib/etcd", "m1"), "--origin=former", "--cluster=team/db", "--cluster-id=" + saved.Manifest.ClusterID,
				"--etcd=" + filepath.Join(etcd, "etcd"),
			},
			within: []string{"/restore", "/restore/.quorate-snapshot-N"},
			least:  5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hosts{T: t, dir: h.dir, path: h.path, env: h.env, as: h.as, running: map[string]func(){}}
			seen := map[string]bool{}
			var want data
			served := ""
			for done := false; !done; {
				volume := t.TempDir()
				args := []string{"agent", name, "--result=" + filepath.Join(h.dir, name+".json")}
				for _, arg := range append(made, tc.args...) {
					args = append(args, h.here(strings.ReplaceAll(arg, "VOLUME", volume), "m1"))
				}
				path := h.killed(volume, tc.within, seen, args...)
				if done = path == ""; !done {
					t.Logf("killed at %s", path)
					served = volume
				}
				got := h.made(volume, args...)
				if want == (data{}) {
					want = got
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: after it was killed at %s: -want +got:\n%s", tc.reason, path, diff)
				}
			}
			h.as = append([]string{"VOLUME", served}, h.as...)
			h.start("m1", "etcd --name m1 --data-dir VOLUME/etcd --listen-client-urls http://10.0.0.1:2379 --advertise-client-urls http://10.0.0.1:2379 "+
				"--listen-peer-urls http://10.0.0.1:2380 --initial-advertise-peer-urls http://10.0.0.1:2380")
			h.serving("http://10.0.0.1:2379")
			if got := h.run("etcdctl --endpoints http://10.0.0.1:2379 get --prefix ''"); got != "before\nsaved\n" {
				t.Errorf("%s: etcd serves %q", tc.reason, got)
			}
			h.lose()
			if len(seen) < tc.least {
				t.Errorf("%s: it was killed at %d paths, want at least %d", tc.reason, len(seen), tc.least)
			}
		})
	}
}

var someNumber = regexp.MustCompile(`[0-9]{4,}`)

// killed runs quorate until a path is there that was not seen before, and kills it with all that it
// has started. It returns the path; empty where it has ended before.
func (h *hosts) killed(volume string, within []string, seen map[string]bool, args ...string) string {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), filepath.Join(h.dir, "bin", "quorate"), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = h.environment(), h.Output(), h.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := child.Start(cmd); err != nil {
		h.Fatal(err)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		failed = cmd.Wait()
		close(ended)
	}()
	again, late := time.NewTicker(time.Millisecond), time.After(soon)
	defer again.Stop()
	for {
		path := unseen(h.T, volume, within, seen)
		if path != "" {
			seen[path] = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
			<-ended
			return path
		}
		select {
		case <-ended:
			if failed != nil {
				h.Fatalf("it failed by itself: %v", failed)
			}
			return ""
		case <-again.C:
		case <-late:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // as above
			<-ended
			h.Fatal("it does not end")
		}
	}
}

// unseen is the first path on the volume, and within these directories of it, that was not seen
// before. A number in it is any number.
func unseen(t *testing.T, volume string, within []string, seen map[string]bool) (found string) {
	t.Helper()
	err := filepath.WalkDir(volume, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == volume {
			return nil //nolint:nilerr // what goes meanwhile is gone
		}
		name := someNumber.ReplaceAllString(strings.TrimPrefix(path, volume), "N")
		if !seen[name] && filepath.Base(name) != ".touch" { // etcd tries out whether it can write
			found = name
			return fs.SkipAll
		}
		if entry.IsDir() && !slices.Contains(within, name) {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// data is what a data directory has that was made.
type data struct {
	Cluster, Member, Name string
	Term, Index           uint64
	Hash                  string // of all keys with their revisions, as etcdutl computes it
}

// made runs quorate to its end, and returns what is on the volume then.
func (h *hosts) made(volume string, args ...string) data {
	h.Helper()
	cmd := root()
	cmd.SetOut(h.Output())
	cmd.SetErr(h.Output())
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(h.Context()); err != nil {
		h.Errorf("run again: %v", err)
	}
	entries, err := os.ReadDir(volume)
	if err != nil || len(entries) != 1 {
		h.Errorf("on the volume there is %v, want the data directory alone (%v)", entries, err)
	}
	state, err := snapshot.StoppedMember{DataDir: filepath.Join(volume, "etcd")}.Read(h.Context())
	if err != nil {
		h.Errorf("the data: %v", err)
	}
	db := filepath.Join(volume, "etcd", "member", "snap", "db")
	hash, err := h.try("cp " + db + " db && etcdutl hashkv db") // of a copy: it may write
	if err != nil {
		h.Errorf("hash of the data: %v\n%s", err, hash)
	}
	return data{state.ClusterID, state.MemberID, state.Member, state.Term, state.LastIndex, hash}
}
