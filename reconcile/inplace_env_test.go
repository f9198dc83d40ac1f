//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/share"
	"quorate.dev/snapshot"
)

// toRestore is a cluster of three that was written to, a verified snapshot of it, and what it has
// been written since: later. Where the stage is to have clients, they write before, meanwhile and
// since.
func (s *stage) toRestore() (c *api.EtcdCluster, m snapshot.Manifest, kept, later data) {
	s.Helper()
	c = s.cluster("db", 3)
	s.create(c)
	s.ready(c)
	kept = data{}
	for range 5 {
		s.write(c, kept)
	}
	if s.loaded {
		s.clients = s.load(c, light, func(config *history.Config) { config.Unwatched = !s.listens })
	}
	m = s.snapshot(c, "monday")
	later = data{"later": "value"}
	s.put(s.etcd(c), "later", "value")
	if s.loaded {
		s.clients.await(5)
	}
	return c, m, kept, later
}

// etcdRestore is an EtcdRestore of the cluster, of the newest snapshot in the store of the stage.
func (s *stage) etcdRestore(name string, change ...func(*api.EtcdRestoreSpec)) *api.EtcdRestore {
	e := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	e.Spec.ClusterRef.Name = "db"
	e.Spec.Source.Store = &api.BackupStore{Volume: &api.VolumeStore{ClaimName: backups}}
	for _, change := range change {
		change(&e.Spec)
	}
	return e
}

// anyway restores a cluster that serves.
func anyway(e *api.EtcdRestoreSpec) { e.WhenServing = api.ServingReplace }

// restores waits until the restore is completed.
func (s *stage) restores(e *api.EtcdRestore) {
	s.Helper()
	s.awaitObject(e, "completed", func() bool {
		return e.Status.CompletedAt != nil && meta.IsStatusConditionTrue(e.Status.Conditions, api.ConditionReady)
	})
}

// saysStalled waits until the restore is stalled with that reason and these words.
func (s *stage) saysStalled(e *api.EtcdRestore, reason string, words ...string) {
	s.Helper()
	s.awaitObject(e, "stalled with reason "+reason, func() bool {
		stalled := meta.FindStatusCondition(e.Status.Conditions, api.ConditionStalled)
		return stalled != nil && stalled.Reason == reason && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(stalled.Message, word) })
	})
}

// wentBack fails unless the cluster has the data of the snapshot, on new members with a new cluster
// ID, and nothing later, and goes on.
func (s *stage) wentBack(c *api.EtcdCluster, before identity, m snapshot.Manifest, kept data) {
	s.Helper()
	s.isBack(c, before, m)
	s.write(c, kept)
	s.sound(c, memberNames(c), kept)
}

// isBack is that part of it which can be seen while clients write.
func (s *stage) isBack(c *api.EtcdCluster, before identity, m snapshot.Manifest) {
	s.Helper()
	etcd := s.ready(c)
	s.restoredFrom(c, m)
	s.goesOn(etcd, m)
	if got, err := etcd.Get(s.Context(), "later"); err != nil || len(got.Kvs) > 0 {
		s.Errorf("what was written after the snapshot is there: %v, %v", got, err)
	}
	now := identityOf(c)
	if now.Cluster == before.Cluster || c.Status.Restore.FormerClusterID != before.Cluster {
		s.Errorf("the cluster was %s, is %s, and says that it was %s", before.Cluster, now.Cluster, c.Status.Restore.FormerClusterID)
	}
	for name := range now.Members {
		if before.Members[name] != "" {
			s.Errorf("member %s of before has its name back", name)
		}
	}
}

// onHold does nothing before its plan was looked at.
func onHold(e *api.EtcdRestoreSpec) { e.Suspend = true }

// shows waits for the plan of an EtcdRestore that is suspended.
func (s *stage) shows(e *api.EtcdRestore) api.RestorePlan {
	s.Helper()
	s.awaitObject(e, "suspended, with its plan", func() bool {
		ready := meta.FindStatusCondition(e.Status.Conditions, api.ConditionReady)
		return e.Status.Plan != nil && ready != nil && ready.Reason == api.ReasonSuspended && len(e.Status.Conditions) == 1
	})
	return *e.Status.Plan
}

