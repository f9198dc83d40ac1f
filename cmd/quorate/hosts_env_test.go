//go:build env

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
)

// soon is more than anything here needs on a busy machine.
const soon = 2 * time.Minute

// hosts are three machines with etcd on each, as docs/snapshots-by-hand.md has them: their
// addresses are ports of this machine, and their directories are below one.
type hosts struct {
	*testing.T
	dir  string
	path string // of quorate, etcd, etcdctl and etcdutl
	env  []string
	// as has what stands in the documentation, and what it is here, in pairs.
	as      []string
	running map[string]func() // how to end the etcd of each
}

// addresses of the machines in the documentation, by the names of their members.
var documented = []struct{ member, address string }{{"m1", "10.0.0.1"}, {"m2", "10.0.0.2"}, {"m3", "10.0.0.3"}}

func newHosts(t *testing.T, version string) *hosts {
	t.Helper()
	etcd, err := node.Etcd(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "quorate")); err != nil {
		t.Fatal(err)
	}
	h := &hosts{T: t, dir: dir, path: bin + ":" + etcd + ":" + os.Getenv("PATH"), running: map[string]func(){}}
	for _, d := range documented {
		client := freePorts(t)
		h.as = append(h.as, d.address+":2379", loopback(client), d.address+":2380", loopback(client+1))
	}
	t.Cleanup(func() {
		for _, stop := range h.running {
			stop()
		}
	})
	return h
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// lastPort is the last that was given away, below those that the system gives to whatever asks for
// any.
var lastPort atomic.Int32

// freePorts returns the first of two ports, one after the other, that are free.
func freePorts(t *testing.T) int {
	t.Helper()
	const from, to = 20000, 32000
	for {
		port := from + int(lastPort.Add(2))
		if port > to {
			t.Fatalf("no two ports are free from %d to %d", from, to)
		}
		if free(t, port) && free(t, port+1) {
			return port
		}
	}
}

func free(t *testing.T, port int) bool {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback(port))
	if err != nil {
		return false
	}
	_ = l.Close() // nothing was sent
	return true
}

// here is a command of the documentation, as it is run on a member's machine here.
func (h *hosts) here(command, member string) string {
	local := filepath.Join(h.dir, member)
	return strings.NewReplacer(append([]string{"/var/lib/etcd", filepath.Join(local, "etcd"), " /backups", " " + filepath.Join(h.dir, "backups")}, h.as...)...).Replace(command)
}

// memberOf is whose machine a command is for: that of its --name, or the first.
func memberOf(command string) string {
	for _, d := range documented {
		if strings.Contains(command, "--name "+d.member+" ") {
			return d.member
		}
	}
	return documented[0].member
}

// run runs a command of the documentation, and returns what it prints. An etcd is started, and goes
// on.
func (h *hosts) run(command string) string {
	h.Helper()
	member := memberOf(command)
	if strings.HasPrefix(command, "etcd ") {
		h.start(member, command)
		return ""
	}
	out, err := h.try(h.here(command, member))
	if err != nil {
		h.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// try runs a command line as it is.
func (h *hosts) try(line string) (string, error) {
	ctx, cancel := context.WithTimeout(h.Context(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = h.dir, h.environment()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h *hosts) environment() []string {
	return append([]string{"PATH=" + h.path, "HOME=" + h.dir, "TMPDIR=" + h.dir, "ETCD_LOG_LEVEL=warn"}, h.env...)
}

// start an etcd on the machine of a member.
func (h *hosts) start(member, command string) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+h.here(command, member))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, h.environment(), &log, &log
	if err := os.MkdirAll(filepath.Join(h.dir, member), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := child.Start(cmd); err != nil {
		h.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	h.running[member] = func() {
		cancel()
		<-ended
		if h.Failed() {
			h.Logf("etcd %s:\n%s", member, log.String())
		}
	}
}

// form starts three empty members, and waits until they serve.
func (h *hosts) form() {
	h.Helper()
	var initial []string
	for _, d := range documented {
		initial = append(initial, fmt.Sprintf("%s=http://%s:2380", d.member, d.address))
	}
	for _, d := range documented {
		h.start(d.member, fmt.Sprintf("etcd --name %[1]s --data-dir /var/lib/etcd --listen-peer-urls http://%[2]s:2380 --initial-advertise-peer-urls http://%[2]s:2380 "+
			"--listen-client-urls http://%[2]s:2379 --advertise-client-urls http://%[2]s:2379 --initial-cluster %[3]s --initial-cluster-token first",
			d.member, d.address, strings.Join(initial, ",")))
	}
	h.serving(allEndpoints)
}

// lose ends all members.
func (h *hosts) lose() {
	for member, stop := range h.running {
		stop()
		delete(h.running, member)
	}
}

// allEndpoints are those of the three members, in the documentation.
const allEndpoints = "http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379"

// serving waits until members serve.
func (h *hosts) serving(endpoints string) {
	h.Helper()
	again, end := time.NewTicker(200*time.Millisecond), time.After(soon)
	defer again.Stop()
	for {
		out, err := h.try(h.here("etcdctl endpoint health --endpoints "+endpoints, ""))
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-end:
			h.Fatalf("the members do not serve: %v\n%s", err, out)
		}
	}
}
