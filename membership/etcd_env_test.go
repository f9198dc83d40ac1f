//go:build env

package membership

import (
	"bytes"
	"context"
	"errors"
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

// soon is more than etcd ever needs on a busy machine.
const soon = time.Minute

// etcds are the members of one cluster, as real processes of one version.
type etcds struct {
	*testing.T
	binary  string
	flags   []string // beside those that all have
	members []*etcd
}

// etcd is one member: its addresses and directory stay, processes come and go.
type etcd struct {
	*etcds
	name                  string
	client, peer, metrics int // ports
	dir                   string
	process               *process
}

// process of a member, until it has ended.
type process struct {
	cmd   *exec.Cmd
	log   lockedBuffer
	ended chan struct{}
}

func newEtcds(t *testing.T, version string, size int) *etcds {
	t.Helper()
	dir, err := node.Etcd(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	c := &etcds{T: t, binary: filepath.Join(dir, "etcd")}
	for n := range size {
		c.members = append(c.members, &etcd{etcds: c, name: name(n), client: freePort(t), peer: freePort(t), metrics: freePort(t), dir: t.TempDir()})
	}
	t.Cleanup(func() {
		for _, m := range c.members {
			m.kill()
		}
	})
	return c
}

// lastPort is the last that was given away. They are below those that the system gives to any
// caller, or connects to somewhere: such a one may be taken before etcd listens on it.
var lastPort atomic.Int32

func freePort(t *testing.T) int {
	t.Helper()
	const from, to = 10000, 30000
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

func (m *etcd) self() string { return m.name + "=" + url(m.peer) }

// all is the initial cluster of the first start.
func (c *etcds) all() string {
	var peers []string
	for _, m := range c.members {
		peers = append(peers, m.self())
	}
	return strings.Join(peers, ",")
}

// bootstrap is how a member starts for the first time, and resume how ever after.
func (m *etcd) bootstrap() { m.start("new", m.all(), "first") }
func (m *etcd) resume()    { m.start("existing", m.self(), "first") }

// form starts all members for the first time, and waits until all of them serve.
func (c *etcds) form() {
	c.Helper()
	for _, m := range c.members {
		m.bootstrap()
	}
	for _, m := range c.members {
		m.serving()
	}
}

// bootstrapAlone is the first start of a cluster of one, and join how a member starts that was
// added to it since.
func (m *etcd) bootstrapAlone() { m.start("new", m.self(), "first") }
func (m *etcd) join()           { m.start("existing", m.all(), "first") }

func (m *etcd) start(state, initial, token string) {
	m.Helper()
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(m.Context(), m.binary, append([]string{
		"--name=" + m.name, "--data-dir=" + filepath.Join(m.dir, "data"),
		"--listen-client-urls=" + url(m.client), "--advertise-client-urls=" + url(m.client),
		"--listen-metrics-urls=" + url(m.metrics),
		"--listen-peer-urls=" + url(m.peer), "--initial-advertise-peer-urls=" + url(m.peer),
		"--initial-cluster=" + initial, "--initial-cluster-state=" + state, "--initial-cluster-token=" + token,
		"--strict-reconfig-check=true",
		"--unsafe-no-fsync", // processes are killed here, and no machine loses its power
	}, m.flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := child.Start(p.cmd); err != nil {
		m.Fatal(err)
	}
	m.process = p
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		close(p.ended)
	}()
}

// kill without a word, and wait until it is gone.
func (m *etcd) kill() {
	if m.process == nil {
		return
	}
	_ = m.process.cmd.Process.Kill() // it may have ended by itself
	<-m.process.ended
	m.process = nil
}

// dial the member as the operator does.
func (m *etcd) dial() Client {
	m.Helper()
	c, err := Dial("127.0.0.1", m.client)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Close() })
	return c
}

// serving waits until the member knows a leader, and returns what it says of itself.
func (m *etcd) serving() Endpoint {
	m.Helper()
	c, says := m.dial(), Endpoint{}
	m.eventually(m.name+" serves", func(ctx context.Context) error {
		var err error
		says, err = c.Status(ctx)
		if err == nil && says.Leader == 0 {
			err = errors.New("no leader")
		}
		return err
	})
	return says
}

// eventually tries until it is so.
func (m *etcd) eventually(what string, is func(context.Context) error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), soon)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := is(ctx)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			m.Fatalf("%s: not within %s: %v\n%s", what, soon, err, m.process.log.String())
		}
	}
}

// put and get are what clients do.
func (m *etcd) put(key, value string) {
	m.Helper()
	if _, err := m.kv().Put(m.Context(), key, value); err != nil {
		m.Fatal(err)
	}
}

func (m *etcd) get(key string) string {
	m.Helper()
	r, err := m.kv().Get(m.Context(), key)
	if err != nil {
		m.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

func (m *etcd) kv() *clientv3.Client { return m.dial().(*client).etcd }

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
func anyVersion(t *testing.T, size int, test func(*etcds, Version)) {
	t.Helper()
	withVersions(t, share.List(t, node.EtcdVersions(), 1, func(version string) string { return version }), size, test)
}

func withVersions(t *testing.T, versions []string, size int, test func(*etcds, Version)) {
	t.Helper()
	for _, text := range versions {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			version, err := ParseVersion(text)
			if err != nil {
				t.Fatal(err)
			}
			test(newEtcds(t, text, size), version)
		})
	}
}
