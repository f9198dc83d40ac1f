//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// told waits until an EtcdRestore says that it is not ready, for that reason and in these very
// words, and whether a person must act.
func (s *stage) told(e *api.EtcdRestore, stalled bool, reason, message string) {
	s.Helper()
	s.awaitObject(e, "told: "+reason+": "+message, func() bool {
		ready := meta.FindStatusCondition(e.Status.Conditions, api.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == reason && ready.Message == message &&
			meta.IsStatusConditionTrue(e.Status.Conditions, api.ConditionStalled) == stalled &&
			meta.IsStatusConditionTrue(e.Status.Conditions, api.ConditionReconciling) != stalled
	})
}

// carries waits until the status of the cluster has that EtcdRestore in that phase; nil: none.
func (s *stage) carries(c *api.EtcdCluster, e *api.EtcdRestore, phase api.RestorePhase) {
	s.Helper()
	s.await(c, "with an EtcdRestore that is "+string(phase), func() bool {
		r := c.Status.Restore
		return e == nil && r == nil || e != nil && r != nil && r.UID == string(e.UID) && r.Phase == phase
	})
}

// absent names a snapshot that is not in the store.
func absent(e *api.EtcdRestoreSpec) { e.Source.Snapshot = "absent" }

const (
	notFormedYet = "the EtcdCluster has not formed yet, so there is nothing to restore in place; to start from a snapshot, delete the EtcdCluster and its PersistentVolumeClaims, and apply it with spec.bootstrap.restore"
	isSuspended  = "spec.suspend of the EtcdCluster is true: set it to false"
	notVerified  = "EtcdBackup monday is not verified: its conditions say what it waits for"
	itServes     = "the cluster serves, and all that was written since the snapshot would be lost: if that is wanted, create another EtcdRestore, with another name and spec.whenServing: Replace"
	noCluster    = "there is no EtcdCluster db in this namespace: create it, or create another EtcdRestore with the right spec.clusterRef.name"
)

// TestInPlaceBad: EtcdRestores that cannot be carried out say why, and change nothing. One cluster
// meets them one after the other, and is deleted under the last of them.
func TestInPlaceBad(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	cluster := func() *api.EtcdCluster {
		c := s.cluster("db", 1)
		c.Spec.Storage.Retention = &api.Retention{WhenDeleted: api.RetentionRetain}
		return c
	}
	c := cluster()
	s.create(c)
	s.ready(c)
	kept := data{}
	s.write(c, kept)
	s.snapshot(c, "tuesday")
	s.write(c, kept)
	before, uids := identityOf(c), s.uids(c)
	unchanged := func(after string) {
		s.Helper()
		if diff := cmp.Diff(uids, s.uids(c)); diff != "" {
			t.Errorf("%s: Pods or claims changed: -want +got:\n%s", after, diff)
		}
		if aside := s.aside(c); len(aside) > 0 {
			t.Errorf("%s: volumes were set aside: %v", after, aside)
		}
		s.same(c, before)
		s.sound(c, memberNames(c), kept)
	}
	remove := func(e *api.EtcdRestore) {
		s.Helper()
		s.must(s.Delete(t.Context(), e))
		s.gone(e)
	}

	// Its members wait for a snapshot that never comes: nothing is there to be put back.
	young := s.fromSnapshot("young", 1, func(b *api.BootstrapRestore) { b.Snapshot = "absent" })
	s.create(young)
	early := s.etcdRestore("early", anyway, func(e *api.EtcdRestoreSpec) { e.ClusterRef.Name = "young" })
	s.create(early)
	s.told(early, true, api.ReasonRestoreFailed, notFormedYet)
	s.carries(young, early, api.RestoreBlocked)
	remove(early)
	s.carries(young, nil, "")
	if has := s.uids(young); len(has) > 0 || young.Status.FirstOrdinal != 0 {
		t.Errorf("a cluster that has not formed has %v, and its first ordinal is %d", has, young.Status.FirstOrdinal)
	}

	// A person works on it.
	s.change(c, func() { c.Spec.Suspend = true })
	e := s.etcdRestore("suspended", anyway)
	s.create(e)
	s.told(e, true, api.ReasonRestoreFailed, isSuspended)
	s.carries(c, e, api.RestoreBlocked)
	unchanged("suspended")
	remove(e)
	s.carries(c, nil, "")
	s.change(c, func() { c.Spec.Suspend = false })
	s.ready(c)

	// Nothing carries out EtcdBackups here: this one is never verified.
	backup := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: s.ns}}
	backup.Spec.ClusterRef.Name = "db"
	s.create(backup)
	e = s.etcdRestore("early-backup", anyway, func(e *api.EtcdRestoreSpec) {
		e.Source = api.RestoreSource{BackupRef: &api.BackupReference{Name: "monday"}}
	})
	s.create(e)
	s.told(e, false, api.ReasonRestoring, notVerified)

	// It holds up no other one, and of those the older one is first, whatever their names.
	first := s.etcdRestore("z-first", anyway, absent)
	s.create(first)
	s.saysStalled(first, api.ReasonRestoreFailed, "no snapshot to restore: ", "absent")
	s.carries(c, first, api.RestoreBlocked)
	second := s.etcdRestore("y-second")
	s.create(second)
	third := s.etcdRestore("x-third")
	for s.create(third); !second.CreationTimestamp.Before(&third.CreationTimestamp); s.create(third) { // it has whole seconds
		remove(third)
		third = s.etcdRestore("x-third")
	}
	for _, e := range []*api.EtcdRestore{second, third} {
		s.told(e, false, api.ReasonRestoring, "waiting for EtcdRestore z-first of the same cluster to end, or to be deleted")
	}
	unchanged("blocked")
	remove(first)
	for _, e := range []*api.EtcdRestore{second, third} {
		s.told(e, true, api.ReasonRestoreRefused, itServes)
	}
	s.await(c, "with two that were refused", func() bool { return len(c.Status.CarriedOut) == 2 })
	if diff := cmp.Diff([]string{"y-second", "x-third"}, c.Status.CarriedOut); diff != "" {
		t.Errorf("their order: -want +got:\n%s", diff)
	}
	s.told(e, false, api.ReasonRestoring, notVerified)
	unchanged("refused")
	remove(e)

	// The cluster goes while one is looked for, and comes back over its volumes.
	last := s.etcdRestore("last", anyway, absent)
	s.create(last)
	s.carries(c, last, api.RestoreBlocked)
	s.must(s.Delete(t.Context(), c))
	s.gone(c)
	s.told(last, true, api.ReasonClusterNotFound, noCluster)
	claims := func(uids map[string]string) map[string]string {
		return maps.Collect(func(yield func(string, string) bool) {
			for name, uid := range uids {
				if strings.HasPrefix(name, "claim.") && !yield(name, uid) {
					return
				}
			}
		})
	}
	if diff := cmp.Diff(claims(uids), claims(s.uids(c))); diff != "" {
		t.Errorf("deleted: claims changed: -want +got:\n%s", diff)
	}
	c = cluster()
	s.create(c)
	s.ready(c)
	s.carries(c, last, api.RestoreBlocked)
	uids = claims(uids)
	for name, uid := range s.uids(c) {
		if strings.HasPrefix(name, "Pod.") {
			uids[name] = uid
		}
	}
	unchanged("deleted")

	// One is applied while the cluster grows: it is refused, and the growth goes on.
	remove(last)
	s.carries(c, nil, "")
	s.resize(c, 3)
	s.await(c, "with a learner", func() bool { return learning(c) })
	e = s.etcdRestore("growing")
	s.create(e)
	s.told(e, true, api.ReasonRestoreRefused, itServes)
	if diff := cmp.Diff([]string{"db-0", "db-1", "db-2"}, s.sized(c, 3)); diff != "" {
		t.Errorf("members after it has grown: -want +got:\n%s", diff)
	}
	if now := identityOf(c); now.Cluster != before.Cluster || now.Members["db-0"] != before.Members["db-0"] {
		t.Errorf("the members are others: %v, then %v", before, now)
	}
	s.sound(c, memberNames(c), kept)
}

