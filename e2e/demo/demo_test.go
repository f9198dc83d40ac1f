package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
	"quorate.dev/e2e/node"
	"quorate.dev/render"
)

// TestSamples: what the demo applies fits together.
func TestSamples(t *testing.T) {
	t.Parallel()
	c, pod := &api.EtcdCluster{}, &corev1.Pod{}
	read(t, sample, c)
	read(t, etcdctl, pod)
	if errs := crd.Validate(api.EtcdClusterKind.Kind, c); len(errs) > 0 {
		t.Errorf("%s: %v", sample, errs)
	}
	if c.Spec.Version != node.Etcd36 {
		t.Errorf("%s has version %s, and the images are of %s", sample, c.Spec.Version, node.Etcd36)
	}

	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
		t.Errorf("%s in a restricted namespace: %s", etcdctl, result.ForbiddenDetail())
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if want := render.Image(c, c.Spec.Version); container.Image != want {
			t.Errorf("%s: %s runs %s, want %s as the EtcdCluster does", etcdctl, container.Name, container.Image, want)
		}
		files := container.VolumeMounts[0].MountPath + "/"
		want := []corev1.EnvVar{
			{Name: "ETCDCTL_ENDPOINTS", Value: "https://" + c.ClientServiceName() + ":2379"}, {Name: "ETCDCTL_CACERT", Value: files + api.SecretCA},
			{Name: "ETCDCTL_CERT", Value: files + api.SecretCert}, {Name: "ETCDCTL_KEY", Value: files + api.SecretKey},
		}
		if diff := cmp.Diff(want, container.Env); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", etcdctl, container.Name, diff)
		}
	}
	if got, want := pod.Spec.Volumes[0].Secret.SecretName, c.ApplicationSecret(); !c.ClientTLS() || got != want {
		t.Errorf("%s mounts the Secret %s, want %s of a cluster with TLS", etcdctl, got, want)
	}
}

// TestBackupSamples: the EtcdCluster that starts from a snapshot is the sample, and looks for it
// where the EtcdBackup has stored it.
func TestBackupSamples(t *testing.T) {
	t.Parallel()
	b, original, restored := &api.EtcdBackup{}, &api.EtcdCluster{}, &api.EtcdCluster{}
	read(t, backupFile, b)
	read(t, sample, original)
	read(t, restoredFile, restored)
	if b.Spec.ClusterRef.Name != original.Name {
		t.Errorf("%s is of EtcdCluster %q, want %q", backupFile, b.Spec.ClusterRef.Name, original.Name)
	}
	original.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{Store: b.Spec.Store}}
	if diff := cmp.Diff(original, restored); diff != "" {
		t.Errorf("%s, from %s: -want +got:\n%s", restoredFile, sample, diff)
	}
}

func TestPodState(t *testing.T) {
	t.Parallel()
	conditions := func(kinds ...corev1.PodConditionType) corev1.PodStatus {
		status := corev1.PodStatus{Phase: corev1.PodPending}
		for _, kind := range kinds {
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
		}
		return status
	}
	running := conditions(corev1.PodScheduled)
	running.Phase = corev1.PodRunning
	cases := map[string]struct {
		reason string
		args   corev1.PodStatus
		want   string
	}{
		"Created":   {reason: "It was not looked at yet", args: corev1.PodStatus{Phase: corev1.PodPending}, want: "created"},
		"Scheduled": {reason: "It has a node, and no container yet", args: conditions(corev1.PodScheduled), want: "scheduled"},
		"Running":   {reason: "Its container runs and is not ready", args: running, want: "running"},
		"Ready":     {reason: "The kubelet found it ready", args: conditions(corev1.PodScheduled, corev1.PodReady), want: "ready"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, podState(&corev1.Pod{Status: tc.args})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIndented(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff("     a\n\n     b\n", indented("a\n\nb\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	got := quoted([]string{"get", "pods", `--output=jsonpath={.items[*].metadata.name}{"\n"}`})
	if diff := cmp.Diff(`get pods '--output=jsonpath={.items[*].metadata.name}{"\n"}'`, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// read a sample as strictly as the API server would.
func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
