package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
	"quorate.dev/snapshot"
)

// TestAgentOfRestore: the Job that looks for a snapshot and the first members run commands of the
// agent, with flags that it has.
func TestAgentOfRestore(t *testing.T) {
	t.Parallel()
	store := &api.BackupStore{S3: &api.S3Store{Bucket: "etcd-backups"}}
	cases := map[string]struct {
		reason string
		args   api.BootstrapRestore
	}{
		"Newest": {reason: "all by default", args: api.BootstrapRestore{Store: store}},
		"Named":  {reason: "one that is named, with its history", args: api.BootstrapRestore{Store: store, Snapshot: "monday", RevisionBump: new(int64(0))}},
		"Full": {
			reason: "all that can be said",
			args: api.BootstrapRestore{
				Store: store, Before: new(metav1.Now()), Cluster: "prod/db", ClusterID: "c9", Unverified: api.UnverifiedAllow,
				Identity: &api.AgeIdentity{SecretRef: api.SecretReference{Name: "age"}}, RevisionBump: new(int64(5000)),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"},
				Spec: api.EtcdClusterSpec{
					Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")}, Bootstrap: &api.Bootstrap{Restore: tc.args},
				},
			}
			job, err := render.FindJob(c, "quorate:dev")
			if err != nil {
				t.Fatal(err)
			}
			pod, err := render.Pod(c, render.Member{
				Name: "db-0", Version: "3.6.16", Token: "token", BootstrapSize: 3, Snapshot: "5a monday", Restore: "5a monday", AgentImage: "quorate:dev",
			})
			if err != nil {
				t.Fatal(err)
			}
			again, err := render.Pod(c, render.Member{
				Name: "db-0", Version: "3.6.16", Token: "token", BootstrapSize: 3, InitialClusterState: render.StateNew, Again: true, AgentImage: "quorate:dev",
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, container := range []corev1ac.ContainerApplyConfiguration{job.Spec.Template.Spec.Containers[0], pod.Spec.InitContainers[0], again.Spec.InitContainers[0]} {
				cmd, flags, err := root().Find(container.Args)
				if err == nil {
					err = cmd.ParseFlags(flags)
				}
				if err != nil || cmd.Parent().Name() != "agent" || len(cmd.Flags().Args()) > 0 {
					t.Errorf("%s: container %s: %v: %v", tc.reason, *container.Name, container.Args, err)
				}
			}
		})
	}
}

// TestAgentRestoreMember: what is there stays as it is, whatever the Pod is told.
func TestAgentRestoreMember(t *testing.T) {
	t.Parallel()
	const sum = "5a"
	cases := map[string]struct {
		reason string
		wanted string
		stored string // SHA-256 of what is in the store now, where it is not another one
		data   string // file in the data directory
		says   string // what is in it
		want   *agentError
	}{
		"NotWanted": {
			reason: "the cluster has formed, and a disk that is empty has lost what its member voted for",
		},
		"Done": {
			reason: "it was restored before, and has been written to since", wanted: "5a monday",
			data: "member/restored.json", says: `{"sha256":"5a","member":"db-0","token":"token"}`,
		},
		"AnotherSnapshot": {
			reason: "half of the members must not be of another one", wanted: "5a monday",
			data: "member/restored.json", says: `{"sha256":"6b","member":"db-0","token":"token"}`,
			want: &agentError{Reason: "Failed", Message: "the volume has other data than that of snapshot monday, and nothing is written over: delete the EtcdCluster and its PersistentVolumeClaims, and apply it again"},
		},
		"AnotherCluster": {
			reason: "the same snapshot, restored for an earlier EtcdCluster", wanted: "5a monday",
			data: "member/restored.json", says: `{"sha256":"5a","member":"db-0","token":"earlier"}`,
			want: &agentError{Reason: "Failed", Message: "the volume has other data than that of snapshot monday, and nothing is written over: delete the EtcdCluster and its PersistentVolumeClaims, and apply it again"},
		},
		"Replaced": {
			reason: "there is another snapshot under that name", wanted: "5a monday",
			want: &agentError{Reason: "Failed", Message: "snapshot monday is another one than was chosen: its data has SHA-256 6b, not 5a"},
		},
		"NoIdentity": {
			reason: "the cluster names one, which this snapshot does not need: it is read, and turns out to be damaged", wanted: "5a monday", stored: "5a",
			want: &agentError{Reason: "Damaged", Message: "snapshot monday is damaged: stored sha256: it is 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881, not 7c"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store, data, scratch, result := filepath.Join(dir, "store"), filepath.Join(dir, "data"), filepath.Join(dir, "scratch"), filepath.Join(dir, "result")
			stored := "6b"
			if tc.stored != "" {
				stored = tc.stored
			}
			manifest, err := json.Marshal(snapshot.Manifest{
				Format: snapshot.Format, Name: "monday", Object: "monday.db.zst", SHA256: stored, StoredSHA256: "7c", Size: 1, StoredSize: 1, Revision: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(store, "monday.manifest.json"), string(manifest))
			writeFile(t, filepath.Join(store, "monday.db.zst"), "x")
			writeFile(t, filepath.Join(scratch, "snapshot.db"), "what an interrupted restore has left")
			if tc.data != "" {
				writeFile(t, filepath.Join(data, tc.data), tc.says)
			}
			before := tree(t, data)
			cmd := root()
			cmd.SetErr(io.Discard)
			cmd.SetArgs([]string{
				"agent", "restore-member", "--identity=" + filepath.Join(dir, "missing"), "--wanted=" + tc.wanted, "--store=" + store, "--snapshot=monday", "--sha256=" + sum, "--scratch=" + scratch,
				"--data-dir=" + data, "--name=db-0", "--initial-cluster=db-0=http://db-0:2380", "--initial-cluster-token=token", "--result=" + result,
			})
			failed := cmd.ExecuteContext(t.Context())
			if (failed != nil) != (tc.want != nil) {
				t.Errorf("%s: %v", tc.reason, failed)
			}
			var got agentResult
			document, err := os.ReadFile(result)
			if err != nil || json.Unmarshal(document, &got) != nil {
				t.Fatalf("%v: %s", err, document)
			}
			if diff := cmp.Diff(tc.want, got.Error); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tree(t, data)); diff != "" {
				t.Errorf("%s: the data directory has changed: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree are the files below a directory, which may not be there.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // it is not there
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