// TestInPlaceBadWhileChanging: a cluster is put back while it changes. What the change had begun is
// of the members of before; the new ones are what the spec asks for.
func TestInPlaceBadWhileChanging(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		change  func(*stage, *api.EtcdCluster)
		members int
		version string
	}{
		"Resize": {
			reason: "one more member has joined, and has no vote yet",
			change: func(s *stage, c *api.EtcdCluster) {
				s.resize(c, 5)
				s.await(c, "with a learner", func() bool { return learning(c) })
			},
			members: 5, version: etcd36,
		},
		"Version": {
			reason: "one member of three has changed",
			change: func(s *stage, c *api.EtcdCluster) {
				s.change(c, func() { c.Spec.Version = etcd37 })
				s.oneRuns(c, etcd37)
			},
			members: 3, version: etcd37,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.operate()
			c, m, kept, _ := s.toRestore()
			before := identityOf(c)
			tc.change(s, c)
			e := s.etcdRestore("back", anyway)
			s.create(e)
			s.restores(e)
			s.wentBack(c, before, m, kept)
			if n := len(c.Status.Members); n != tc.members {
				t.Errorf("%s: %d members, want %d", tc.reason, n, tc.members)
			}
			if slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.Version != tc.version }) {
				t.Errorf("%s: members do not run %s: %v", tc.reason, tc.version, c.Status.Members)
			}
			first := int(c.Status.FirstOrdinal)
			for _, name := range s.aside(c) {
				if n, _ := c.Ordinal(name); n >= first {
					t.Errorf("%s: %s is set aside, and the first member of today is db-%d", tc.reason, name, first)
				}
			}
		})
	}
}
