//go:build env

package reconcile_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

// keyPair is one of age.
func (s *stage) keyPair() *age.X25519Identity {
	s.Helper()
	identity, err := age.GenerateX25519Identity()
	s.must(err)
	return identity
}

// encryptedTo is the encryption to one recipient.
func encryptedTo(identity *age.X25519Identity) *api.BackupEncryption {
	return &api.BackupEncryption{Recipients: []api.AgeRecipient{api.AgeRecipient(identity.Recipient().String())}}
}

// secretOf has the identity in a Secret of that name.
func (s *stage) secretOf(name string, identity *age.X25519Identity) *api.AgeIdentity {
	s.Helper()
	s.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns},
		StringData: map[string]string{"identity.txt": "# of a test\n" + identity.String() + "\n"},
	})
	return ageSecret(name)
}

func ageSecret(secret string) *api.AgeIdentity {
	return &api.AgeIdentity{SecretRef: api.SecretReference{Name: secret}}
}

// backedUp is an EtcdBackup of the cluster that says nothing of encryption, and is verified.
func (s *stage) backedUp(c *api.EtcdCluster, name string, store *api.BackupStore) *api.EtcdBackup {
	s.Helper()
	b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	b.Spec.ClusterRef.Name, b.Spec.Store = c.Name, store
	s.create(b)
	s.awaitObject(b, "verified", func() bool { return meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionReady) })
	return b
}

// manifest of the snapshot of an EtcdBackup, in the store of the stage.
func (s *stage) manifest(b *api.EtcdBackup) (m snapshot.Manifest) {
	s.Helper()
	s.inStore(func(ctx context.Context, store snapshot.Store) (err error) {
		m, err = snapshot.ReadManifest(ctx, store, b.Status.Name)
		return err
	})
	return m
}

// untold fails where one of the words is in a file of the store, an object, an event or a log.
func (s *stage) untold(words []string) {
	s.Helper()
	check := func(where string, text []byte) {
		s.Helper()
		for _, word := range words {
			if bytes.Contains(text, []byte(word)) {
				s.Errorf("%s has what is secret", where)
			}
		}
	}
	s.must(s.hostlet.Spoil(s.Context(), s.ns, backups, func(dir string) error {
		return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			check("the store, in "+entry.Name()+",", content)
			encrypted := strings.HasSuffix(path, ".db.zst.age") && bytes.HasPrefix(content, []byte("age-encryption.org/v1\n"))
			if !encrypted && !strings.HasSuffix(path, ".json") {
				s.Errorf("the store has %s, which is not encrypted", entry.Name())
			}
			return err
		})
	}))
	for _, list := range []client.ObjectList{
		&api.EtcdClusterList{}, &api.EtcdBackupList{}, &api.EtcdRestoreList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &eventsv1.EventList{},
	} {
		s.must(s.List(s.Context(), list, client.InNamespace(s.ns)))
		text, err := json.Marshal(list)
		s.must(err)
		check("what the API server has of a list", text)
		if pods, ok := list.(*corev1.PodList); ok {
			for i := range pods.Items {
				check("the log of Pod "+pods.Items[i].Name, []byte(s.hostlet.Log(s.ns, pods.Items[i].Name)))
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.logs) == 0 {
		s.Error("the operators have said nothing")
	}
	check("the log of the operators", []byte(strings.Join(s.logs, "\n")))
}

// TestEncrypted: a cluster asks for encryption, and each of its snapshots is encrypted. What is
// restored from one needs the identity: without it, or with another one, the cluster goes on, and
// is told which Secret that is.
func TestEncrypted(t *testing.T) {
	s := newStage(t, agents)
	s.inStore(func(context.Context, snapshot.Store) error { return nil })
	s.backUp()
	s.operate()
	right, stranger, value := s.keyPair(), s.keyPair(), rand.Text()
	const key = "canary"
	c := s.guarded(1, etcd36, backups)
	c.Spec.Backup.Encryption = encryptedTo(right)
	s.create(c)
	s.put(s.ready(c), key, value)
	kept := data{}
	s.write(c, kept)

	// Those that say nothing of encryption, one of them with a store of its own, and the one before
	// a change of the version.
	first := s.backedUp(c, "monday", nil)
	taken := []*api.EtcdBackup{first, s.backedUp(c, "elsewhere", &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backups, SubPath: "elsewhere"}})}
	s.write(c, kept)
	s.change(c, func() { c.Spec.Version = etcd37 })
	last := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: c.BackupBeforeChangeName(), Namespace: s.ns}}
	s.runs(c, etcd37)
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(last), last))
	for _, b := range append(taken, last) {
		if b.Status.VerifiedAt == nil || !strings.HasSuffix(b.Status.Location, b.Status.Name+".db.zst.age") {
			t.Errorf("EtcdBackup %s: %+v", b.Name, b.Status)
		}
		if diff := cmp.Diff(c.Spec.Backup.Encryption, b.Status.Encryption); diff != "" {
			t.Errorf("EtcdBackup %s is encrypted otherwise than the cluster asks for: -want +got:\n%s", b.Name, diff)
		}
	}

	// The newest one is restored, once there is what reads it.
	s.put(s.etcd(c), "later", "value")
	before, uids := identityOf(c), s.uids(c)
	e := s.etcdRestore("back", anyway, func(e *api.EtcdRestoreSpec) { e.Source = api.RestoreSource{} })
	s.create(e)
	s.saysStalled(e, api.ReasonRestoreFailed, "snapshot "+last.Status.Name, "is encrypted: set spec.backup.identity of the EtcdCluster")
	s.change(c, func() { c.Spec.Backup.Identity = ageSecret("age") })
	s.saysStalled(e, api.ReasonRestoreFailed, "no snapshot to restore: snapshot "+last.Status.Name+" is encrypted: --identity: open ", "no such file",
		"the identity comes from Secret age, key identity.txt (spec.backup.identity of the EtcdCluster)")
	s.secretOf("age", stranger)
	s.saysStalled(e, api.ReasonRestoreFailed, "no snapshot to restore: snapshot "+last.Status.Name+": it is encrypted, and to other recipients", "Secret age, key identity.txt")
	s.same(c, before)
	if diff := cmp.Diff(uids, s.uids(c)); diff != "" {
		t.Errorf("while it could not be read, Pods or claims changed: -want +got:\n%s", diff)
	}
	s.want(s.ready(c), "later", "value")
	rightSecret := s.secretOf("age-right", right)
	s.change(c, func() { c.Spec.Backup.Identity = rightSecret })
	s.restores(e)
	s.wentBack(c, before, s.manifest(last), kept)
	s.want(s.etcd(c), key, value)

	// A new cluster starts from the first one.
	fresh := s.fromSnapshot("new", 1, func(r *api.BootstrapRestore) { r.Snapshot, r.Identity = first.Status.Name, rightSecret })
	s.create(fresh)
	s.want(s.ready(fresh), key, value)
	s.restoredFrom(fresh, s.manifest(first))

	s.untold([]string{right.String(), stranger.String(), value})
}
