package hostlet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"quorate.dev/e2e/node"
)

// Options of a Hostlet. Dir is required.
type Options struct {
	// Dir holds volumes and logs.
	Dir string
	// Namespace to look after; empty is all of them. Hostlets beside each
	// other in one API server need a namespace each.
	Namespace string
	// EtcdDir returns the directory with the binaries of an etcd version
	// ("3.6.16"); those of [node.EtcdVersions] by default. An error is an image
	// that cannot be pulled.
	EtcdDir func(ctx context.Context, version string) (string, error)
	// Program is the binary of this machine that an image has as its entry
	// point, and empty for an image of etcd. It runs in init containers and in
	// the Pods of Jobs, which have one Pod each then and note how that has ended,
	// and is told by --result where to leave its last words. By default there is
	// none.
	Program func(image string) string
	// Dies is asked when a container is about to run, and when it has ended well.
	// If it says so the container counts as killed: before it has done anything, or
	// when it has done all, before it could say so. By default none is.
	Dies func(pod *corev1.Pod, container string, ended bool) bool
	// BackoffBase is the wait before the second restart of a container that
	// keeps ending (the first is immediate); 200 ms by default.
	BackoffBase time.Duration
	// BackoffMax is where the doubling stops; 5 s by default.
	BackoffMax time.Duration
	// Heartbeat is the interval between heartbeats of an etcd whose Pod names
	// neither that nor an election timeout; 0 is etcd's default, 100 ms. The
	// election timeout stays at 1 s: more than 200 ms is not taken.
	Heartbeat time.Duration
	// NoEndpoints leaves Services without EndpointSlices, as where an API server
	// is all there is.
	NoEndpoints bool
	// Logf receives what happens to processes, t.Logf for example.
	Logf func(format string, args ...any)
}

// Hostlet runs the Pods of an API server as processes.
type Hostlet struct {
	opts   Options
	client client.Client // reads from a cache
	reader client.Reader // reads from the API server
	names  *names
	cancel context.CancelFunc
	done   chan struct{}

	mu          sync.Mutex
	workers     map[types.NamespacedName]*worker
	cordoned    bool
	endpointLag time.Duration
}

// Start looks after the API server at cfg until ctx ends or Stop is called.
func Start(ctx context.Context, cfg *rest.Config, opts Options) (*Hostlet, error) {
	if opts.EtcdDir == nil {
		opts.EtcdDir = Released
	}
	if opts.BackoffBase == 0 {
		opts.BackoffBase = 200 * time.Millisecond
	}
	if opts.BackoffMax == 0 {
		opts.BackoffMax = 5 * time.Second
	}
	if opts.Heartbeat > 200*time.Millisecond {
		return nil, fmt.Errorf("a heartbeat each %s: etcd needs five within an election timeout of 1 s", opts.Heartbeat)
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Hostlet{
		opts: opts, names: newNames(), cancel: cancel, done: make(chan struct{}),
		workers: map[types.NamespacedName]*worker{},
	}
	if err := h.start(ctx, cfg); err != nil {
		cancel()
		return nil, err
	}
	return h, nil
}

// Released returns the directory with the binaries of a version of [node.EtcdVersions]. Any other
// is an image that cannot be pulled: a lookup of it would ask the network each time.
func Released(ctx context.Context, version string) (string, error) {
	if !slices.Contains(node.EtcdVersions(), version) {
		return "", fmt.Errorf("etcd %s: manifest unknown", version)
	}
	return node.Etcd(ctx, version)
}

func (h *Hostlet) start(ctx context.Context, cfg *rest.Config) error {
	if err := os.MkdirAll(h.opts.Dir, 0o700); err != nil {
		return err
	}
	// The test's own client limits are not for a whole node.
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	options := ctrl.Options{
		Scheme:     scheme.Scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: 8},
		Logger:     funcr.New(func(prefix, args string) { h.logf("%s %s", prefix, args) }, funcr.Options{}).V(1), // errors only
	}
	if h.opts.Namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{h.opts.Namespace: {}}
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return fmt.Errorf("new manager: %w", err)
	}
	h.client, h.reader = mgr.GetClient(), mgr.GetAPIReader()
	if err := errors.Join(h.createNode(ctx), h.createStorageClass(ctx), h.setupPods(ctx, mgr), h.setupClaims(mgr), h.setupEndpoints(mgr), h.setupSecrets(mgr), setupGarbage(mgr)); err != nil {
		return err
	}
	if h.opts.Program != nil {
		if err := h.setupJobs(mgr); err != nil {
			return err
		}
	}
	go func() {
		defer close(h.done)
		if err := mgr.Start(ctx); err != nil {
			h.logf("manager ended: %v", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, w := range h.workers {
			w.vanish()
		}
	}()
	return nil
}

// Stop kills all processes and returns when they are dead. Objects stay.
func (h *Hostlet) Stop() {
	h.cancel()
	awaitEnd(h.done, "the hostlet of "+h.opts.Namespace)
}

// Substitute replaces Pods' DNS names in the URLs in s by their addresses.
// An address that cannot be had leaves its name, which then does not resolve.
func (h *Hostlet) Substitute(s string) string {
	s, err := h.names.substitute(s, netip.Addr{})
	if err != nil {
		h.logf("substitute %s: %v", s, err)
	}
	return s
}

// PeerURL replaces addresses in the URLs in s by the DNS names they stand for.
func (h *Hostlet) PeerURL(s string) string { return h.names.restore(s) }

// Log is the tail of what the Pod's processes wrote, of all Pods of that name.
func (h *Hostlet) Log(namespace, pod string) string {
	const tail = 4 << 10
	data, err := os.ReadFile(h.logFile(namespace, pod))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-tail):])
}

func (h *Hostlet) logf(format string, args ...any) {
	if h.opts.Logf != nil {
		h.opts.Logf("hostlet: "+format, args...)
	}
}

func (h *Hostlet) volumeDir(uid types.UID) string {
	return filepath.Join(h.opts.Dir, "volumes", string(uid))
}

func (h *Hostlet) podDir(uid types.UID) string {
	return filepath.Join(h.opts.Dir, "pods", string(uid))
}

func (h *Hostlet) logFile(namespace, pod string) string {
	return filepath.Join(h.opts.Dir, "logs", namespace, pod+".log")
}
