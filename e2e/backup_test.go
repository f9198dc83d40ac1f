//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/node"
	"quorate.dev/snapshot"
)

// s3Port is that of the Service in node.S3Manifests, bucket the bucket of that server.
const (
	s3Port = "7070"
	bucket = "backups"
)

// TestBackup: a snapshot is taken under load, stored in a real S3 server, restored and served by a
// real etcd. The cluster is put back to it in place while clients write. Another one is taken, and
// the cluster is destroyed with its volumes while clients write. One of the same name starts from
// the newest snapshot. Both times every write that was acknowledged before the snapshot is there.
// The stored snapshot is deleted with its EtcdBackup where the spec says so.
func TestBackup(t *testing.T) {
	t.Parallel()
	var c *api.EtcdCluster
	var load *history.Load
	var numbered func() []time.Time
	b, onVolume := &api.EtcdBackup{}, &api.EtcdBackup{}
	testenv.Test(t, features.New("a backup to S3").
		Setup(step(func(s *stage) {
			s.s3()
			c = s.cluster("db", 3)
			c.Spec.Backup = &api.Backup{Store: s.store("prod")}
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			load = s.load(c, storyFloor)
			numbered = s.number(c, "number")
		})).
		Assess("is stored and verified", step(func(s *stage) {
			b = s.backup("before-the-move", c.Name)
			s.create(b)
			s.verified(b)
			s.kubectl("wait", "etcdbackup/"+b.Name, "--for=condition=Ready", "--timeout="+patience.String())
			if b.Status.ClusterID != c.Status.ClusterID {
				s.Errorf("the snapshot is of cluster %s, want %s", b.Status.ClusterID, c.Status.ClusterID)
			}
			s.checkLoad(load, changesPause)
		})).
		Assess("is what the status says", step(func(s *stage) {
			stored := s.stored("prod")
			if len(stored) != 1 || stored[0].Verification == nil {
				s.Fatalf("the store has %v, want one verified snapshot", stored)
			}
			m := stored[0].Manifest
			want := api.EtcdBackupStatus{
				Name: m.Name, ClusterID: m.ClusterID, Member: m.Member, EtcdVersion: m.EtcdVersion,
				Revision: m.Revision, Size: m.Size, StoredSize: m.StoredSize, SHA256: m.SHA256,
			}
			got := api.EtcdBackupStatus{
				Name: b.Status.Name, ClusterID: b.Status.ClusterID, Member: b.Status.Member, EtcdVersion: b.Status.EtcdVersion,
				Revision: b.Status.Revision, Size: b.Status.Size, StoredSize: b.Status.StoredSize, SHA256: b.Status.SHA256,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				s.Errorf("status, from what is stored: -want +got:\n%s", diff)
			}
			if v := stored[0].Verification; v.Mode != snapshot.ModeRestore || v.EtcdVersion != node.Etcd36 {
				s.Errorf("verified by %s with etcd %q, want by %s with etcd %s", v.Mode, v.EtcdVersion, snapshot.ModeRestore, node.Etcd36)
			}
		})).
		Assess("kubectl get tells of it", step(func(s *stage) {
			want := [][]string{
				{"NAME", "CLUSTER", "READY", "REASON", "REVISION", "TAKEN", "AGE"},
				{b.Name, c.Name, "True", api.ReasonVerified, fmt.Sprint(b.Status.Revision)},
			}
			if diff := cmp.Diff(want, table(s.kubectl("get", "etcdbackup", b.Name), 5)); diff != "" {
				s.Errorf("kubectl get etcdbackup: -want +got:\n%s", diff)
			}
		})).
		Assess("goes to a volume too", step(func(s *stage) {
			s.create(&corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "backups"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: quantities(corev1.ResourceStorage, "256Mi")},
				},
			})
			onVolume = s.backup("on-a-volume", c.Name)
			onVolume.Labels = map[string]string{api.LabelSchedule: "every-minute"}
			onVolume.Spec.Store = &api.BackupStore{Volume: &api.VolumeStore{ClaimName: "backups"}}
			s.create(onVolume)
			s.verified(onVolume)
		})).
		Assess("is made by a schedule, which deletes the one that its retention does not keep", step(func(s *stage) {
			schedule := &api.EtcdBackupSchedule{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "every-minute"},
				Spec: api.EtcdBackupScheduleSpec{
					ClusterRef: api.ClusterReference{Name: c.Name}, Schedule: "* * * * *",
					TimeZone:  "Europe/Berlin", // of which the image must know
					Retention: &api.BackupRetention{Last: 1},
					Template:  api.BackupTemplate{Spec: api.BackupTemplateSpec{Store: s.store("scheduled"), Verify: api.VerifyHash}},
				},
			}
			s.create(schedule)
			s.await(schedule, "followed by a verified backup", func() bool { return schedule.Status.LastSuccessfulTime != nil })
			s.gone(onVolume)
			s.change(schedule, func() { schedule.Spec.Suspend = true })
		})).
		Assess("is what a cluster that serves is put back to in place", step(func(s *stage) {
			s.putBack(c, b, numbered)
		})).
		Assess("brings the cluster back when all of it is lost", step(func(s *stage) {
			numbered := s.number(c, "again")
			newest := s.backup("after-the-move", c.Name)
			s.create(newest)
			s.verified(newest)
			if err := s.Delete(s.Context(), c); err != nil {
				s.Fatal(err)
			}
			s.gone(c)
			claims := s.claims(c)
			for n := range claims {
				if err := s.Delete(s.Context(), &claims[n]); err != nil {
					s.Fatal(err)
				}
				s.gone(&claims[n])
			}
			acknowledged := numbered()
			before := c
			c = s.cluster("db", 3)
			c.Spec.Backup = before.Spec.Backup
			c.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{}}
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			if c.Status.Restored == nil || c.Status.Restored.SHA256 != newest.Status.SHA256 {
				s.Fatalf("status.restored is %v, want the newest snapshot, %s with SHA-256 %s", c.Status.Restored, newest.Status.Name, newest.Status.SHA256)
			}
			if c.Status.ClusterID == before.Status.ClusterID {
				s.Errorf("the restored cluster has the ID of the one that was lost, %s", c.Status.ClusterID)
			}
			s.checkNumbers(c, "again", acknowledged, newest.Status.StartedAt.Time)
		})).
		Assess("goes with its EtcdBackup where that is asked for", step(func(s *stage) {
			s.change(b, func() { b.Spec.DeletionPolicy = api.RetentionDelete })
			s.await(b, "held", func() bool { return slices.Contains(b.Finalizers, api.FinalizerSnapshot) })
			if err := s.Delete(s.Context(), b); err != nil {
				s.Fatal(err)
			}
			s.gone(b)
			if stored := s.stored("prod"); len(stored) != 1 || stored[0].Manifest.Name == b.Status.Name {
				s.Errorf("the store has %v, want the newest snapshot alone", stored)
			}
		})).
		Feature())
}

