//go:build e2e

package footprint

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// Stand-ins listen at an address for each member, and a process may have only some thousand open
// files. So they are spread over several processes of this same binary. The environment variable
// says which part of the clusters a process has.
const (
	shardVariable  = "QUORATE_FOOTPRINT_SHARD"
	tlsVariable    = "QUORATE_FOOTPRINT_TLS" // the clients' port has TLS
	mostOfAProcess = 12000
)

// shard is one part of the clusters: the number, and of how many parts.
type shard struct{ number, of int }

func (s shard) has(cluster string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(cluster)) // it never fails
	return int(h.Sum32()%uint32(s.of)) == s.number
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	var part shard
	if n, _ := fmt.Sscanf(os.Getenv(shardVariable), "%d/%d", &part.number, &part.of); n == 0 {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := serveShard(ctx, part)
	if stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startStandIns starts the processes that stand in for the members of that many clusters.
func startStandIns(t *testing.T, kubeconfig string, clusters int) {
	t.Helper()
	parts := 1 + clusters*members/mostOfAProcess
	for n := range parts {
		log := &bytes.Buffer{}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, fmt.Sprintf("%s=%d/%d", shardVariable, n, parts), fmt.Sprintf("%s=%t", tlsVariable, *secured))
		cmd.Stderr = log
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Wait() // it was interrupted
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("stand-ins %d of %d end with %d: %s", n, parts, code, log)
			}
		})
	}
}

// serveShard answers for the members of a part of the clusters until the context ends.
func serveShard(ctx context.Context, part shard) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, watches, err := connect(config)
	if err != nil {
		return err
	}
	const atATime = 8
	s := &standIns{
		shard: part, secured: os.Getenv(tlsVariable) == "true", client: c, slots: make(chan struct{}, atATime), failed: make(chan error, 1), ctx: ctx,
		begun: map[types.UID]bool{}, known: map[string]string{}, at: map[string]*standIn{}, hostile: map[string]bool{},
	}
	options := s.hostility()
	if s.secured {
		options = append(options, grpc.Creds(credentials.NewTLS(s.tls())))
	}
	s.server = grpc.NewServer(options...)
	s.metrics = &http.Server{Handler: http.HandlerFunc(s.serveMetrics), ReadHeaderTimeout: time.Minute}
	etcdserverpb.RegisterMaintenanceServer(s.server, standInMaintenance{standIns: s})
	etcdserverpb.RegisterClusterServer(s.server, standInMembers{standIns: s})
	if err := follow(ctx, watches, &corev1.Pod{}, func(o client.Object) {
		if pod, is := o.(*corev1.Pod); is {
			s.see(pod)
		}
	}); err != nil {
		return err
	}
	go func() { s.fail(watches.Start(ctx)) }()
	defer s.server.Stop()
	defer func() { _ = s.metrics.Close() }()
	select {
	case err := <-s.failed:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return nil // it was told to end
}

// follow calls tell for each object of a kind when it is created or changed.
func follow(ctx context.Context, watches cache.Cache, kind client.Object, tell func(client.Object)) error {
	informer, err := watches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	told := func(o any) {
		if o, is := o.(client.Object); is {
			tell(o)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: told, UpdateFunc: func(_, o any) { told(o) }})
	return err
}

// connect returns a client and a cache without a rate limit.
func connect(config *rest.Config) (client.Client, cache.Cache, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, nil, err
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, err
	}
	watches, err := cache.New(config, cache.Options{Scheme: scheme})
	return c, watches, err
}
