//go:build e2e

package footprint

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/node"
)

var (
	sizes   = flag.String("clusters", "100", "how many EtcdClusters of three members in one namespace, separated by commas: a row of the table for each")
	window  = flag.Duration("window", time.Minute, "how long CPU and memory at rest are measured")
	secured = flag.Bool("tls", false, "the clients' port of all clusters has TLS")
)

// bounds are how long one number of clusters may take; zero: no limit.
type bounds struct{ ready, recovered time.Duration }

// most are the bounds by the number of clusters.
var most = map[int]bounds{
	1000:  {ready: 90 * time.Second, recovered: time.Minute},
	10000: {ready: 20 * time.Minute},
}

// The bounds at rest for ten clusters. They are checked from fewest clusters on: with less, noise
// is larger.
const (
	mostCPU    = 0.3 // percent of a core, including the operator without clusters
	mostMemory = 1.0 // MiB, beside the operator without clusters
	fewest     = 100
)

// TestBenchFootprint measures, for each number of clusters in -clusters, how long it takes until
// all are Ready, CPU and memory of the operator while they are at rest, and how long it takes until
// all are Ready again after each has lost one Pod at the same moment.
func TestBenchFootprint(t *testing.T) {
	rows := []string{
		"| EtcdClusters | Ready after | CPU at rest | memory at rest | all Ready again after each has lost a Pod |",
		"| ---: | ---: | ---: | ---: | ---: |",
	}
	binary := build(t)
	for size := range strings.SplitSeq(*sizes, ",") {
		count, err := strconv.Atoi(size)
		if err != nil {
			t.Fatalf("-clusters %s: %v", *sizes, err)
		}
		t.Run(size, func(t *testing.T) {
			rows = append(rows, measure(t, binary, count))
			t.Log(rows[len(rows)-1])
		})
	}
	fmt.Printf("\nThe operator and its clusters, at rest over %s\n\n%s\n\n", *window, strings.Join(rows, "\n"))
}

// measure creates that many clusters, and returns their row of the table.
func measure(t *testing.T, binary string, count int) string {
	t.Helper()
	c, seen, access := apiServer(t)
	startStandIns(t, access, count)
	operator := startOperator(t, binary, access)
	_, alone := rests(t, operator)

	names := namesOf(count)
	allowed, begun := most[count], time.Now()
	at(t, names, func(ctx context.Context, name string) error { return c.Create(ctx, newCluster(name)) })
	seen.until(t, patience(count, allowed.ready), "Ready", names, func(k *known) bool { return k.ready })
	ready := time.Since(begun)
	t.Logf("%d clusters are Ready after %s", count, ready.Round(time.Millisecond))

	cpu, memory := rests(t, operator)

	lost := seen.lose(names)
	begun = time.Now()
	at(t, names, func(ctx context.Context, name string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: lost[name]}}
		return c.Delete(ctx, pod, client.GracePeriodSeconds(0)) // no kubelet ends it
	})
	seen.until(t, patience(count, allowed.recovered), "Ready again with another Pod", names, func(k *known) bool { return k.ready && k.made > 0 && k.version > k.made })
	recovered := time.Since(begun)

	tens := float64(count) / 10
	judge(t, "the time until all are Ready", ready, allowed.ready)
	judge(t, "the time until all are Ready again", recovered, allowed.recovered)
	if count >= fewest {
		if ten := cpu / tens; ten > mostCPU {
			t.Errorf("at rest ten clusters take %.2f %% of a core, want at most %.2f %%", ten, mostCPU)
		}
		if ten := (memory - alone) / tens; ten > mostMemory {
			t.Errorf("at rest ten clusters take %.2f MiB, want at most %.2f MiB", ten, mostMemory)
		}
	}
	return fmt.Sprintf("| %d | %.1f s | %.2f %% of a core, %.2f %% for ten | %.0f MiB, of which %.0f without clusters, %.2f for ten | %.1f s |",
		count, ready.Seconds(), cpu, cpu/tens, memory, alone, (memory-alone)/tens, recovered.Seconds())
}

// apiServer starts an API server. It returns a client, what is seen of the clusters, and the path
// of a kubeconfig.
func apiServer(t *testing.T) (client.Client, *seen, string) {
	t.Helper()
	env, err := hostlet.StartEnv(t.Context(), "../../templates/install/crd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	access := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(access, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	c, watches, err := connect(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c, watchAll(t, watches), access
}

func namesOf(count int) []string {
	names := make([]string, count)
	for n := range names {
		names[n] = fmt.Sprintf("db%d", n)
	}
	return names
}

func judge(t *testing.T, what string, took, allowed time.Duration) {
	t.Helper()
	if allowed > 0 && took > allowed {
		t.Errorf("%s was %s, want at most %s", what, took.Round(time.Second), allowed)
	}
}

// patience is how long the test waits for that many clusters: at least three times their bound.
func patience(count int, allowed time.Duration) time.Duration {
	return max(2*time.Minute, 3*allowed, time.Duration(count)*300*time.Millisecond)
}

// rests measures the operator at rest: CPU in percent of a core, and resident memory in MiB. It
// first waits until the frequent passes after a change are over.
func rests(t *testing.T, operator process) (cpu, memory float64) {
	t.Helper()
	pass(t, 20*time.Second)
	before, begun := operator.cpu(t), time.Now()
	pass(t, *window)
	return 100 * (operator.cpu(t) - before).Seconds() / time.Since(begun).Seconds(), operator.memory(t)
}

func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
}

// at calls do for all names, eight at a time.
func at(t *testing.T, names []string, do func(ctx context.Context, name string) error) {
	t.Helper()
	const atATime = 8
	errs := make(chan error, atATime)
	for part := range atATime {
		go func() {
			var err error
			for n := part; n < len(names) && err == nil; n += atATime {
				err = do(t.Context(), names[n])
			}
			errs <- err
		}()
	}
	var all []error
	for range atATime {
		all = append(all, <-errs)
	}
	if n := slices.IndexFunc(all, func(err error) bool { return err != nil }); n >= 0 {
		t.Fatal(all[n])
	}
}

// newCluster has no TLS, as what it is compared with has none.
func newCluster(name string) *api.EtcdCluster {
	mode := api.TLSDisabled
	if *secured {
		mode = api.TLSManaged
	}
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: api.EtcdClusterSpec{
			Replicas: new(int32(members)), Version: node.Etcd36, Storage: api.Storage{Size: resource.MustParse("256Mi")},
			TLS: &api.TLS{Client: &api.ClientTLS{Mode: mode}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}}, // members do not connect to each other
		},
	}
}
