//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/snapshot"
)

// agentImage is the image of the operator itself, whose agent finds and restores snapshots.
const agentImage = "registry.example/quorate:test"

// backups is the claim of the volume on which the snapshots of a stage are.
const backups = "backups"

// agents has the hostlet run the agent as a process of this machine.
func agents(o *hostlet.Options) {
	o.Program = func(image string) string {
		if image != agentImage {
			return ""
		}
		program, err := quorate()
		if err != nil {
			panic(err) // there is no test to fail here
		}
		return program
	}
}

// quorate is the command, built once for all tests.
var quorate = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "quorate-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "quorate")
	if out, err := exec.Command("go", "build", "-o", program, "quorate.dev/cmd/quorate").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w: %s", err, out)
	}
	built = dir
	return program, nil
})

// built is the directory with what was built; empty where nothing was.
var built string

// inStore gives do the store of the stage, which is made where there is none.
func (s *stage) inStore(do func(context.Context, snapshot.Store) error) {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: backups, Namespace: s.ns}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if err := s.Create(s.Context(), claim); err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	err := s.hostlet.Spoil(ctx, s.ns, backups, func(dir string) error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		store, err := snapshot.OpenStore(ctx, snapshot.Config{Directory: &snapshot.Directory{Path: dir}})
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, store), store.Close())
	})
	if err != nil {
		s.Fatal(err)
	}
}

// snapshot takes and verifies a snapshot of a cluster, encrypted to the recipients where there are
// any.
func (s *stage) snapshot(c *api.EtcdCluster, name string, recipients ...string) snapshot.Manifest {
	s.Helper()
	m := s.unverified(c, name, recipients...)
	s.inStore(func(ctx context.Context, store snapshot.Store) error {
		v, err := snapshot.VerifyHash(ctx, store, name, snapshot.FetchOptions{})
		if err != nil {
			return err
		}
		return snapshot.RecordVerification(ctx, store, v)
	})
	return m
}

// unverified takes a snapshot of a cluster.
func (s *stage) unverified(c *api.EtcdCluster, name string, recipients ...string) (m snapshot.Manifest) {
	s.Helper()
	var endpoints []string
	for _, pod := range s.pods(c) {
		endpoints = append(endpoints, endpoint(c)(&pod))
	}
	from := snapshot.Source{Endpoints: endpoints, TLS: s.clientTLS(c)}
	s.inStore(func(ctx context.Context, store snapshot.Store) (err error) {
		options := snapshot.SaveOptions{Name: name, Cluster: c.Namespace + "/" + c.Name, Recipients: recipients}
		m, err = snapshot.Save(ctx, from, store, options)
		return err
	})
	return m
}

// fromSnapshot is a cluster that starts from a snapshot in the store of the stage.
func (s *stage) fromSnapshot(name string, replicas int32, change ...func(*api.BootstrapRestore)) *api.EtcdCluster {
	c := s.cluster(name, replicas)
	c.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backups}}}}
	for _, change := range change {
		change(&c.Spec.Bootstrap.Restore)
	}
	return c
}

// restoredFrom fails unless the cluster says that it was started from the snapshot, and is another
// one than that was taken of.
func (s *stage) restoredFrom(c *api.EtcdCluster, m snapshot.Manifest) {
	s.Helper()
	r := c.Status.Restored
	if r == nil {
		s.Fatalf("the status does not say from what the cluster was started")
	}
	want := api.RestoredSnapshot{
		Name: m.Name, SHA256: m.SHA256, ClusterID: m.ClusterID, EtcdVersion: m.EtcdVersion, Revision: m.Revision, Size: m.Size, Encrypted: m.Encrypted,
		Location: "persistentvolumeclaim://" + backups + "/" + m.Object,
	}
	got := *r
	got.TakenAt, got.VerifiedAt = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("status.restored: -want +got:\n%s", diff)
	}
	if c.Status.ClusterID == m.ClusterID {
		s.Errorf("the cluster has the ID of the one that the snapshot was taken of, %s", m.ClusterID)
	}
}

// bumped is by how much the revision of a restored cluster is beyond that of its snapshot, by
// default.
const bumped = 1_000_000_000

// goesOn fails unless the revision goes on beyond that of the snapshot, and a client that watches
// from a revision of before is told that it is no more.
func (s *stage) goesOn(etcd *clientv3.Client, m snapshot.Manifest) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	got, err := etcd.Get(ctx, "key0")
	if err != nil {
		s.Fatal(err)
	}
	if got.Header.Revision < m.Revision+bumped {
		s.Errorf("the revision is %d, and was %d when the snapshot was taken", got.Header.Revision, m.Revision)
	}
	if response, ok := <-etcd.Watch(ctx, "key0", clientv3.WithRev(m.Revision)); !ok || response.CompactRevision == 0 {
		s.Errorf("a watch from revision %d goes on as if nothing had happened: %v", m.Revision, response)
	}
}
