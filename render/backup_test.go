package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

const agentImage = "registry.example/quorate:v1"

// TestBackupJobs renders every testdata/etcdbackup/<case>/backup.yaml: the Job that takes it, and
// the one that deletes it.
func TestBackupJobs(t *testing.T) {
	for _, name := range backupCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c := loadBackup(t, name)
			before, clusterBefore := b.DeepCopy(), c.DeepCopy()
			want := written(t, jobs(t, b, c))
			golden(t, filepath.Join("etcdbackup", name, "jobs.yaml"), want)

			for _, job := range jobs(t, b, c) { // applying one overwrites it with the answer
				scribble(reflect.ValueOf(job))
			}
			if got := written(t, jobs(t, b, c)); !bytes.Equal(want, got) {
				t.Errorf("a rendering changes with what was done to an earlier one:\n%s", got)
			}
			if got := written(t, jobs(t, before, clusterBefore)); !bytes.Equal(want, got) {
				t.Errorf("rendering changed the EtcdBackup or the EtcdCluster:\n%s", got)
			}
		})
	}
}

// TestBackupPods: the Pods run where Pod Security is enforced at its level restricted, say what
// they need, see no token, and are selected by nothing that selects members.
func TestBackupPods(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, name := range backupCases(t) {
		b, c := loadBackup(t, name)
		for _, object := range jobs(t, b, c) {
			job := &batchv1.Job{}
			typed(t, object, job)
			pod, what := job.Spec.Template, name+": "+job.Name
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &metav1.ObjectMeta{}, &pod.Spec)); !result.Allowed {
				t.Errorf("%s: %s", what, result.ForbiddenDetail())
			}
			if labels.SelectorFromSet(Selector(c)).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s: the Services of the cluster would lead to it: %v", what, pod.Labels)
			}
			if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
				t.Errorf("%s: it has a token", what)
			}
			for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
					t.Errorf("%s: container %s does not say what it needs", what, container.Name)
				}
				etcd := container.Name == Container || container.Name == ContainerRestore
				if etcd && (len(container.EnvFrom) > 0 || len(container.Env) > 0) {
					t.Errorf("%s: container %s has credentials", what, container.Name)
				}
			}
		}
	}
}

// TestStoreConfig: the agent takes what it is given as a store.
func TestStoreConfig(t *testing.T) {
	t.Parallel()
	for _, name := range backupCases(t) {
		b, _ := loadBackup(t, name)
		text, err := storeConfig(b.Status.Store)
		if err != nil {
			t.Fatal(err)
		}
		var config snapshot.Config
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&config); err != nil {
			t.Fatalf("%s: %s: %v", name, text, err)
		}
		if err := config.Validate(); err != nil {
			t.Errorf("%s: %s: %v", name, text, err)
		}
	}
}

func TestDeletionWithoutCluster(t *testing.T) {
	t.Parallel()
	b, _ := loadBackup(t, "again")
	job, err := DeletionJob(b, nil, agentImage)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "etcdbackup/without-cluster.yaml", written(t, []runtime.ApplyConfiguration{job}))
}

func jobs(t *testing.T, b *api.EtcdBackup, c *api.EtcdCluster) []runtime.ApplyConfiguration {
	t.Helper()
	take, err := BackupJob(b, c, agentImage)
	if err != nil {
		t.Fatal(err)
	}
	remove, err := DeletionJob(b, c, agentImage)
	if err != nil {
		t.Fatal(err)
	}
	return []runtime.ApplyConfiguration{take, remove}
}

func backupCases(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/etcdbackup/*/backup.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	for i, path := range paths {
		paths[i] = filepath.Base(filepath.Dir(path))
	}
	return paths
}

func loadBackup(t *testing.T, name string) (*api.EtcdBackup, *api.EtcdCluster) {
	t.Helper()
	b, c := &api.EtcdBackup{}, &api.EtcdCluster{}
	dir := filepath.Join("testdata/etcdbackup", name)
	raw, err := os.ReadFile(filepath.Join(dir, "backup.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, b); err != nil {
		t.Fatal(err)
	}
	raw, err = os.ReadFile(filepath.Join(dir, "cluster.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = os.ReadFile("testdata/etcdbackup/cluster.yaml")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, c); err != nil {
		t.Fatal(err)
	}
	return b, c
}

func TestLocation(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   api.BackupStore
		want   string
	}{
		"S3": {
			reason: "a prefix is a path, with a slash at its end or without",
			args:   api.BackupStore{S3: &api.S3Store{Bucket: "b", Prefix: "a/c/"}},
			want:   "s3://b/a/c/x.db.zst",
		},
		"GCS": {
			reason: "without a prefix",
			args:   api.BackupStore{GCS: &api.GCSStore{Bucket: "b"}},
			want:   "gs://b/x.db.zst",
		},
		"Azure": {
			reason: "an account has many containers",
			args:   api.BackupStore{Azure: &api.AzureStore{Account: "acc", Container: "c", Prefix: "p"}},
			want:   "azblob://acc/c/p/x.db.zst",
		},
		"Volume": {
			reason: "by its claim, which is where a person finds it",
			args:   api.BackupStore{Volume: &api.VolumeStore{ClaimName: "backups", SubPath: "prod"}},
			want:   "persistentvolumeclaim://backups/prod/x.db.zst",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Location(&tc.args, "x.db.zst"); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
