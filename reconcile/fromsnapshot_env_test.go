//go:build env

package reconcile_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
	"quorate.dev/snapshot"
)

// source is a cluster of one that was written to, and a verified snapshot of it. Afterwards it was
// written to once more, and is gone.
func (s *stage) source(name string) (kept data, m snapshot.Manifest) {
	s.Helper()
	c := s.cluster("source", 1)
	s.create(c)
	etcd := s.ready(c)
	kept = data{}
	for range 5 {
		s.write(c, kept)
	}
	m = s.snapshot(c, name)
	s.put(etcd, "key-later", "value")
	if err := s.Delete(s.Context(), c); err != nil {
		s.Fatal(err)
	}
	s.gone(c)
	return kept, m
}

// TestFromSnapshot starts clusters from a snapshot, straight from their manifests.
func TestFromSnapshot(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		version string
		size    int32
		medium  api.Medium
	}{
		"One":    {reason: "a single member", version: etcd36, size: 1},
		"Three":  {reason: "three members of one artifact", version: etcd36, size: 3},
		"Newer":  {reason: "a newer minor than that of the snapshot", version: etcd37, size: 3},
		"Memory": {reason: "on no volumes of their own", version: etcd36, size: 3, medium: api.MediumMemory},
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.operate()
			kept, m := s.source("monday")
			c := s.fromSnapshot("db", tc.size)
			c.Spec.Version, c.Spec.Storage.Medium = tc.version, tc.medium
			contract.Watch(s, c)
			s.create(c)
			etcd := s.ready(c)
			s.restoredFrom(c, m)
			s.goesOn(etcd, m)
			if got, err := etcd.Get(t.Context(), "key-later"); err != nil || len(got.Kvs) > 0 {
				t.Errorf("what was written after the snapshot is there: %v, %v", got, err)
			}
			s.write(c, kept)
			s.sound(c, memberNames(c), kept)
			for _, pod := range s.pods(c) {
				if told, ok := pod.Annotations[api.AnnotationRestore]; ok {
					t.Errorf("Pod %s is still told to restore %s", pod.Name, told)
				}
			}
		})
	}
}

// TestFromSnapshotOnce: a member that was restored is never restored again. Its Pod starts on its
// node again, and finds what it has written since; and a disk that comes back empty then is another
// member's, and not one with the data of the snapshot.
func TestFromSnapshotOnce(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	kept, m := s.source("monday")
	c := s.fromSnapshot("db", 3)
	c.Spec.Recovery = &api.Recovery{ReplaceEmptyAfter: new(api.Duration("10s"))}
	s.create(c)
	s.ready(c)
	s.write(c, kept)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: s.ns}}
	s.must(s.hostlet.Reboot(s.ns, pod.Name))
	s.awaitPod(pod, "started again, init container and all", func() bool {
		return len(pod.Status.InitContainerStatuses) == 1 && pod.Status.InitContainerStatuses[0].Ready && pod.Status.ContainerStatuses[0].RestartCount > 0
	})
	s.ready(c)
	s.settled(c, kept)

	s.must(s.hostlet.Wipe(t.Context(), s.ns, "db-1"))
	_ = s.hostlet.Reboot(s.ns, "db-1") // it may not be started again yet
	s.await(c, "without the member whose disk came back empty", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && identityOf(c).Members["db-1"] == "" && len(c.Status.Members) == 3
	})
	s.settled(c, kept)

	uid := s.podUIDs(c)["db-2"]
	s.deletePod("db-2")
	last := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-2", Namespace: s.ns}}
	s.awaitPod(last, "recreated", func() bool { return string(last.UID) != uid })
	s.ready(c)
	for _, pod := range s.pods(c) {
		if pod.Name != "db-0" && len(pod.Spec.InitContainers) > 0 {
			t.Errorf("Pod %s, which was made after the cluster had formed, has an init container", pod.Name)
		}
	}
	s.restoredFrom(c, m)
	s.settled(c, kept)

	// Applied again after it was deleted, it comes back with its data, whatever is in the store by
	// now.
	was, restored := identityOf(c), *c.Status.Restored
	if err := s.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.gone(c)
	c = s.fromSnapshot("db", 3)
	s.create(c)
	s.ready(c)
	s.same(c, was)
	if got := c.Status.Restored; got == nil || got.Name != restored.Name || got.SHA256 != restored.SHA256 {
		t.Errorf("the volumes tell that they were restored from %+v, and the status that it was %+v", restored, got)
	}
	s.settled(c, kept)
}