// TestBackupRefused: what keeps a snapshot from being taken is said by name, with what to do.
func TestBackupRefused(t *testing.T) {
	t.Parallel()
	var c *api.EtcdCluster
	rows := map[string]struct {
		reason  string
		spoil   func(*api.EtcdBackup)
		stalled string
		message string
	}{
		"no-bucket": {
			reason:  "nothing makes a bucket but its owner",
			spoil:   func(b *api.EtcdBackup) { b.Spec.Store.S3.Bucket = "nosuch" },
			stalled: "NoSuchBucket",
		},
		"wrong-key": {
			reason:  "the store does not let this key in",
			spoil:   func(b *api.EtcdBackup) { b.Spec.Store.Credentials.SecretRef.Name = "wrong" },
			stalled: "InvalidCredentials",
		},
		"no-cluster": {
			reason:  "a name may be misspelt",
			spoil:   func(b *api.EtcdBackup) { b.Spec.ClusterRef.Name = "bd" },
			stalled: api.ReasonClusterNotFound,
		},
	}
	feature := features.New("a backup that cannot be taken").
		Setup(step(func(s *stage) {
			s.s3()
			s.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "wrong"},
				StringData: map[string]string{"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "wrong"},
			})
			c = s.cluster("db", 1)
			s.create(c)
			s.ready(c)
		}))
	for name, row := range rows {
		feature = feature.Assess(name+": "+row.reason, step(func(s *stage) {
			b := s.backup(name, c.Name)
			b.Spec.Store = s.store("refused")
			row.spoil(b)
			s.create(b)
			s.await(b, "stalled with reason "+row.stalled, func() bool {
				stalled := meta.FindStatusCondition(b.Status.Conditions, api.ConditionStalled)
				return stalled != nil && stalled.Reason == row.stalled && stalled.Message != ""
			})
			s.Attr("message", meta.FindStatusCondition(b.Status.Conditions, api.ConditionStalled).Message)
		}))
	}
	testenv.Test(t, feature.
		Assess("nothing is stored", step(func(s *stage) {
			if stored := s.stored("refused"); len(stored) != 0 {
				s.Errorf("the store has %v, want nothing", stored)
			}
		})).
		Feature())
}

