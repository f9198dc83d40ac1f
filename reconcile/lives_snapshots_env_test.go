//go:build env

package reconcile_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// The lives of clusters of which snapshots are taken, and that are restored. The agents are
// processes here, which die as well.

func restore(s *stage, f *fault) (*api.EtcdCluster, data) {
	kept, m := s.source("monday")
	c := s.fromSnapshot("db", 3)
	contract.Watch(s, c)
	f.arm()
	s.create(c)
	s.ready(c)
	s.restoredFrom(c, m)
	s.goesOn(s.etcd(c), m)
	s.write(c, kept)
	return c, kept
}

// putInPlace restores a cluster in place, under clients: what they were told before the snapshot is
// there, what they were told after it is not. That it has the data of the snapshot, on other
// members, is judged here; that nothing of before is left but volumes that are set aside, where
// every life ends.
func putInPlace(s *stage, f *fault) (*api.EtcdCluster, data) {
	c, m, kept, _ := s.toRestore()
	contract.Watch(s, c)
	before, asked := identityOf(c), time.Now()
	e := s.etcdRestore("back", anyway)
	f.arm()
	s.create(e)
	s.restores(e)
	s.isBack(c, before, m)
	if revision := s.clients.restored(asked); revision != m.Revision {
		s.Errorf("revision %d was restored, and that of the snapshot is %d", revision, m.Revision)
	}
	s.write(c, kept)
	return c, kept
}

// survive restores a cluster from the data of a survivor, under clients: the volumes of two of
// three members are gone. Nothing is lost that the survivor was known to have.
func survive(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.cluster("db", 3)
	kept := s.born(c)
	has, asked := s.revisionAt("db-1"), time.Now()
	s.loseMajority(c)
	e := s.etcdRestore("back", survivorOf(""))
	f.arm()
	s.create(e)
	s.restores(e)
	s.ready(c)
	if revision := s.clients.restored(asked); revision < has || revision < e.Status.Restored.Revision {
		s.Errorf("revision %d was restored, and the survivor had %d, of which its EtcdRestore knew %d", revision, has, e.Status.Restored.Revision)
	}
	s.write(c, kept)
	return c, kept
}

// revisionAt is what a member has at least: it was read from that one, linearizably.
func (s *stage) revisionAt(member string) int64 {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	r, err := s.at(member).Get(ctx, "key0")
	s.must(err)
	return r.Header.Revision
}

// takeAndDelete takes and verifies a snapshot by an EtcdBackup, and deletes both. Another one in
// the same store stays.
func takeAndDelete(s *stage, f *fault) (*api.EtcdCluster, data) {
	c := s.guarded(1, s.version, backups)
	kept := s.born(c)
	s.snapshot(c, "sunday")
	b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: s.ns}}
	b.Spec.ClusterRef.Name, b.Spec.Verify, b.Spec.DeletionPolicy = c.Name, api.VerifyHash, api.RetentionDelete
	f.arm()
	s.create(b)
	s.awaitObject(b, "verified", func() bool {
		return b.Status.VerifiedAt != nil && meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionReady)
	})
	s.write(c, kept)
	s.gone(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: b.JobName(b.Status.Attempt), Namespace: s.ns}})
	var own []string
	for attempt := range b.Status.Attempt {
		own = append(own, b.SnapshotName(attempt+1))
	}
	names := s.storedNames()
	for _, name := range []string{"sunday", b.Status.Name} {
		if !slices.Contains(names, name) {
			s.Errorf("%s is not in the store, but %v", name, names)
		}
	}
	if others := slices.DeleteFunc(names, func(name string) bool { return name == "sunday" || slices.Contains(own, name) }); len(others) > 0 {
		s.Errorf("the store has %v of no attempt (%v)", others, own)
	}

	s.must(s.Delete(s.Context(), b))
	s.gone(b)
	if names := s.storedNames(); !slices.Equal(names, []string{"sunday"}) {
		s.Errorf("the store has %v when the EtcdBackup is gone, want sunday alone", names)
	}
	jobs := &batchv1.JobList{}
	s.must(s.List(s.Context(), jobs, client.InNamespace(s.ns), client.MatchingLabels{api.LabelBackup: b.Name}))
	for i := range jobs.Items {
		s.gone(&jobs.Items[i])
	}
	return c, kept
}

// storedNames are the names of the snapshots of which there is anything in the store. No agent may
// run: it would be killed.
func (s *stage) storedNames() (names []string) {
	s.Helper()
	s.must(s.hostlet.Spoil(s.Context(), s.ns, backups, func(dir string) error {
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			name, _, _ := strings.Cut(entry.Name(), ".")
			names = append(names, name)
		}
		return err
	}))
	return slices.Compact(names)
}