// resume carries out the plan of an EtcdRestore that was suspended.
func (s *stage) resume(e *api.EtcdRestore) {
	s.Helper()
	s.change(e, func() { e.Spec.Suspend = false })
}

// asPlanned fails unless the restored cluster is what the plan of its restore has told: what it is
// made of, what was set aside, and the names of its members.
func (s *stage) asPlanned(c *api.EtcdCluster, e *api.EtcdRestore, aside []string) {
	s.Helper()
	p := e.Status.Plan
	if p == nil {
		s.Fatalf("EtcdRestore %s has no plan", e.Name)
	}
	want := *p
	want.SetAside, want.NewMembers, want.ClosedService = aside, memberNames(c), "db-client"
	if diff := cmp.Diff(want, *p); diff != "" {
		s.Errorf("the plan: -done +planned:\n%s", diff)
	}
	if p.From.Name != e.Status.Restored.Name || p.From.SHA256 != e.Status.Restored.SHA256 {
		s.Errorf("the plan was to restore %+v, and %+v was", p.From, e.Status.Restored)
	}
}

// aside are the names of the claims that are set aside.
func (s *stage) aside(c *api.EtcdCluster) []string {
	s.Helper()
	var names []string
	for _, claim := range s.claims(c) {
		if claim.Annotations[api.AnnotationSetAside] != "" {
			names = append(names, claim.Name)
		}
	}
	return names
}

// loseMajority deletes the volumes of two of three members for good, and leaves db-1.
func (s *stage) loseMajority(c *api.EtcdCluster) {
	s.Helper()
	for _, name := range []string{"db-0", "db-2"} {
		s.must(s.Delete(s.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}))
	}
	s.must(s.hostlet.Kill(s.ns, "db-0"))
	for _, name := range []string{"db-0", "db-2"} {
		s.deletePod(name)
	}
	s.stalledWith(c, api.ReasonDataLost)
}

// TestInPlace puts clusters back to a snapshot.
func TestInPlace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		given  func(*stage, *api.EtcdCluster)
		change func(*api.EtcdRestoreSpec)
		held   bool     // its plan is looked at first
		aside  []string // and stays so
		gone   []string // so it was before it was deleted
	}{
		"Serving": {
			reason: "it serves, and what was written since is not wanted any more",
			change: anyway,
			held:   true,
			aside:  []string{"db-0", "db-1", "db-2"},
		},
		"MajorityLost": {
			reason: "two of three volumes are gone",
			given: func(s *stage, c *api.EtcdCluster) {
				s.loseMajority(c)
			},
			change: func(*api.EtcdRestoreSpec) {},
			aside:  []string{"db-1"},
		},
		"Discarded": {
			reason: "the volumes of before are not to be kept",
			change: func(e *api.EtcdRestoreSpec) { anyway(e); e.FormerVolumes = api.RetentionDelete },
			gone:   []string{"db-0", "db-1", "db-2"},
		},
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.operate()
			c, m, kept, _ := s.toRestore()
			before := identityOf(c)
			if tc.given != nil {
				tc.given(s, c)
			} else {
				contract.Watch(s, c)
			}
			e := s.etcdRestore("back", tc.change)
			if tc.held {
				e.Spec.Suspend = true
				s.create(e)
				uids := s.uids(c)
				shown := s.shows(e)
				s.put(s.etcd(c), "later", "value")
				s.snapshot(c, "tuesday") // it is newer than what the plan has shown
				if diff := cmp.Diff(uids, s.uids(c)); diff != "" || shown.From.Name != m.Name {
					t.Errorf("%s: suspended, of snapshot %s: Pods or claims changed: -want +got:\n%s", tc.reason, shown.From.Name, diff)
				}
				s.resume(e)
			} else {
				s.create(e)
			}
			s.restores(e)
			s.wentBack(c, before, m, kept)
			s.asPlanned(c, e, slices.Concat(tc.aside, tc.gone))
			s.await(c, "what is set aside", func() bool { return slices.Equal(s.aside(c), tc.aside) })

			// Applied once more under its name, it does nothing.
			now := identityOf(c)
			s.must(s.Delete(t.Context(), e))
			s.gone(e)
			again := s.etcdRestore("back", tc.change)
			s.create(again)
			s.saysStalled(again, api.ReasonCarriedOut, "give it another name")
			s.same(c, now)
			s.sound(c, memberNames(c), kept)
		})
	}
}