// backup is an EtcdBackup to change and create.
func (s *stage) backup(name, cluster string) *api.EtcdBackup {
	return &api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec:       api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: cluster}},
	}
}

// verified waits for a backup to be Ready, and fails at once when it is given up.
func (s *stage) verified(b *api.EtcdBackup) {
	s.Helper()
	s.await(b, "stored and verified", func() bool {
		return meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionReady) || b.Status.Failure != nil
	})
	if b.Status.Failure != nil {
		s.Fatalf("EtcdBackup %s was given up: %s: %s", b.Name, b.Status.Failure.Reason, b.Status.Failure.Message)
	}
}

// number writes numbers below a prefix in their order until stop is called, which returns when each
// of them was acknowledged.
func (s *stage) number(c *api.EtcdCluster, prefix string) (stop func() []time.Time) {
	s.Helper()
	etcd := s.etcd(c)
	ctx, cancel := context.WithCancel(s.Context())
	var acknowledged []time.Time
	var writing sync.WaitGroup
	begun := make(chan struct{}) // closed a second after the first: a snapshot tells when it was taken in whole seconds
	writing.Go(func() {
		for late := false; ctx.Err() == nil; {
			if _, err := etcd.Put(ctx, fmt.Sprintf("%s/%06d", prefix, len(acknowledged)), ""); err == nil {
				acknowledged = append(acknowledged, time.Now())
			}
			if !late && len(acknowledged) > 0 && time.Since(acknowledged[0]) > time.Second {
				late = true
				close(begun)
			}
		}
	})
	select {
	case <-begun:
	case <-time.After(patience):
		cancel()
		s.Fatalf("no number was acknowledged within %s", patience)
	}
	return func() []time.Time { cancel(); writing.Wait(); return acknowledged }
}

// checkNumbers fails the test unless the cluster has all numbers up to one, and among them all that
// were acknowledged before a time. It returns how many there are.
func (s *stage) checkNumbers(c *api.EtcdCluster, prefix string, acknowledged []time.Time, taken time.Time) int {
	s.Helper()
	var r *clientv3.GetResponse
	etcd := s.etcd(c)
	s.insist("read the numbers", func(ctx context.Context) (err error) {
		r, err = etcd.Get(ctx, prefix+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		return err
	})
	for n, kv := range r.Kvs {
		if want := fmt.Sprintf("%s/%06d", prefix, n); string(kv.Key) != want {
			s.Fatalf("the restored cluster has %s, where it should have %s", kv.Key, want)
		}
	}
	before := acknowledgedBefore(acknowledged, taken)
	s.Attr("restored", fmt.Sprintf("%d numbers of %d that were acknowledged, %d of them before the snapshot", len(r.Kvs), len(acknowledged), before))
	if before == 0 || len(r.Kvs) < before {
		s.Errorf("the restored cluster has %d numbers, and %d were acknowledged before the snapshot", len(r.Kvs), before)
	}
	return len(r.Kvs)
}

// inPlace is how long a restore in place of a small database may take, from the EtcdRestore to a
// cluster that is Ready.
const inPlace = time.Minute

// putBack restores the cluster in place from a backup, while numbers are written, until it has
// begun. It has what was acknowledged before the snapshot then, and nothing later; its members are
// others, and the volumes of the former ones are set aside.
func (s *stage) putBack(c *api.EtcdCluster, b *api.EtcdBackup, numbered func() []time.Time) {
	s.Helper()
	contract.Watch(s, c)
	former := identityOf(c)
	e := &api.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "back"},
		Spec: api.EtcdRestoreSpec{
			ClusterRef: api.ClusterReference{Name: c.Name}, WhenServing: api.ServingReplace,
			Source: api.RestoreSource{BackupRef: &api.BackupReference{Name: b.Name}},
		},
	}
	asked := time.Now()
	s.create(e)
	s.await(e, "begun", func() bool { return e.Status.StartedAt != nil })
	begun := time.Now()
	acknowledged := numbered()
	s.kubectl("wait", "etcdrestore/"+e.Name, "--for=condition=Ready", "--timeout="+patience.String())
	s.ready(c)
	took := time.Since(asked)
	s.Attr("restored-in-place", fmt.Sprintf("after %.1f s, %.1f s of them without clients; at most %s", took.Seconds(), time.Since(begun).Seconds(), inPlace))
	if took > inPlace {
		s.Errorf("the restore in place took %s, want at most %s", took, inPlace)
	}
	want := [][]string{
		{"NAME", "CLUSTER", "READY", "REASON", "SNAPSHOT", "TAKEN", "AGE"},
		{e.Name, c.Name, "True", api.ReasonRestored, b.Status.Name},
	}
	if diff := cmp.Diff(want, table(s.kubectl("get", "etcdrestore", e.Name), 5)); diff != "" {
		s.Errorf("kubectl get etcdrestore: -want +got:\n%s", diff)
	}

	now := identityOf(c)
	if now.Cluster == former.Cluster || len(now.Members) != len(former.Members) {
		s.Errorf("the restored cluster is %v, and was %v", now, former)
	}
	for _, claim := range s.claims(c) {
		_, wasMember := former.Members[claim.Name]
		_, isMember := now.Members[claim.Name]
		if aside := claim.Annotations[api.AnnotationSetAside] == string(e.UID); wasMember != aside || isMember == aside {
			s.Errorf("claim %s: of a former member: %t, of a member: %t, set aside: %t", claim.Name, wasMember, isMember, aside)
		}
	}
	has := s.checkNumbers(c, "number", acknowledged, b.Status.StartedAt.Time)
	const coarse = 2 * time.Second // the status has whole seconds
	if late := acknowledgedBefore(acknowledged, b.Status.TakenAt.Add(coarse)); has > late || has == len(acknowledged) {
		s.Errorf("the restored cluster has %d numbers of %d, and %d were acknowledged before the snapshot was there", has, len(acknowledged), late)
	}
}

