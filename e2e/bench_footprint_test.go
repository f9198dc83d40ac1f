//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/hostlet"
)

// TestBenchFootprint: CPU and memory of the operator for one and for a hundred clusters of three
// members at rest. The operator is what its image holds, as a process beside a real API server;
// stand-ins answer for etcd.
func TestBenchFootprint(t *testing.T) {
	const window = time.Minute
	env, err := hostlet.StartEnv(t.Context(), "../templates/install/crd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	startStandIns(t, c)
	s := &stage{T: t, WithWatch: c, ns: "default"}
	stages.Add(1)
	operator := startOperator(t, env.KubeConfig)

	rows := []string{
		"| EtcdClusters | CPU | resident memory |",
		"| ---: | ---: | ---: |",
	}
	clusters := 0
	for _, count := range []int{0, 1, 100} { // first what it costs by itself
		var added []*api.EtcdCluster
		created := time.Now()
		for ; clusters < count; clusters++ {
			cluster := s.cluster(fmt.Sprintf("db%d", clusters), 3)
			s.create(cluster)
			added = append(added, cluster)
		}
		for _, cluster := range added {
			s.readyThere(cluster)
		}
		t.Logf("%d clusters are ready, the last %d after %.0f s", count, len(added), time.Since(created).Seconds())
		s.pass(20 * time.Second) // the first looks are in haste
		before, begun := operator.cpu(t), time.Now()
		s.pass(window)
		used := (operator.cpu(t) - before).Seconds() / time.Since(begun).Seconds()
		rows = append(rows, fmt.Sprintf("| %d | %.2f %% of a core | %.0f MiB |", count, used*100, operator.memory(t)))
		t.Log(rows[len(rows)-1])
	}
	fmt.Printf("\nThe operator at rest, over %s\n\n%s\n\n", window, strings.Join(rows, "\n"))
}

// readyThere waits for a cluster to be ready in the API server of this stage.
func (s *stage) readyThere(c *api.EtcdCluster) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	w, err := s.Watch(ctx, &api.EtcdClusterList{}, client.InNamespace(s.ns), client.MatchingFields{"metadata.name": c.Name})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if seen, ok := event.Object.(*api.EtcdCluster); ok {
			seen.DeepCopyInto(c)
		}
		if is(c, api.ConditionReady, metav1.ConditionTrue) {
			return
		}
	}
	s.Fatalf("%s is not ready: %s", c.Name, contract.Describe(c))
}

// process is a running operator.
type process int

// startOperator starts what is in the operator's image, without leader election, which takes a
// namespace to be in.
func startOperator(t *testing.T, kubeconfig []byte) process {
	t.Helper()
	access, log := filepath.Join(t.TempDir(), "kubeconfig"), &bytes.Buffer{}
	if err := os.WriteFile(access, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../bin/image/quorate", "operator", "--leader-elect=false", "--health-probe-bind-address=0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+access)
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("the operator's last lines:\n%s", log.Bytes()[max(0, log.Len()-8<<10):])
		}
	})
	return process(cmd.Process.Pid)
}

// cpu is the time that the process has computed so far.
func (p process) cpu(t *testing.T) time.Duration {
	t.Helper()
	const ticks = time.Second / 100 // USER_HZ, the same on every Linux that Go runs on
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	if err != nil {
		t.Fatal(err)
	}
	// The second field is the program's name in brackets; utime and stime are the 14th and 15th.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * ticks
	}
	return sum
}

// memory that is resident, in MiB.
func (p process) memory(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