// TestInPlaceRefused: a cluster that serves is not put back without a word, also not when it has
// stopped serving since.
func TestInPlaceRefused(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	c, _, kept, later := s.toRestore()
	before := identityOf(c)
	e := s.etcdRestore("back")
	s.create(e)
	s.saysStalled(e, api.ReasonRestoreRefused, "spec.whenServing: Replace")
	for _, pod := range s.pods(c) {
		s.must(s.hostlet.Pause(s.ns, pod.Name))
	}
	s.await(c, "without a quorum for long", func() bool {
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		return stalled != nil && is(c, api.ConditionAvailable, metav1.ConditionFalse)
	})
	for _, pod := range s.pods(c) {
		s.must(s.hostlet.Resume(s.ns, pod.Name))
	}
	s.want(s.ready(c), "later", later["later"])
	s.same(c, before)
	s.sound(c, memberNames(c), kept)
	s.saysStalled(e, api.ReasonRestoreRefused)
	if aside := s.aside(c); len(aside) > 0 {
		t.Errorf("volumes were set aside: %v", aside)
	}
}

// TestInPlaceReady: an EtcdRestore is Ready when the Service for clients leads to a member, and not
// before.
func TestInPlaceReady(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	c := s.cluster("db", 1)
	s.create(c)
	s.ready(c)
	kept := data{}
	s.write(c, kept)
	s.snapshot(c, "monday")
	s.awaitLed(c, "db-0")
	s.hostlet.LagEndpoints(-1)
	e := s.etcdRestore("back", anyway)
	s.create(e)
	s.carries(c, e, api.RestoreCompleted)
	s.awaitObject(e, "saying that the cluster has formed", func() bool { return e.Status.ClusterID != "" })
	s.ready(c)
	s.now(e)
	if ready := meta.FindStatusCondition(e.Status.Conditions, api.ConditionReady); ready.Status != metav1.ConditionFalse || e.Status.CompletedAt != nil || c.Status.Restore.CompletedAt != nil {
		t.Errorf("the Service leads to no member, and the EtcdRestore says %+v", ready)
	}
	s.hostlet.LagEndpoints(0)
	s.restores(e)
	s.awaitLed(c, "db-1")
	s.write(c, kept)
	s.sound(c, memberNames(c), kept)
}

