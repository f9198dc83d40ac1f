package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// verifyRestored makes an etcd of a stored snapshot.
func verifyRestored(ctx context.Context, store Store, name string, o VerifyOptions) (Verification, error) {
	if o.Etcd == "" {
		return Verification{}, fmt.Errorf("give the path of an etcd binary to restore the snapshot with, or verify with mode %s", ModeHash)
	}
	version, err := etcdVersion(ctx, o.Etcd)
	if err != nil {
		return Verification{}, err
	}
	dir, err := os.MkdirTemp(o.Scratch, "quorate-verify-")
	if err != nil {
		return Verification{}, fmt.Errorf("make room to restore the snapshot: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "snapshot.db")
	manifest, err := Fetch(ctx, store, name, file, o.FetchOptions)
	if err != nil {
		return Verification{}, err
	}
	err = Restore(ctx, file, RestoreOptions{
		DataDir: filepath.Join(dir, servedDir), Name: "verify", InitialCluster: "verify=" + nowhere, Token: "verify", PeerURLs: []string{nowhere},
		EtcdVersion: version, KeepRevisions: true, AuthOff: true,
	})
	if err != nil {
		return Verification{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served, err := serve(ctx, stop, o.Etcd, dir, "--name=verify")
	if err != nil {
		return Verification{}, err
	}
	var v Verification
	err = served.during(ctx, stop, func(endpoint string) (err error) {
		v, err = VerifyServed(ctx, file, endpoint, manifest)
		return err
	})
	return v, err
}

// nowhere is the URL that the etcd has for others. There are none, and it listens on no port.
const nowhere = "http://127.0.0.1:2379"

var saysVersion = regexp.MustCompile(`etcd Version: (\S+)`)

// etcdVersion is the version of a binary.
func etcdVersion(ctx context.Context, binary string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("run %s --version: %w", binary, err)
	}
	match := saysVersion.FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("%s --version does not say which etcd it is", binary)
	}
	return string(match[1]), nil
}

// The sockets of the etcd that is verified with, in its working directory. No other machine can
// reach it.
const clientSocket, peerSocket = "client", "peer"

// running is an etcd.
type running struct {
	client *socket
	log    *logTail
	ended  chan struct{}
	err    error // how it has ended
}

// servedDir is the data directory of the etcd, in its working directory.
const servedDir = "data"

// serve starts an etcd on the data directory in dir. It ends with the context, and stops that where
// it ends by itself.
func serve(ctx context.Context, stop func(), binary, dir string, flags ...string) (*running, error) {
	client, err := openSocket(dir)
	if err != nil {
		return nil, err
	}
	r := &running{client: client, log: &logTail{}, ended: make(chan struct{})}
	cmd := exec.CommandContext(ctx, binary, append([]string{"--data-dir=" + servedDir,
		"--listen-client-urls=unix://" + clientSocket, "--advertise-client-urls=" + nowhere,
		"--listen-peer-urls=unix://" + peerSocket, "--enable-grpc-gateway=false", "--log-level=warn"}, flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, r.log, r.log
	cmd.Env = apart(os.Environ())
	if err := cmd.Start(); err != nil {
		client.close()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
		stop()
	}()
	return r, nil
}

// during does something with the etcd, by the URL at which it serves clients, and ends it. An etcd
// that has ended before tells why.
func (r *running) during(ctx context.Context, stop func(), do func(endpoint string) error) error {
	err := do("unix://" + r.client.path)
	early := ctx.Err() != nil
	stop()
	<-r.ended
	r.client.close()
	if err != nil && early {
		err = fmt.Errorf("%w (etcd has ended: %w: %s)", err, r.err, r.log)
	}
	return err
}

// apart is an environment in which an etcd takes nothing for its flags, and reaches no member that
// its data tells of: it asks a proxy for all of them that are not on this machine, and there is
// none.
func apart(env []string) []string {
	env = slices.DeleteFunc(env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasPrefix(name, "ETCD_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
	return append(env, "HTTP_PROXY=http://127.0.0.1:0", "HTTPS_PROXY=http://127.0.0.1:0")
}

// logTail keeps the end of a log.
type logTail struct {
	mutex sync.Mutex
	text  []byte
}

const maxLog = 4 << 10

func (l *logTail) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - maxLog; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

func (l *logTail) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return string(bytes.TrimSpace(l.text))
}