// acknowledgedBefore is how many were.
func acknowledgedBefore(acknowledged []time.Time, end time.Time) int {
	n, _ := slices.BinarySearchFunc(acknowledged, end, time.Time.Compare)
	return n
}

// store is the S3 server of this namespace, as a cluster names it.
func (s *stage) store(prefix api.StorePrefix) *api.BackupStore {
	return &api.BackupStore{
		S3: &api.S3Store{
			Bucket: bucket, Prefix: prefix, Region: "us-east-1",
			Endpoint: fmt.Sprintf("http://s3.%s.svc:%s", s.ns, s3Port),
		},
		Credentials: &api.StoreCredentials{SecretRef: api.SecretReference{Name: "s3-credentials"}},
	}
}

// useS3Credentials has these tests read what the S3 servers have, with the credentials of their
// Secret.
func useS3Credentials() error {
	objects, err := hostlet.Objects(node.S3Manifests)
	if err != nil {
		return err
	}
	for _, o := range objects {
		credentials, _, err := unstructured.NestedStringMap(o.Object, "stringData")
		if err != nil {
			return err
		}
		for name, value := range credentials {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// s3 runs an S3 server in the namespace, and waits until it serves.
func (s *stage) s3() {
	s.Helper()
	objects, err := hostlet.Objects(node.S3Manifests)
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range objects {
		o.SetNamespace(s.ns)
	}
	s.applyAll(objects...)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "s3"}}
	s.await(d, "available", func() bool { return d.Status.AvailableReplicas == 1 })
}

// stored is what the S3 server of this namespace has below a prefix.
func (s *stage) stored(prefix api.StorePrefix) []snapshot.Stored {
	s.Helper()
	pods := &corev1.PodList{}
	if err := s.List(s.Context(), pods, client.InNamespace(s.ns), client.MatchingLabels{"app": "s3"}); err != nil || len(pods.Items) != 1 {
		s.Fatalf("find the Pod of the S3 server: %d Pods, %v", len(pods.Items), err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	store, err := snapshot.OpenStore(ctx, snapshot.Config{S3: &snapshot.S3{
		Bucket: bucket, Prefix: string(prefix), Region: "us-east-1", Endpoint: "http://" + net.JoinHostPort(pods.Items[0].Status.PodIP, s3Port),
	}})
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = store.Close() }() // it was only read
	stored, err := snapshot.List(ctx, store)
	if err != nil {
		s.Fatal(err)
	}
	return stored
}
