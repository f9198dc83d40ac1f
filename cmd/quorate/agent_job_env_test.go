//go:build env

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
	"quorate.dev/render"
	"quorate.dev/snapshot"
)

// TestJobs runs the containers of the Jobs of an EtcdBackup as processes, one after the other,
// against three real members: what is rendered takes, verifies and deletes a snapshot.
func TestJobs(t *testing.T) {
	t.Parallel()
	const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	cases := map[string]struct {
		reason  string
		args    api.EtcdBackupSpec
		etcd    string
		stored  []string // the ends of the names of what is stored
		mode    snapshot.Mode
		cluster string // another ID than the members have
		refused string
	}{
		"Restore": {
			reason: "What is stored is restored and served",
			etcd:   node.Etcd36,
			stored: []string{".db.zst", ".manifest.json", ".verified.json"},
			mode:   snapshot.ModeRestore,
		},
		"Encrypted": {
			reason: "The plain copy is restored and served, and what is stored is read again",
			args:   api.EtcdBackupSpec{Encryption: &api.BackupEncryption{Recipients: []api.AgeRecipient{recipient}}},
			etcd:   node.Etcd37,
			stored: []string{".db.zst.age", ".manifest.json", ".verified.json"},
			mode:   snapshot.ModeRestore,
		},
		"Hash": {
			reason: "What is stored is read again",
			args:   api.EtcdBackupSpec{Verify: api.VerifyHash},
			etcd:   node.Etcd35,
			stored: []string{".db.zst", ".manifest.json", ".verified.json"},
			mode:   snapshot.ModeHash,
		},
		"OtherCluster": {
			reason:  "Another cluster under the same names is refused, and nothing is stored",
			etcd:    node.Etcd36,
			cluster: "1",
			refused: "OtherCluster",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t, tc.etcd)
			h.form()
			h.run("etcdctl --endpoints http://10.0.0.1:2379 put before saved")
			b, c := h.backed(tc.args, tc.etcd)
			if tc.cluster != "" {
				b.Status.ClusterID = tc.cluster
			}
			store := h.pod()

			last := h.job(b, c, render.BackupJob)
			if tc.refused != "" {
				if last.Error == nil || last.Error.Reason != tc.refused {
					t.Fatalf("%s: %+v", tc.reason, last)
				}
			} else if last.Verification == nil || last.Verification.Mode != tc.mode || last.Verification.Name != b.Status.Name {
				t.Fatalf("%s: %+v %+v", tc.reason, last, last.Error)
			}
			if diff := cmp.Diff(tc.stored, ends(t, store, b.Status.Name)); diff != "" {
				t.Errorf("%s: stored: -want +got:\n%s", tc.reason, diff)
			}
			if recorded := recordedMode(t, store, b.Status.Name); recorded != tc.mode {
				t.Errorf("%s: the store says that it was verified by %q", tc.reason, recorded)
			}
			if last := h.job(b, c, render.DeletionJob); last.Error != nil {
				t.Errorf("%s: delete: %+v", tc.reason, last.Error)
			}
			if left := ends(t, store, b.Status.Name); len(left) > 0 {
				t.Errorf("%s: left in the store: %v", tc.reason, left)
			}
		})
	}
}

// backed is an EtcdBackup whose first attempt is written down, and the EtcdCluster of the three
// members.
func (h *hosts) backed(spec api.EtcdBackupSpec, version string) (*api.EtcdBackup, *api.EtcdCluster) {
	h.Helper()
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"}, Status: api.EtcdClusterStatus{ClusterID: "cd"}} // without TLS
	for _, d := range documented {
		c.Status.Members = append(c.Status.Members, api.MemberStatus{Name: d.member, ID: d.member, Version: version})
		h.as = append(h.as, strings.TrimPrefix(c.ClientURL(d.member), "http://"), h.here(d.address+":2379", d.member))
	}
	var status []struct {
		Status struct {
			Header struct {
				ClusterID uint64 `json:"cluster_id"`
			} `json:"header"`
		} `json:"Status"`
	}
	if err := json.Unmarshal([]byte(h.run("etcdctl endpoint status -w json --endpoints http://10.0.0.1:2379")), &status); err != nil {
		h.Fatal(err)
	}
	b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", UID: "1a2b3c4d-0000"}, Spec: spec}
	b.Status = api.EtcdBackupStatus{
		Attempt: 1, Name: b.SnapshotName(1), ClusterID: strconv.FormatUint(status[0].Status.Header.ClusterID, 16),
		Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: "backups"}},
	}
	return b, c
}

// pod has the volumes of a Pod here, and ports for its own etcd. It returns the directory of the
// store.
func (h *hosts) pod() string {
	h.Helper()
	store, scratch := filepath.Join(h.dir, "store"), filepath.Join(h.dir, "scratch")
	for _, dir := range []string{store, scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			h.Fatal(err)
		}
	}
	own := freePorts(h.T)
	h.as = append(h.as, "/var/lib/quorate/store", store, "/scratch", scratch, "127.0.0.1:2379", loopback(own), "127.0.0.1:2380", loopback(own+1))
	return store
}

// job runs the containers of a Job until one fails, and returns what the last of them has left.
func (h *hosts) job(b *api.EtcdBackup, c *api.EtcdCluster, rendered func(*api.EtcdBackup, *api.EtcdCluster, string) (*batchv1ac.JobApplyConfiguration, error)) agentResult {
	h.Helper()
	job, err := rendered(b, c, "quorate:dev")
	if err != nil {
		h.Fatal(err)
	}
	var result agentResult
	spec := job.Spec.Template.Spec
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		words := []string{"TMPDIR=/dev/null/none"} // there is none in the image
		for _, e := range container.Env {
			words = append(words, *e.Name+"="+*e.Value)
		}
		words = append(words, "quorate")
		if *container.Name == render.Container {
			words = []string{"etcd"}
		}
		for _, arg := range container.Args {
			words = append(words, quoted(arg))
		}
		if *container.Name == render.Container {
			h.start("verify", strings.Join(words, " "))
			continue
		}
		file := filepath.Join(h.dir, *container.Name+".json")
		out, err := h.try(h.here(strings.Join(append(words, "--result="+file), " "), "verify"))
		h.Logf("%s: %v\n%s", *container.Name, err, out)
		if result = readResult(h.T, file); err != nil {
			break
		}
	}
	return result
}

// recordedMode is how a snapshot was verified, as its store says; empty where it was not.
func recordedMode(t *testing.T, dir, name string) snapshot.Mode {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name+".verified.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	v := snapshot.Verification{}
	if err := errors.Join(err, json.Unmarshal(raw, &v)); err != nil {
		t.Fatal(err)
	}
	return v.Mode
}

// ends of the names of the objects of a snapshot.
func ends(t *testing.T, dir, name string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if end, ok := strings.CutPrefix(e.Name(), name); ok {
			all = append(all, end)
		}
	}
	return all
}