// TestFromSnapshotWrong: nothing is made where there is no snapshot that can be used, the status
// says what to write, and what is corrected then is carried out.
func TestFromSnapshotWrong(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	s.version = etcd37
	kept, m := s.source("monday")
	other := s.cluster("other", 1)
	s.create(other)
	s.ready(other)
	s.unverified(other, "tuesday")

	const corrected = ". No member was made yet, and spec.bootstrap.restore can be corrected"
	c := s.fromSnapshot("db", 1, func(r *api.BootstrapRestore) { r.Snapshot = "sunday" })
	c.Spec.Version = etcd36
	s.create(c)
	for _, step := range []struct {
		reason string
		change func(*api.EtcdCluster)
		want   string
	}{
		{
			reason: "no snapshot of that name",
			change: func(*api.EtcdCluster) {},
			want:   "no snapshot to start from: snapshot sunday",
		},
		{
			reason: "it was never verified",
			change: func(c *api.EtcdCluster) { c.Spec.Bootstrap.Restore.Snapshot = "tuesday" },
			want:   "no snapshot to start from: snapshot tuesday",
		},
		{
			reason: "of a newer minor",
			change: func(c *api.EtcdCluster) { c.Spec.Bootstrap.Restore.Snapshot = m.Name },
			want:   "was taken from etcd " + etcd37 + ", and etcd " + etcd36 + " cannot read its data: set spec.version to 3.7 or newer, or choose an earlier snapshot" + corrected,
		},
		{
			reason: "a store that is not there",
			change: func(c *api.EtcdCluster) { c.Spec.Bootstrap.Restore.Store.Volume.ClaimName = "nowhere" },
			want:   `no snapshot to start from: the Pod`,
		},
	} {
		s.change(c, func() { step.change(c) })
		s.stalledWith(c, api.ReasonRestoreFailed, step.want)
		if claims, pods := s.claims(c), s.pods(c); len(claims)+len(pods) > 0 {
			t.Errorf("%s: something was made: %v, %v", step.reason, claims, pods)
		}
	}
	s.change(c, func() {
		c.Spec.Bootstrap.Restore.Store.Volume.ClaimName = backups
		c.Spec.Version, c.Spec.Storage.Size = etcd37, resource.MustParse("2Gi")
	})
	s.ready(c)
	s.restoredFrom(c, m)
	s.settled(c, kept)
}

// TestFromSnapshotDamaged: a snapshot that turns out to be damaged becomes no data of any member,
// and the status says so.
func TestFromSnapshotDamaged(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	_, m := s.source("monday")
	s.must(s.hostlet.Spoil(t.Context(), s.ns, backups, flip(m.Object)))
	c := s.fromSnapshot("db", 3)
	s.create(c)
	s.stalledWith(c, api.ReasonPodPending, "cannot be restored: snapshot monday is damaged")
	for _, pod := range s.pods(c) {
		for _, container := range pod.Status.ContainerStatuses {
			if container.State.Running != nil || container.RestartCount > 0 {
				t.Errorf("etcd was started in Pod %s", pod.Name)
			}
		}
	}
}

// flip a bit in the middle of a file.
func flip(name string) func(dir string) error {
	return func(dir string) error {
		file := filepath.Join(dir, name)
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		return os.WriteFile(file, content, 0o600)
	}
}
