package hostlet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
)

// StartEnv starts an API server with the CRDs found at the given paths and, where
// there are any, the policy that holds the operator ([AsOperator]), one for a test
// binary: call it in TestMain, and Stop what it returns. On Linux its
// processes end with the test binary in any case. The server's Config is
// what [Start] wants. Binaries come from KUBEBUILDER_ASSETS or, when
// that is unset, from [node.Assets], which builds them once for this machine. The
// etcd of every Pod is built before, too: a test waits for a Pod, not for a compiler.
func StartEnv(ctx context.Context, crds ...string) (*envtest.Environment, error) {
	env := &envtest.Environment{
		CRDDirectoryPaths:     crds,
		ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"),
		// A busy machine takes longer than envtest's 20 s, and a server that
		// fails is noticed at once.
		ControlPlaneStartTimeout: 2 * time.Minute,
	}
	if env.BinaryAssetsDirectory == "" {
		dir, err := node.Assets(ctx, "")
		if err != nil {
			return nil, fmt.Errorf("get the API server: %w", err)
		}
		env.BinaryAssetsDirectory = dir
	}
	for _, version := range node.EtcdVersions() {
		if _, err := node.Etcd(ctx, version); err != nil {
			return nil, fmt.Errorf("get etcd: %w", err)
		}
	}
	// What the API server stores need not outlive a power failure.
	env.ControlPlane.Etcd = &envtest.Etcd{}
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	// Each test makes Services, and none is deleted: the default range has addresses for 254 of
	// them.
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	if err := startWithMemory(env); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	if len(crds) > 0 {
		if err := holdOperator(ctx, env.Config); err != nil {
			return nil, errors.Join(err, env.Stop())
		}
	}
	env.Config.Wrap(func(server http.RoundTripper) http.RoundTripper { return bounded(server, patience) })
	return env, nil
}

// startWithMemory starts an API server that collects its garbage more seldom,
// and has this process do so too: here memory is cheaper than processors.
// envtest passes the environment of this process on, in which the runtime reads
// GOGC only once, at its own start.
func startWithMemory(env *envtest.Environment) error {
	const percent = 400
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(percent)
		if err := os.Setenv("GOGC", strconv.Itoa(percent)); err != nil {
			return err
		}
		defer func() { _ = os.Unsetenv("GOGC") }() // it was set above
	}
	server, etcd := env.ControlPlane.GetAPIServer(), env.ControlPlane.Etcd
	server.Path, etcd.Path = filepath.Join(env.BinaryAssetsDirectory, "kube-apiserver"), filepath.Join(env.BinaryAssetsDirectory, "etcd")
	return child.Do(func() error { _, err := env.Start(); return err }, &server.Path, &etcd.Path)
}
