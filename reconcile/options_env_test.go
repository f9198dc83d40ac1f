//go:build env

package reconcile_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
)

// optionPatience is more than an etcd takes that serves, on a busy machine, and all that one gets
// that does not.
const optionPatience = 15 * time.Second

// optionNeeds are flags that a flag is of no effect without, or not taken.
var optionNeeds = map[string][]string{
	"compaction-sleep-interval":         {"compaction-batch-limit=1"},
	"distributed-tracing-sampling-rate": {"enable-distributed-tracing=true", "distributed-tracing-address=127.0.0.1:9"},
	"election-timeout":                  {"heartbeat-interval=1"},
}

// TestOptionEndsTried starts every etcd with the ends of numeric flags, and holds docs/options.md
// to what it does with them.
func TestOptionEndsTried(t *testing.T) {
	t.Parallel()
	for _, row := range share.List(t, optionRows(t), 2, optionRow.name) {
		for value, cell := range row.ends {
			for _, version := range node.EtcdVersions() {
				var args []string
				for _, flag := range append([]string{row.flag + "=" + value}, optionNeeds[row.flag]...) {
					flag, value, _ := strings.Cut(flag, "=")
					if name := flagOn(flag, version); name != "" {
						args = append(args, "--"+name+"="+value)
					}
				}
				if flagOn(row.flag, version) == "" { // it came later
					continue
				}
				t.Run(strings.TrimLeft(args[0], "-")+"/"+version, func(t *testing.T) {
					t.Parallel()
					want := on(cell, node.Minor(version))
					if want == doBusily || want == doPileUp { // the one is seen by hand alone: it takes a machine that does nothing else; the other one with much data
						want = doServe
					}
					got, says := tryOption(t, version, args)
					if got != want {
						t.Errorf("etcd %s %v: docs/options.md says that it %s, and it %s: %s", version, args, want, got, says)
					}
					if got != doServe && !slices.ContainsFunc(row.words, func(words string) bool { return strings.Contains(says, words) }) {
						t.Errorf("etcd %s %v says none of %q: %s", version, args, row.words, says)
					}
				})
			}
		}
	}
}

// tryOption starts etcd with these arguments, and asks it for what clients ask for. It tells what
// etcd does, and all that it says.
func tryOption(t *testing.T, version string, args []string) (does, says string) {
	t.Helper()
	dir, err := node.Etcd(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	address := loopback()
	clients, peers := "http://"+address+":2379", "http://"+address+":2380"
	all := append([]string{
		"--name=db-0", "--data-dir=" + filepath.Join(t.TempDir(), "data"), "--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=db-0=" + peers, "--log-level=warn",
	}, args...)
	if !strings.Contains(args[0], "heartbeat") && !strings.Contains(args[0], "election") {
		all = append(all, "--heartbeat-interval=20", "--election-timeout=200")
	}
	var out transcript
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "etcd"), all...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancelCause(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		ended(fmt.Errorf("it has ended: %w", cmd.Wait()))
	}()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-over
	}()
	within, cancel := context.WithTimeout(ctx, optionPatience)
	defer cancel()
	switch err := useAll(within, clients); {
	case ctx.Err() != nil:
		return doEnd, out.String()
	case err != nil:
		return doNotServe, err.Error() + "\n" + out.String()
	default:
		return doServe, ""
	}
}

// useAll does what clients do, all on one connection: writes, reads, the transactions of a
// Kubernetes API server, a write beside a watch and a lease that is kept alive, and a compaction.
func useAll(ctx context.Context, url string) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is lost
	for err = errors.New("not tried"); err != nil; {
		_, err = c.Put(ctx, "key", "value") // until it serves, or the time is over
		if ctx.Err() != nil {
			return fmt.Errorf("write: %w", err)
		}
		if err != nil && (errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrNoSpace) || status.Code(err) == codes.ResourceExhausted) {
			return fmt.Errorf("write: %w", err)
		}
	}
	if _, err := c.Get(ctx, "key"); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	created := clientv3.Compare(clientv3.ModRevision("txn"), "=", 0)
	if _, err := c.Txn(ctx).If(created).Then(clientv3.OpPut("txn", "")).Else(clientv3.OpGet("txn")).Commit(); err != nil {
		return fmt.Errorf("transaction: %w", err)
	}
	watched := c.Watch(ctx, "beside", clientv3.WithCreatedNotify(), clientv3.WithProgressNotify())
	if r := <-watched; r.Err() != nil || !r.Created {
		return fmt.Errorf("watch: %w", cmp.Or(r.Err(), context.Cause(ctx)))
	}
	lease, err := c.Grant(ctx, 60)
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	kept, err := c.KeepAlive(ctx, lease.ID)
	if err != nil {
		return fmt.Errorf("keep a lease alive: %w", err)
	}
	if r := <-kept; r == nil {
		return fmt.Errorf("keep a lease alive: %w", context.Cause(ctx))
	}
	last, err := c.Put(ctx, "beside", "", clientv3.WithLease(lease.ID))
	if err != nil {
		return fmt.Errorf("write beside a watch: %w", err)
	}
	for r := range watched {
		if len(r.Events) > 0 {
			if _, err := c.Compact(ctx, last.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
				return fmt.Errorf("compaction: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("watch: %w", context.Cause(ctx))
}

var lastLoopback atomic.Uint32

// loopback is an address that nothing else listens at.
func loopback() string {
	n := lastLoopback.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()&127, n/250, 1+n%250)
}

// transcript is what a process says.
type transcript struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}
