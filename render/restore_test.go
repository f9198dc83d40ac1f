package render

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

const chosen = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 prod-db-20261125t075000z"

func loadRestore(t *testing.T, name string) *api.EtcdCluster {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/restore", name, "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &api.EtcdCluster{}
	if err := yaml.UnmarshalStrict(raw, c); err != nil {
		t.Fatal(err)
	}
	withoutTLS(c)
	return c
}

// restoredMember is the member 0 at its first start, which is restored.
func restoredMember(c *api.EtcdCluster) Member {
	m := firstMember(c)
	m.InitialCluster, m.InitialClusterState = Resume(c, m.Name), StateExisting
	m.Snapshot, m.Restore, m.AgentImage = chosen, chosen, agentImage
	if r := c.Status.Restored; r != nil { // the first member of a restore in place
		m.Name, m.BootstrapSize, m.BootstrapBase = c.MemberName(int(c.Status.FirstOrdinal)), 1, int(c.Status.FirstOrdinal)
		m.InitialCluster, m.Token = Resume(c, m.Name), c.Status.Restore.UID
		m.Snapshot = r.SHA256 + " " + r.Name
		m.Restore = m.Snapshot
	}
	return m
}

// firstJob looks for the snapshot, or copies what a survivor has.
func firstJob(c *api.EtcdCluster, m Member) (*batchv1ac.JobApplyConfiguration, error) {
	if r := c.Status.Restored; r != nil {
		return CopyJob(c, m, r.EtcdVersion)
	}
	return FindJob(c, agentImage)
}

func restoreObjects(t *testing.T, c *api.EtcdCluster) []runtime.ApplyConfiguration {
	t.Helper()
	m := restoredMember(c)
	job, err := firstJob(c, m)
	if err != nil {
		t.Fatal(err)
	}
	objects := []runtime.ApplyConfiguration{job}
	if claim := Volume(c, m); claim != nil {
		objects = append(objects, claim)
	}
	pod, err := Pod(c, m)
	if err != nil {
		t.Fatal(err)
	}
	return append(objects, pod)
}

// TestRestore renders every testdata/restore/<case>/cluster.yaml: the Job that looks for the
// snapshot, and the first member as it is restored.
func TestRestore(t *testing.T) {
	paths, err := filepath.Glob("testdata/restore/*/cluster.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := loadRestore(t, name)
			want := written(t, restoreObjects(t, c))
			golden(t, filepath.Join("restore", name, "objects.yaml"), want)

			for _, object := range restoreObjects(t, c) { // applying one overwrites it with the answer
				scribble(reflect.ValueOf(object))
			}
			if got := written(t, restoreObjects(t, c)); !bytes.Equal(want, got) {
				t.Errorf("a rendering changes with what was done to an earlier one:\n%s", got)
			}
			all := restoreObjects(t, c)
			job, pod := &batchv1.Job{}, &corev1.Pod{}
			typed(t, all[0], job)
			typed(t, all[len(all)-1], pod)
			for what, spec := range map[string]*corev1.PodSpec{"Job": &job.Spec.Template.Spec, "Pod": &pod.Spec} {
				if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &metav1.ObjectMeta{}, spec)); !result.Allowed {
					t.Errorf("%s: %s", what, result.ForbiddenDetail())
				}
			}
			if labels.SelectorFromSet(Selector(c)).Matches(labels.Set(job.Spec.Template.Labels)) {
				t.Errorf("the Services of the cluster would lead to the Pod of the Job: %v", job.Spec.Template.Labels)
			}
			etcd := pod.Spec.Containers[0]
			for _, mount := range etcd.VolumeMounts {
				if mount.Name != dataVolume {
					t.Errorf("etcd sees what only the agent needs: %v", mount)
				}
			}
			if len(etcd.EnvFrom) > 0 {
				t.Errorf("etcd has credentials: %v", etcd.EnvFrom)
			}
		})
	}
}

// TestRestoredLater: what a member is made of at later starts is that of every other member, and
// its Pod of the first start is what the spec asks for.
func TestRestoredLater(t *testing.T) {
	t.Parallel()
	c := loadRestore(t, "s3")
	first := restoredMember(c)
	live := &corev1.Pod{}
	pod, err := Pod(c, first)
	if err != nil {
		t.Fatal(err)
	}
	typed(t, pod, live)
	later := first
	later.Restore = ""
	if change, parts, err := Needs(live, c, later); change != ChangeNone || err != nil {
		t.Errorf("a Pod of the first start is to be changed: %s, %v, %v", change, parts, err)
	}
	encrypted := c.DeepCopy()
	encrypted.Spec.Backup = &api.Backup{
		Encryption: &api.BackupEncryption{Recipients: []api.AgeRecipient{"age1"}},
		Identity:   &api.AgeIdentity{SecretRef: api.SecretReference{Name: "other"}},
	}
	if change, parts, err := Needs(live, encrypted, later); change != ChangeNone || err != nil {
		t.Errorf("encryption of snapshots to come changes a Pod: %s, %v, %v", change, parts, err)
	}
	again, err := Pod(c, later)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Spec.InitContainers) > 0 || again.Annotations[api.AnnotationRestore] != "" {
		t.Errorf("a member is restored at a later start: %v", again)
	}
	plain := c.DeepCopy()
	plain.Spec.Bootstrap = nil
	never, err := Pod(plain, later)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(never, again); diff != "" {
		t.Errorf("later starts differ from those of a cluster that began empty: -want +got:\n%s", diff)
	}
}

func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   func(*api.EtcdCluster, *Member)
		want   string
	}{
		"NoImage": {
			reason: "there is nothing to restore with",
			args:   func(_ *api.EtcdCluster, m *Member) { m.AgentImage = "" },
			want:   "the operator does not know its own image, with which members are restored: start it with --agent-image",
		},
		"NoStore": {
			reason: "the spec does not say where the snapshot is",
			args:   func(c *api.EtcdCluster, _ *Member) { c.Spec.Bootstrap.Restore.Store = nil },
			want:   "there is no store of snapshots: set spec.backup.store of the EtcdCluster, or the store of what it is restored from",
		},
		"Gone": {
			reason: "a first start goes on, and the spec does not say from what",
			args:   func(c *api.EtcdCluster, _ *Member) { c.Spec.Bootstrap = nil },
			want:   "spec.bootstrap.restore does not say where the snapshot is: revert it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := loadRestore(t, "s3")
			m := restoredMember(c)
			tc.args(c, &m)
			_, err := Pod(c, m)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
