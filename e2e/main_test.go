//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
)

// clusterName is the kind cluster of these tests; one that is left over from an earlier run is used
// again. One with workers has another name than one without, and so has one of every Kubernetes
// that is asked for by its minor.
var clusterName = "quorate-e2e"

var (
	keep = flag.Bool("keep", os.Getenv("QUORATE_E2E_KEEP") != "",
		"keep the kind cluster for the next run (or set QUORATE_E2E_KEEP); after a failure it is always kept")
	minor   = flag.String("kubernetes", "", "minor of Kubernetes that the kind cluster is to be of, such as 1.33 (default: the newest)")
	workers = flag.Int("workers", 0, fmt.Sprintf("how many workers the kind cluster has beside its first node; TestNodes, which takes them away, needs %d", workersLost))
)

// testenv runs the stories. Its context and configuration are set up once, by TestMain.
var testenv env.Environment

func TestMain(m *testing.M) {
	ctx := context.Background()
	share.Register(flag.CommandLine)
	config, err := envconf.NewFromFlags()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if flagged("test.list") != "" {
		os.Exit(m.Run()) // which takes no cluster
	}
	if *workers > 0 {
		clusterName += "-nodes"
	}
	if *minor != "" {
		clusterName += "-" + strings.ReplaceAll(*minor, ".", "-")
	}
	ctrl.SetLogger(klog.Background())
	testenv = env.NewWithConfig(config.WithParallelTestEnabled()).Setup(startCluster, clearStages, loadImages, install).BeforeEachTest(openStage)

	code := testenv.Run(m)
	if code == 0 && stages.Load() == 0 {
		fmt.Fprintln(os.Stderr, "No story was told: -run or -skip leaves none.")
		code = 1
	}
	if code == 0 {
		code = checkRights(ctx, everythingRan())
	}
	switch {
	case code != 0:
		fmt.Fprintf(os.Stderr, "The cluster %s is kept for you to look at:\n  export KUBECONFIG=%s\nThe next run goes on from it. To remove it:\n  go run ./e2e/node/quorate-kind down --name %s\n",
			clusterName, config.KubeconfigFile(), clusterName)
	case !*keep:
		if err := node.Down(ctx, clusterName); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// everythingRan says whether no story was left out. Rows may have been: a share has a member of
// every kind of story.
func everythingRan() bool {
	const noStories = "^Test(Bench|Oldest)" // as in the Makefile
	for _, name := range []string{"test.run", "feature", "assess", "skip-features", "skip-assessment"} {
		if flagged(name) != "" {
			return false
		}
	}
	return flagged("test.skip") == "" || flagged("test.skip") == noStories
}

func flagged(name string) string { return flag.Lookup(name).Value.String() }

// startCluster makes the kind cluster of kind-config.yaml with an audit log, or goes on from the
// one that is there.
func startCluster(ctx context.Context, config *envconf.Config) (context.Context, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ctx, err
	}
	dir = filepath.Join(dir, "quorate", strings.TrimPrefix(clusterName, "quorate-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ctx, err
	}
	kindConfig := filepath.Join(dir, "kind-config.yaml")
	if err := writeKindConfig(kindConfig); err != nil {
		return ctx, err
	}
	config.WithKubeconfigFile(filepath.Join(dir, "kubeconfig"))
	if err := node.Up(ctx, node.Cluster{Name: clusterName, Config: kindConfig, Kubeconfig: config.KubeconfigFile(), Kubernetes: *minor}); err != nil {
		return ctx, err
	}
	return ctx, connect(config)
}

// loadImages builds the operator's image and gives it and the etcd images to the cluster.
func loadImages(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	const building = 20 * time.Minute // with an empty build cache
	made, cancel := context.WithTimeoutCause(ctx, building, fmt.Errorf("the operator's image is not built within %s", building))
	defer cancel()
	if _, err := runUntil(made, "make", "--no-print-directory", "-C", "..", "image", "IMAGE="+operatorImage); err != nil {
		return ctx, err
	}
	images, err := node.EtcdImages(ctx)
	if err != nil {
		return ctx, err
	}
	if err := node.BuildS3Image(ctx); err != nil {
		return ctx, err
	}
	if err := useS3Credentials(); err != nil {
		return ctx, err
	}
	return ctx, node.Load(ctx, clusterName, append(images, node.S3Image, operatorImage)...)
}
