//go:build env

package snapshot

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
)

func init() { share.Register(flag.CommandLine) }

// soon is more than etcd ever needs on a busy machine.
const soon = time.Minute

// etcds are the members of one cluster, as real processes of one version.
type etcds struct {
	*testing.T
	binary  string
	members []*etcd
}

// etcd is one member: its addresses and directory stay, processes come and go.
type etcd struct {
	*etcds
	name         string
	client, peer int // ports
	dataDir      string
	log          lockedBuffer
	cmd          *exec.Cmd
	ended        chan struct{}
}

func binary(t *testing.T, version string) string {
	t.Helper()
	dir, err := node.Etcd(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "etcd")
}

func newEtcds(t *testing.T, version string, size int) *etcds {
	t.Helper()
	c := &etcds{T: t, binary: binary(t, version)}
	for n := range size {
		c.members = append(c.members, &etcd{
			etcds: c, name: fmt.Sprintf("m-%d", n), client: freePort(t), peer: freePort(t), dataDir: filepath.Join(t.TempDir(), "data"),
		})
	}
	t.Cleanup(func() {
		for _, m := range c.members {
			m.kill()
		}
	})
	return c
}

// lastPort is the last that was given away. They are below those that the system gives to a process
// that asks for any, and above those of the tests of other packages, which run at the same time.
var lastPort atomic.Int32

func freePort(t *testing.T) int {
	t.Helper()
	const from, to = 30000, 32000
	for {
		port := from + int(lastPort.Add(1))
		if port > to {
			t.Fatalf("no port is free from %d to %d", from, to)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = l.Close() // nothing was sent
			return port
		}
	}
}

func url(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// all is the initial cluster.
func (c *etcds) all() string {
	var peers []string
	for _, m := range c.members {
		peers = append(peers, m.name+"="+url(m.peer))
	}
	return strings.Join(peers, ",")
}

// form starts all members, and waits until all of them serve.
func (c *etcds) form() {
	c.Helper()
	for _, m := range c.members {
		m.start()
	}
	for _, m := range c.members {
		m.serving()
	}
}

func (c *etcds) source() Source {
	var s Source
	for _, m := range c.members {
		s.Endpoints = append(s.Endpoints, url(m.client))
	}
	return s
}

func (m *etcd) start(flags ...string) {
	m.Helper()
	m.cmd = exec.CommandContext(m.Context(), m.binary, append([]string{
		"--name=" + m.name, "--data-dir=" + m.dataDir,
		"--listen-client-urls=" + url(m.client), "--advertise-client-urls=" + url(m.client),
		"--listen-peer-urls=" + url(m.peer), "--initial-advertise-peer-urls=" + url(m.peer),
		"--initial-cluster=" + m.all(), "--initial-cluster-state=new", "--initial-cluster-token=first",
		"--unsafe-no-fsync", // processes are killed here, and no machine loses its power
	}, flags...)...)
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	if err := child.Start(m.cmd); err != nil {
		m.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}(m.cmd, m.ended)
}

// kill without a word, and wait until it is gone.
func (m *etcd) kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill() // it may have ended by itself
	<-m.ended
	m.cmd = nil
}

// restoreOptions are those by which a member is made of a snapshot.
func (m *etcd) restoreOptions() RestoreOptions {
	return RestoreOptions{DataDir: m.dataDir, Name: m.name, InitialCluster: m.all(), Token: "second", PeerURLs: []string{url(m.peer)}}
}

func (m *etcd) dial() *clientv3.Client {
	m.Helper()
	c, err := Source{}.dial(url(m.client))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Close() })
	return c
}

// serving waits until the member has a leader, and returns what it says of itself.
func (m *etcd) serving() *member {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), soon)
	defer cancel()
	says, err := Source{Endpoints: []string{url(m.client)}}.serving(ctx)
	if err != nil {
		m.Fatalf("%s does not serve: %v\n%s", m.name, err, m.log.String())
	}
	m.Cleanup(says.close)
	return says
}

// lockedBuffer is written by a process while a test reads it.
type lockedBuffer struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.String()
}

// anyVersion runs a test with the etcd of a supported minor, which the seed chooses, or with -long
// of every one.
func anyVersion(t *testing.T, size int, test func(c *etcds, version string)) {
	t.Helper()
	for _, version := range share.List(t, node.EtcdVersions(), 1, func(version string) string { return version }) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(newEtcds(t, version, size), version)
		})
	}
}

// eventually tries until it is so.
func (m *etcd) eventually(what string, is func() error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), soon)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			m.Fatalf("%s: not within %s: %v", what, soon, err)
		}
	}
}