// TestInPlaceAgain: an EtcdCluster is deleted and applied again over its volumes, and the
// EtcdRestores of before are still there. None is carried out twice: neither one that had only
// begun, nor one that was completed.
func TestInPlaceAgain(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	cluster := func() *api.EtcdCluster {
		c := s.cluster("db", 1)
		c.Spec.Storage.Retention = &api.Retention{WhenDeleted: api.RetentionRetain}
		return c
	}
	again := func(c *api.EtcdCluster) *api.EtcdCluster {
		s.must(s.Delete(t.Context(), c))
		s.gone(c)
		c = cluster()
		s.create(c)
		return c
	}
	c := cluster()
	s.create(c)
	s.ready(c)
	kept := data{}
	s.write(c, kept)
	m := s.snapshot(c, "monday")
	s.write(c, kept)
	before := identityOf(c)

	// It has set aside the volume when the cluster is deleted.
	s.must(s.hostlet.Spoil(t.Context(), s.ns, backups, flip(m.Object)))
	midway := s.etcdRestore("midway", anyway)
	s.create(midway)
	s.saysStalled(midway, api.ReasonPodPending, "cannot be restored")
	c = again(c)
	s.stalledWith(c, api.ReasonDataLost, "a restore in place was interrupted", "on the volumes of db-0")
	s.saysStalled(midway, api.ReasonCarriedOut, "none is begun twice")
	for _, claim := range s.claims(c) { // a person decides for the former member
		if claim.Name != "db-0" {
			s.must(s.Delete(t.Context(), &claim))
			continue
		}
		s.change(&claim, func() { delete(claim.Annotations, api.AnnotationSetAside) })
	}
	s.ready(c)
	s.same(c, before)
	s.sound(c, memberNames(c), kept)

	// It is completed, and was written to since.
	s.snapshot(c, "tuesday")
	done := s.etcdRestore("done", anyway, func(e *api.EtcdRestoreSpec) { e.Source.Snapshot = "tuesday" })
	s.create(done)
	s.restores(done)
	s.ready(c)
	s.write(c, kept)
	before = identityOf(c)
	c = again(c)
	s.ready(c)
	s.same(c, before)

	// They are asked first, in the order of their creation; what comes after them is told.
	last := s.etcdRestore("last")
	s.create(last)
	s.told(last, true, api.ReasonRestoreRefused, itServes)
	s.same(c, before)
	s.write(c, kept)
	s.sound(c, memberNames(c), kept)
	s.saysStalled(midway, api.ReasonCarriedOut, "none is begun twice")
	s.restores(done)
}

// TestInPlaceTakenBack: the snapshot turns out to be damaged when all members have been stopped.
// The EtcdRestore says so, and when it is deleted the members of before come back with all that
// they had. Then another one restores what is sound.
func TestInPlaceTakenBack(t *testing.T) {
	s := newStage(t, agents)
	s.operate()
	c, m, kept, later := s.toRestore()
	before := identityOf(c)
	sound := s.snapshot(c, "tuesday")
	s.must(s.hostlet.Spoil(t.Context(), s.ns, backups, flip(m.Object)))
	e := s.etcdRestore("damaged", anyway, func(e *api.EtcdRestoreSpec) { e.Source.Snapshot = m.Name })
	s.create(e)
	s.saysStalled(e, api.ReasonPodPending, "cannot be restored: snapshot monday is damaged", "delete EtcdRestore damaged: the former members come back with their data")
	s.must(s.Delete(t.Context(), e))
	s.await(c, "taken back", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Restore == nil })
	s.want(s.etcd(c), "later", later["later"])
	s.same(c, before)
	s.sound(c, memberNames(c), kept)
	if aside := s.aside(c); len(aside) > 0 {
		t.Errorf("volumes are still set aside: %v", aside)
	}
	if claims := s.claims(c); len(claims) != 3 {
		t.Errorf("there are %d claims, want those of the three members", len(claims))
	}

	s.put(s.etcd(c), "last", "value")
	again := s.etcdRestore("sound", anyway, func(e *api.EtcdRestoreSpec) { e.Source.Snapshot = sound.Name })
	s.create(again)
	s.restores(again)
	etcd := s.ready(c)
	s.restoredFrom(c, sound)
	s.want(etcd, "later", later["later"])
	if got, err := etcd.Get(t.Context(), "last"); err != nil || len(got.Kvs) > 0 {
		t.Errorf("what was written after the snapshot is there: %v, %v", got, err)
	}

	// A third one puts the restored cluster back once more.
	now := identityOf(c)
	third := s.etcdRestore("third", anyway, func(e *api.EtcdRestoreSpec) { e.Source.Snapshot = sound.Name; e.FormerVolumes = api.RetentionDelete })
	s.create(third)
	s.restores(third)
	s.ready(c)
	for name := range identityOf(c).Members {
		if now.Members[name] != "" || before.Members[name] != "" {
			t.Errorf("member %s has a name that one of before had", name)
		}
	}
	s.write(c, kept)
	s.sound(c, memberNames(c), kept)
	// The volumes that the second one has set aside are to be kept.
	s.await(c, "without the volumes that the third one has set aside", func() bool { return slices.Equal(s.aside(c), []string{"db-0", "db-1", "db-2"}) })
}
