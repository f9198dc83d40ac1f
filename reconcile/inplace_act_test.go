package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// etcdRestore is the EtcdRestore that the restores of inPhase were copied from.
func etcdRestore(change ...func(*api.EtcdRestore)) *api.EtcdRestore {
	e := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "ns", UID: "restore", CreationTimestamp: metav1.Unix(1000, 0)}}
	e.Spec.ClusterRef.Name, e.Spec.WhenServing = "db", api.ServingReplace
	for _, change := range change {
		change(e)
	}
	return e
}

// inBucket is where the snapshots of these tests are.
func inBucket(r *api.ClusterRestore) {
	r.Source.Store = &api.BackupStore{S3: &api.S3Store{Bucket: "backups", Prefix: "prod"}}
}

// restoring is the world in which the members of before are to stop, and nothing new was made yet.
func (w world) restoring(phase api.RestorePhase) {
	w.cluster.Status = api.EtcdClusterStatus{FirstOrdinal: 3, NextOrdinal: 6, Restored: monday.DeepCopy(), Restore: inPhase(phase, begun, inBucket)}
}

// stopped has no Pods.
func (w world) stopped() { clear(w.pods) }

// marked has the volumes of before set aside.
func (w world) marked(names ...string) {
	for _, name := range names {
		w.claims[name].Annotations[api.AnnotationSetAside] = "restore"
	}
}

// restoredWithout is the world in which db-0 is of before a restore that is completed, and the two
// others are the members of today.
func (w *world) restoredWithout(policy api.RetentionPolicy) {
	w.cluster.Spec.Replicas = new(int32(2))
	w.cluster.Status.FirstOrdinal, w.cluster.Status.NextOrdinal, w.cluster.Status.CarriedOut = 1, 3, []string{"back"}
	w.cluster.Status.Restore = inPhase(api.RestoreCompleted, begun, func(r *api.ClusterRestore) { r.FormerVolumes = policy })
	w.cluster.Status.Members, w.asked.members = w.cluster.Status.Members[1:], w.asked.members[1:]
	delete(w.pods, "db-0")
	delete(w.asked.endpoints, "db-0")
	w.marked("db-0")
	for _, name := range []string{"db-1", "db-2"} {
		w.claims[name].Annotations[api.AnnotationBootstrap] = "restore/2/1"
	}
}

// found is the world in which a cluster that serves is to be restored, and the snapshot is found.
func (w world) found() { w.cluster.Status.Restore = inPhase(api.RestorePending, inBucket) }

// TestRestoreInPlace goes from a world to the writes of one step of a restore in place, each with
// the state that it is bound to.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()
	claims, pods := schema.GroupResource{Resource: "persistentvolumeclaims"}, schema.GroupResource{Resource: "pods"}
	conflict := apierrors.NewConflict(claims, "db-1", errors.New("changed"))
	gone := apierrors.NewNotFound(claims, "db-1")
	against := func(name string, err error) func(write) error {
		return func(w write) error {
			if w.Name == name && w.Verb != "try" {
				return err
			}
			return nil
		}
	}
	status := write{Verb: "apply", Kind: "status"}
	deletedPod := func(name string) write { return write{"delete", "Pod", name, "pod-of-" + name, ""} }
	patched := func(name string) write {
		return write{"patch", "PersistentVolumeClaim", name, "claim-of-" + name, ""}
	}
	aside := func(name, value string) string {
		return `{"metadata":{"uid":"claim-of-` + name + `","resourceVersion":"5","annotations":{"etcd.quorate.dev/set-aside":` + value + `}}}`
	}
	stopFormer := func(w *world) { w.restoring(api.RestoreRestoring) }
	setAside := func(w *world) { w.restoring(api.RestoreRestoring); w.stopped() }
	readmit := func(w *world) { w.restoring(api.RestoreReverting); w.stopped(); w.marked("db-0", "db-1") }
	revert := func(w *world) { w.restoring(api.RestoreReverting); w.stopped() }
	discard := func(w *world) { w.restoredWithout(api.RetentionDelete) }
	type result struct {
		Action  membership.Action
		Members []string
		Writes  []write
		Patches map[string]string
		Events  []string
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		since  func(*world)
		gone   bool // the EtcdRestore is, since
		held   bool // or it was suspended
		refuse func(write) error
		want   result
		err    error
	}{
		"ReplaceTakenBack": {
			reason: "the cache was behind: the EtcdRestore was deleted", given: func(w *world) { w.found() }, since: func(*world) {}, gone: true,
			want: result{Action: membership.Replace}, err: apply.ErrChanged,
		},
		"ReplaceHeld": {
			reason: "the cache was behind: the EtcdRestore was suspended", given: func(w *world) { w.found() }, since: func(*world) {}, held: true,
			want: result{Action: membership.Replace}, err: apply.ErrChanged,
		},
		"StopFormerTakenBack": {
			reason: "so it is when it is begun", given: stopFormer, since: func(*world) {}, gone: true,
			want: result{Action: membership.StopFormer, Members: []string{"db-0", "db-1", "db-2"}}, err: apply.ErrChanged,
		},
		"Replace": {
			reason: "it is written down, and nothing else is done yet", given: func(w *world) { w.found() },
			want: result{Action: membership.Replace, Writes: []write{status}, Events: []string{
				"Normal Restoring restoring snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) in place, as EtcdRestore back asks for: all members are stopped, and their volumes set aside",
			}},
		},
		"ReplaceConflict": {
			reason: "another operator was first", given: func(w *world) { w.found() },
			refuse: func(w write) error {
				if w == status {
					return conflict
				}
				return nil
			},
			want: result{Action: membership.Replace}, err: conflict,
		},
		"ReplaceChanged": {
			reason: "the EtcdCluster was changed since", given: func(w *world) { w.found() }, since: func(w *world) { w.cluster.ResourceVersion = "2" },
			want: result{Action: membership.Replace}, err: apply.ErrChanged,
		},
		"StopFormer": {
			reason: "these very Pods go", given: stopFormer,
			want: result{
				Action: membership.StopFormer, Members: []string{"db-0", "db-1", "db-2"}, Writes: []write{deletedPod("db-0"), deletedPod("db-1"), deletedPod("db-2")},
				Events: []string{"Normal Restoring Deleted Pod db-0: stopping the former members (db-0, db-1, db-2); their volumes are kept", "Normal Restoring Deleted Pod db-1: stopping the former members (db-0, db-1, db-2); their volumes are kept", "Normal Restoring Deleted Pod db-2: stopping the former members (db-0, db-1, db-2); their volumes are kept"},
			},
		},
		"StopFormerGone": {
			reason: "one has gone by itself", given: stopFormer, refuse: against("db-1", apierrors.NewNotFound(pods, "db-1")),
			want: result{
				Action: membership.StopFormer, Members: []string{"db-0", "db-1", "db-2"}, Writes: []write{deletedPod("db-0"), deletedPod("db-2")},
				Events: []string{"Normal Restoring Deleted Pod db-0: stopping the former members (db-0, db-1, db-2); their volumes are kept", "Normal Restoring Deleted Pod db-2: stopping the former members (db-0, db-1, db-2); their volumes are kept"},
			},
		},
		"StopFormerLater": {
			reason: "the cache was behind: it has stopped", given: stopFormer, since: func(w *world) { delete(w.pods, "db-1") },
			want: result{Action: membership.StopFormer, Members: []string{"db-0", "db-1", "db-2"}}, err: apply.ErrChanged,
		},
		"StopFormerReverted": {
			reason: "it was taken back since", given: stopFormer, since: func(w *world) { w.cluster.ResourceVersion = "2"; w.restoring(api.RestoreReverting) },
			want: result{Action: membership.StopFormer, Members: []string{"db-0", "db-1", "db-2"}}, err: apply.ErrChanged,
		},
		"SetAside": {
			reason: "each volume as it was seen, and nothing else of it", given: setAside,
			want: result{
				Action: membership.SetAside, Members: []string{"db-0", "db-1", "db-2"}, Writes: []write{patched("db-0"), patched("db-1"), patched("db-2")},
				Patches: map[string]string{
					"PersistentVolumeClaim db-0": aside("db-0", `"restore"`), "PersistentVolumeClaim db-1": aside("db-1", `"restore"`), "PersistentVolumeClaim db-2": aside("db-2", `"restore"`),
				},
				Events: []string{"Normal Restoring setting aside the volumes of the former members (db-0, db-1, db-2)"},
			},
		},
		"SetAsideConflict": {
			reason: "it was changed after all looks, and is looked at again", given: setAside, refuse: against("db-1", conflict),
			want: result{
				Action: membership.SetAside, Members: []string{"db-0", "db-1", "db-2"}, Writes: []write{patched("db-0"), patched("db-2")},
				Patches: map[string]string{"PersistentVolumeClaim db-0": aside("db-0", `"restore"`), "PersistentVolumeClaim db-2": aside("db-2", `"restore"`)},
			}, err: conflict,
		},
		"SetAsideGone": {
			reason: "a person has deleted it, which the next look shows", given: setAside, refuse: against("db-1", gone),
			want: result{
				Action: membership.SetAside, Members: []string{"db-0", "db-1", "db-2"}, Writes: []write{patched("db-0"), patched("db-2")},
				Patches: map[string]string{"PersistentVolumeClaim db-0": aside("db-0", `"restore"`), "PersistentVolumeClaim db-2": aside("db-2", `"restore"`)},
			}, err: gone,
		},
		"SetAsidePodBack": {
			reason: "one runs there again", given: setAside, since: func(w *world) { w.pods["db-0"] = w.pod("db-0") },
			want: result{Action: membership.SetAside, Members: []string{"db-0", "db-1", "db-2"}}, err: apply.ErrChanged,
		},
		"Readmit": {
			reason: "those that were set aside for this restore come back", given: readmit,
			want: result{
				Action: membership.Readmit, Members: []string{"db-0", "db-1"}, Writes: []write{patched("db-0"), patched("db-1")},
				Patches: map[string]string{"PersistentVolumeClaim db-0": aside("db-0", `null`), "PersistentVolumeClaim db-1": aside("db-1", `null`)},
				Events:  []string{"Normal Reverting taking back the volumes of the former members (db-0, db-1)"},
			},
		},
		"Revert": {
			reason: "then they are the members again", given: revert,
			want: result{Action: membership.Revert, Writes: []write{status}, Events: []string{"Normal Reverting going on with the former members"}},
		},
		"RevertOfAnother": {
			reason: "what an earlier restore has set aside stays so", given: func(w *world) { revert(w); w.claims["db-0"].Annotations[api.AnnotationSetAside] = "earlier" },
			want: result{Action: membership.Revert, Writes: []write{status}, Events: []string{"Normal Reverting going on with the former members"}},
		},
		"Discard": {
			reason: "this very volume goes, as it was seen", given: discard,
			want: result{
				Action: membership.DiscardFormer, Members: []string{"db-0"}, Writes: []write{{"delete", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}},
				Events: []string{"Normal Retiring deleting the volumes of the former members (db-0)"},
			},
		},
		"DiscardGone": {
			reason: "a person was faster", given: discard, refuse: against("db-0", gone),
			want: result{Action: membership.DiscardFormer, Members: []string{"db-0"}, Events: []string{"Normal Retiring deleting the volumes of the former members (db-0)"}},
		},
		"DiscardConflict": {
			reason: "it is not what it was", given: discard, refuse: against("db-0", conflict),
			want: result{Action: membership.DiscardFormer, Members: []string{"db-0"}}, err: conflict,
		},
		"DiscardMarkTaken": {
			reason: "a person wants to keep it", given: discard, since: func(w *world) { delete(w.claims["db-0"].Annotations, api.AnnotationSetAside) },
			want: result{Action: membership.DiscardFormer, Members: []string{"db-0"}}, err: apply.ErrChanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			none := func(request string) error { t.Errorf("etcd is asked to %s", request); return nil }
			objects := func() []client.Object {
				all := append(w.objects(), etcdRestore())
				if w.cluster.Status.Restore.Asked() {
					all = append(all, searching(t, w.cluster), searcher(0, manifestSaid))
				}
				return all
			}
			s := newStub(t, tc.refuse, objects()...)
			s.AgentImage, s.Dial = agentImage, w.dial(none)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			c := w.cluster.DeepCopy()
			if tc.since != nil {
				tc.since(&w)
				live := objects()
				if tc.gone {
					live = slices.DeleteFunc(live, func(o client.Object) bool { _, is := o.(*api.EtcdRestore); return is })
				}
				for _, o := range live {
					if e, is := o.(*api.EtcdRestore); is {
						e.Spec.Suspend = tc.held
					}
				}
				later := newStub(t, nil, live...)
				s.Reader, s.Dial = later.Client, w.dial(none)
			}
			if err := s.restoreInPlace(t.Context(), c, seen, step); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			got := result{Action: step.Action, Members: step.Members, Writes: s.inOrder(), Events: s.told()}
			slices.Sort(got.Events)
			if len(s.patches) > 0 {
				got.Patches = s.patches
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReplacing holds the whole status with which a restore in place begins, and that with which it
// is taken back.
func TestReplacing(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(), healthy()
	earlier := &api.RestoredSnapshot{Name: "db-sunday", SHA256: "59"}
	c.Status = api.EtcdClusterStatus{
		ObservedGeneration: 6, ClusterID: "c0", Restored: earlier, FirstOrdinal: 0, NextOrdinal: 5, CarriedOut: []string{"earlier"},
		Restore: inPhase(api.RestoreBlocked, inBucket, func(r *api.ClusterRestore) { r.Message = "no snapshot" }),
		Members: []api.MemberStatus{{Name: "db-0", ID: "a0", Role: api.RoleFollower, Health: api.HealthHealthy, Volume: "db-0"}},
		Leader:  "db-1", Version: "3.6.16", Replicas: 3, ReadyReplicas: 3, DBSize: new(resource.MustParse("1Mi")),
		Operation: &api.Operation{Step: string(membership.AddLearner), Since: new(metav1.Now()), Targets: []api.OperationTarget{{Member: "db-4"}}}, FailedChange: &api.FailedChange{Generation: 7, Message: "it did not work"},
	}
	seen.InPlace = inPlace(c, limits{})
	seen.found = monday.DeepCopy()
	seen.Search = membership.Search{Begun: true, Found: snapshotFacts(&monday)}
	step := membership.Plan(desired(c), seen.Observed)
	if step.Action != membership.Replace {
		t.Fatalf("the step is %s", step)
	}
	before := c.DeepCopy()
	ignored := cmp.Options{cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"), cmpopts.IgnoreFields(api.ClusterRestore{}, "StartedAt")}

	got := replacing(c, seen, step)
	conditions := got.Conditions
	want := api.EtcdClusterStatus{
		ObservedGeneration: 7, Selector: got.Selector, Conditions: conditions, Restored: monday.DeepCopy(), FirstOrdinal: 5, NextOrdinal: 8, CarriedOut: []string{"earlier"}, TLS: plainText(),
		Ready: "0/3", Endpoints: []string{"http://db-client.ns.svc:2379"},
		Restore: inPhase(api.RestoreRestoring, inBucket, func(r *api.ClusterRestore) {
			r.FormerClusterID, r.FormerRestored = "c0", earlier
			r.Plan = &api.RestorePlan{
				PlannedAt: got.Restore.Plan.PlannedAt, From: monday,
				Lost:     "all data of etcd cluster c0 that etcd cluster c9 did not have when the snapshot was taken (2026-11-23T07:50:00Z)",
				SetAside: []string{"db-0", "db-1", "db-2"}, FormerVolumes: api.RetentionRetain, NewMembers: []string{"db-5", "db-6", "db-7"}, ClosedService: "db-client",
			}
		}),
	}
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("replacing: -want +got:\n%s", diff)
	}
	if got.Restore.StartedAt == nil || time.Since(got.Restore.StartedAt.Time) > time.Minute {
		t.Errorf("it was begun at %v", got.Restore.StartedAt)
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("the status that was read has changed: -want +got:\n%s", diff)
	}

	// Then new members have started, and it is taken back.
	c.Status = got
	c.Status.Restore.Phase = api.RestoreReverting
	c.Status.Members = []api.MemberStatus{{Name: "db-5", Role: api.RoleUnknown, Health: api.HealthUnreachable}}
	c.Status.Operation = &api.Operation{Step: string(membership.Bootstrap)}
	before = c.DeepCopy()
	want = *c.Status.DeepCopy()
	want.ClusterID, want.Restored, want.FirstOrdinal, want.Restore, want.Members, want.Operation = "c0", earlier, 0, nil, nil, nil
	if diff := cmp.Diff(want, reverting(c)); diff != "" {
		t.Errorf("reverting: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("the status that was read has changed: -want +got:\n%s", diff)
	}
}

// TestStopSearch: the Job that looks for a snapshot goes when the restore is not asked for any
// more.
func TestStopSearch(t *testing.T) {
	t.Parallel()
	deletion := []write{{Verb: "delete", Kind: "Job", Name: "db-find", UID: "job"}}
	going := func(job client.Object) {
		job.SetDeletionTimestamp(new(metav1.Now()))
		job.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	}
	deleted := func(seen *observed) { seen.deleted = true }
	suspended := func(seen *observed) { seen.InPlace.Suspended = true }
	told := func(r *api.ClusterRestore) { r.Plan = &api.RestorePlan{From: monday} }
	cases := map[string]struct {
		reason  string
		restore *api.ClusterRestore
		seen    func(*observed)
		job     func(client.Object)
		none    bool
		want    []write
	}{
		"Pending":      {reason: "it looks", restore: inPhase(api.RestorePending, inBucket)},
		"Deleted":      {reason: "it looks for nothing", restore: inPhase(api.RestorePending, inBucket), seen: deleted, want: deletion},
		"Blocked":      {reason: "the search goes on, and may find something", restore: inPhase(api.RestoreBlocked, inBucket)},
		"Refused":      {reason: "nothing is to be found", restore: inPhase(api.RestorePending, inBucket, refusing), want: deletion},
		"Restoring":    {reason: "what it has found is kept for people", restore: inPhase(api.RestoreRestoring, inBucket), seen: deleted},
		"Suspended":    {reason: "it has yet to find what the plan is to tell", restore: inPhase(api.RestorePending, inBucket), seen: suspended},
		"Planned":      {reason: "it is looked for once more when that is to be carried out, also by the same words", restore: inPhase(api.RestorePending, inBucket, told), seen: suspended, want: deletion},
		"Resumed":      {reason: "it looks once more", restore: inPhase(api.RestorePending, inBucket, told)},
		"NotAsked":     {reason: "it is the search of a new cluster"},
		"NoJob":        {reason: "there is none", restore: inPhase(api.RestorePending, inBucket), seen: deleted, none: true},
		"AnotherOwner": {reason: "it is not ours", restore: inPhase(api.RestorePending, inBucket), seen: deleted, job: func(o client.Object) { ownedBy("earlier", o) }},
		"Going":        {reason: "it goes", restore: inPhase(api.RestorePending, inBucket), seen: deleted, job: going},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := restoringCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore = "c0", tc.restore
			seen.InPlace = inPlace(c, limits{})
			if tc.seen != nil {
				tc.seen(&seen)
			}
			var objects []client.Object
			if !tc.none {
				job := searching(t, c)
				if tc.job != nil {
					tc.job(job)
				}
				objects = append(objects, job)
			}
			s := newStub(t, nil, objects...)
			if err := s.stopJobs(t.Context(), c, seen, membership.Step{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.writes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStopSearchSuspended: a search that no EtcdRestore asks for any more goes with its pass, also
// where no member is touched.
func TestStopSearchSuspended(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(), healthy()
	c.Spec.Suspend = true
	c.Status.ClusterID, c.Status.Restore = "c0", inPhase(api.RestoreBlocked, inBucket)
	seen.deleted = true
	s := newStub(t, nil, searching(t, c))
	if err := s.act(t.Context(), c, seen, membership.Step{Action: membership.None, Reason: membership.Suspended}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]write{{Verb: "delete", Kind: "Job", Name: "db-find", UID: "job"}}, s.writes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTryInPlace: what the API server refuses is told before any member is stopped.
func TestTryInPlace(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-3", errors.New("exceeded quota: storage, requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi"))
	few := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few", Namespace: "ns"}}
	few.Status.Hard = corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("4")}
	few.Status.Used = corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("3")}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "db-3", nil)
	busy := apierrors.NewTooManyRequests("try again", 1)
	try := func(kind string, err error) func(write) error {
		return func(w write) error {
			if w.Verb == "try" && w.Kind == kind && w.Name == "db-3" {
				return err
			}
			return nil
		}
	}
	everything := func(w write) error {
		if w.Verb == "try" {
			return errors.New("nothing was to be tried")
		}
		return nil
	}
	cases := map[string]struct {
		reason  string
		cluster func(*api.EtcdCluster)
		seen    func(*observed)
		refuse  func(write) error
		quotas  []client.Object
		want    string
		passes  bool
		err     error

		forbidden bool // to list quotas
	}{
		"Taken":      {reason: "nothing is against it"},
		"FewVolumes": {reason: "one more volume is admitted, and three are needed", quotas: []client.Object{few}, want: "ResourceQuota few leaves 1 of persistentvolumeclaims, and the new members need 3 beside the volumes of the former ones: raise it"},
		"FewUnread":  {reason: "the installation is of an earlier release", quotas: []client.Object{few}, forbidden: true},
		"Held":       {reason: "what its plan has told is not tried at every look", cluster: func(c *api.EtcdCluster) { c.Status.Restore.Plan = &api.RestorePlan{} }, seen: func(seen *observed) { seen.InPlace.Suspended = true }, refuse: everything},
		"HeldFirst":  {reason: "it is before that is told", seen: func(seen *observed) { seen.InPlace.Suspended = true }, refuse: try("Pod", invalid), want: `the API server refuses what the new members need: try to create Pod db-3: Pod "db-3" is invalid`},
		"Quota":      {reason: "there is no room for another volume", refuse: try("PersistentVolumeClaim", quota), want: `the API server refuses what the new members need: try to create PersistentVolumeClaim db-3: persistentvolumeclaims "db-3" is forbidden: exceeded quota: storage, requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi`},
		"Invalid":    {reason: "a Pod cannot be made of the spec", refuse: try("Pod", invalid), want: `the API server refuses what the new members need: try to create Pod db-3: Pod "db-3" is invalid`},
		"Unknown":    {reason: "it has said nothing", refuse: try("Pod", busy), want: "the API server did not say whether it accepts what the new members need; it is asked again", passes: true, err: busy},
		"Flag":       {reason: "no member can be made of the spec", cluster: func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: map[string]string{"no-such-flag": "1"}} }, want: "spec.options.flags: etcd 3.6.16 has no flag no-such-flag; leave it out"},
		"NotFound":   {reason: "there is no snapshot yet", seen: func(seen *observed) { seen.Search.Found = membership.Snapshot{} }, refuse: everything},
		"Suspended":  {reason: "something else is in the way", cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true }, refuse: everything},
		"Restoring":  {reason: "it is begun", cluster: func(c *api.EtcdCluster) { c.Status.Restore.Phase = api.RestoreRestoring }, refuse: everything},
		"NotAsked":   {reason: "nothing is asked for", cluster: func(c *api.EtcdCluster) { c.Status.Restore = nil }, refuse: everything},
		"TakenBack":  {reason: "it was deleted", seen: func(seen *observed) { seen.deleted, seen.InPlace = true, membership.InPlace{} }, refuse: everything},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore = "c0", inPhase(api.RestorePending, inBucket)
			seen.found = monday.DeepCopy()
			seen.Search = membership.Search{Begun: true, Found: snapshotFacts(&monday)}
			if tc.cluster != nil {
				tc.cluster(c)
			}
			seen.InPlace = inPlace(c, limits{})
			if tc.seen != nil {
				tc.seen(&seen)
			}
			s := newStub(t, tc.refuse, tc.quotas...)
			s.AgentImage = agentImage
			if tc.forbidden {
				s.Reader = unlisted{s.Reader, apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", errors.New("no"))}
			}
			if err := attempted(t, &seen, s.tryInPlace(c, &seen)); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, seen.InPlace.Problem); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if len(s.writes) > 0 {
				t.Errorf("%s: something was written: %v", tc.reason, s.writes)
			}
			if _, passes := membership.InPlaceWaits(desired(c), seen.Observed); passes != tc.passes {
				t.Errorf("%s: it passes by itself: want %t, got %t", tc.reason, tc.passes, passes)
			}
		})
	}
}

// TestObserveRestores: which EtcdRestore is next, and whether the one that is carried out was
// deleted.
func TestObserveRestores(t *testing.T) {
	t.Parallel()
	older := etcdRestore(func(e *api.EtcdRestore) {
		e.Name, e.UID, e.CreationTimestamp = "zebra", "zebra", metav1.Unix(10, 0)
	})
	of := func(backup string) *api.EtcdRestore {
		return etcdRestore(func(e *api.EtcdRestore) { e.Spec.Source.BackupRef = &api.BackupReference{Name: backup} })
	}
	backup := func(change ...func(*api.EtcdBackup)) *api.EtcdBackup {
		b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: "ns"}}
		b.Status.Store, b.Status.Name, b.Status.SHA256 = &api.BackupStore{S3: &api.S3Store{Bucket: "backups"}}, "db-monday", "5a"
		for _, change := range change {
			change(b)
		}
		return b
	}
	verified := func(b *api.EtcdBackup) { b.Status.VerifiedAt = new(metav1.Unix(500, 0)) }
	copied := func(change ...func(*api.ClusterRestore)) *api.ClusterRestore {
		return inPhase(api.RestorePending, change...)
	}
	ofMonday := func(r *api.ClusterRestore) {
		r.Source = api.BootstrapRestore{Store: &api.BackupStore{S3: &api.S3Store{Bucket: "backups"}}, Snapshot: "db-monday"}
	}
	going := func(e *api.EtcdRestore) {
		e.DeletionTimestamp, e.Finalizers = new(metav1.Now()), []string{"example.com/hold"}
	}
	suspended := func(e *api.EtcdRestore) { e.Spec.Suspend = true }
	recreated := etcdRestore(func(e *api.EtcdRestore) { e.UID = "another" })
	refused := func(e *api.EtcdRestore) {
		e.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: api.ReasonRestoreRefused}}
	}
	keptLong := []membership.Instance{{Name: "db-0", Volume: membership.Volume{UID: "claim", Aside: "restore", Retired: true}}}
	undiscarded := []membership.Instance{{Name: "db-0", Volume: membership.Volume{UID: "claim", Aside: "restore"}}}
	type result struct {
		Next                          *api.ClusterRestore
		Deleted, InPlace, IsWithdrawn bool
		Suspended                     bool
		Waits                         bool // one that is not in the status of the EtcdCluster counts for a majority that is lost
	}
	cases := map[string]struct {
		reason  string
		current *api.ClusterRestore
		earlier []string
		former  []membership.Instance
		cached  []client.Object
		live    []client.Object // nil: as the cache has it
		want    result
	}{
		"None":           {reason: "there is none"},
		"Next":           {reason: "the source means the cluster itself", cached: []client.Object{etcdRestore()}, want: result{Next: copied()}},
		"Oldest":         {reason: "in the order in which they were made", cached: []client.Object{etcdRestore(), older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"ByName":         {reason: "of one second, by name", cached: []client.Object{etcdRestore(), etcdRestore(func(e *api.EtcdRestore) { e.Name, e.UID = "alpha", "alpha" })}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "alpha", "alpha" })}},
		"OtherCluster":   {reason: "it names another cluster", cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Spec.ClusterRef.Name = "other" })}},
		"OtherSpace":     {reason: "a namespace has its own", cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Namespace = "other" })}},
		"CarriedOut":     {reason: "its name was carried out before", earlier: []string{"back"}, cached: []client.Object{etcdRestore()}},
		"Completed":      {reason: "so was it itself", cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Status.CompletedAt = new(metav1.Now()) })}},
		"RefusedLongAgo": {reason: "its name is forgotten by now, and it is refused for good", cached: []client.Object{etcdRestore(refused)}},
		"Begun": {
			reason: "the EtcdCluster was deleted while it was carried out, or its status was lost: none is begun twice",
			cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Status.StartedAt = new(metav1.Now()) })},
		},
		"CarriedOutLongAgo": {
			reason: "the EtcdCluster that knew its name was deleted, and it says so itself",
			cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) {
				e.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: api.ReasonCarriedOut}}
			})},
		},
		"OnLossOfAnother": {
			reason: "what an earlier EtcdCluster of this name had lost says nothing about this one",
			cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Labels = map[string]string{api.LabelQuorumLoss: "another"} })},
		},
		"Planned": {
			reason: "the status of the EtcdCluster was lost, and the plan holds that a person has looked at",
			cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) {
				e.Spec.Source.Before, e.Status.Plan = new(metav1.Unix(500, 0)), &api.RestorePlan{From: monday}
			})},
			want: result{Next: copied(func(r *api.ClusterRestore) { r.Source.Snapshot, r.Plan = "db-monday", &api.RestorePlan{From: monday} })},
		},
		"PlannedSurvivor": {
			reason: "so it does where it names the data of a member",
			cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) {
				e.Spec.Source.Survivor, e.Status.Plan = &api.Survivor{}, &api.RestorePlan{From: api.RestoredSnapshot{Name: "member/db-1"}}
			})},
			want: result{Next: copied(func(r *api.ClusterRestore) {
				r.Source, r.Survivor, r.Plan = api.BootstrapRestore{}, &api.Survivor{}, &api.RestorePlan{From: api.RestoredSnapshot{Name: "member/db-1"}}
			})},
		},
		"Going":       {reason: "it is being deleted", cached: []client.Object{etcdRestore(going)}},
		"NotVerified": {reason: "its snapshot may be no good", cached: []client.Object{of("monday"), backup()}},
		"NoBackup":    {reason: "there is nothing to restore", cached: []client.Object{of("monday")}},
		"Passed":      {reason: "one that cannot be begun holds up no other", cached: []client.Object{etcdRestore(), func() client.Object { e := of("monday"); e.Name, e.UID = "alpha", "alpha"; return e }()}, want: result{Next: copied()}},
		"Verified":    {reason: "where the backup has put it", cached: []client.Object{of("monday"), backup(verified)}, want: result{Next: copied(ofMonday)}},
		"UnverifiedAllowed": {
			reason: "a person takes the risk",
			cached: []client.Object{func() client.Object { e := of("monday"); e.Spec.Source.Unverified = api.UnverifiedAllow; return e }(), backup()},
			want:   result{Next: copied(ofMonday, func(r *api.ClusterRestore) { r.Source.Unverified = api.UnverifiedAllow })},
		},
		"UnfinishedAllowed": {
			reason: "not that there is nothing", cached: []client.Object{func() client.Object { e := of("monday"); e.Spec.Source.Unverified = api.UnverifiedAllow; return e }(), backup(func(b *api.EtcdBackup) { b.Status.SHA256 = "" })},
		},
		"Current":         {reason: "it is there", current: inPhase(api.RestorePending), cached: []client.Object{etcdRestore(), older}, want: result{InPlace: true, Waits: true}},
		"CacheBehind":     {reason: "the cache does not have it yet", current: inPhase(api.RestorePending), cached: []client.Object{}, live: []client.Object{etcdRestore()}, want: result{InPlace: true}},
		"Suspended":       {reason: "it is not to begin", current: inPhase(api.RestorePending), cached: []client.Object{etcdRestore(suspended)}, want: result{InPlace: true, Suspended: true, Waits: true}},
		"SuspendedLive":   {reason: "nor by what the cache does not have", current: inPhase(api.RestoreBlocked), cached: []client.Object{}, live: []client.Object{etcdRestore(suspended)}, want: result{InPlace: true, Suspended: true}},
		"SuspendedLate":   {reason: "it has begun", current: inPhase(api.RestoreRestoring), cached: []client.Object{etcdRestore(suspended)}, want: result{InPlace: true, Waits: true}},
		"Deleted":         {reason: "it was taken back", current: inPhase(api.RestorePending), want: result{Deleted: true}},
		"DeletedBlocked":  {reason: "it was taken back", current: inPhase(api.RestoreBlocked), want: result{Deleted: true}},
		"DeletedGoing":    {reason: "a finalizer holds it", current: inPhase(api.RestorePending), cached: []client.Object{etcdRestore(going)}, want: result{Deleted: true}},
		"Recreated":       {reason: "another one has its name", current: inPhase(api.RestorePending), cached: []client.Object{recreated}, want: result{Deleted: true, Waits: true}},
		"Restoring":       {reason: "it is there", current: inPhase(api.RestoreRestoring), cached: []client.Object{etcdRestore()}, want: result{InPlace: true, Waits: true}},
		"Withdrawn":       {reason: "it is taken back, which is yet to be written down", current: inPhase(api.RestoreRestoring), want: result{Deleted: true, InPlace: true, IsWithdrawn: true}},
		"Reverting":       {reason: "that ends first", current: inPhase(api.RestoreReverting), cached: []client.Object{older}, want: result{InPlace: true, Waits: true}},
		"CompletedBefore": {reason: "the next one may begin", current: inPhase(api.RestoreCompleted), earlier: []string{"back"}, cached: []client.Object{older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"StillDiscarding": {reason: "the volumes of before are kept: the restored cluster may never be well enough for them to go", current: inPhase(api.RestoreCompleted, func(r *api.ClusterRestore) { r.FormerVolumes = api.RetentionDelete }), earlier: []string{"back"}, former: undiscarded, cached: []client.Object{older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"KeptBefore":      {reason: "that of a member that was removed before then stays, and holds up nothing", current: inPhase(api.RestoreCompleted, func(r *api.ClusterRestore) { r.FormerVolumes = api.RetentionDelete }), earlier: []string{"back"}, former: keptLong, cached: []client.Object{older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"RetainedBefore":  {reason: "those that stay hold up nothing", current: inPhase(api.RestoreCompleted), earlier: []string{"back"}, former: undiscarded, cached: []client.Object{older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"DiscardedBefore": {reason: "they are gone", current: inPhase(api.RestoreCompleted, func(r *api.ClusterRestore) { r.FormerVolumes = api.RetentionDelete }), earlier: []string{"back"}, cached: []client.Object{older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"RefusedBefore":   {reason: "the next one may begin", current: inPhase(api.RestoreRefused), earlier: []string{"back"}, cached: []client.Object{etcdRestore(refused), older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"RefusedUntold":   {reason: "first the one before says so itself: this cluster tells of one at a time", current: inPhase(api.RestoreRefused), earlier: []string{"back"}, cached: []client.Object{etcdRestore(), older}, want: result{Waits: true}},
		"CompletedUntold": {reason: "else it would be told that its name was used before", current: inPhase(api.RestoreCompleted), earlier: []string{"back"}, cached: []client.Object{etcdRestore(), older}, want: result{Waits: true}},
		"CompletedFormed": {
			reason: "it has said that it has formed; that its clients can come is not waited for", current: inPhase(api.RestoreCompleted), earlier: []string{"back"},
			cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Status.ClusterID = "c0" }), older},
			want:   result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })},
		},
		"CompletedTold":  {reason: "it has said so", current: inPhase(api.RestoreCompleted), earlier: []string{"back"}, cached: []client.Object{etcdRestore(func(e *api.EtcdRestore) { e.Status.CompletedAt = new(metav1.Now()) }), older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"CompletedAgain": {reason: "another one has its name, and is not waited for", current: inPhase(api.RestoreCompleted), earlier: []string{"back"}, cached: []client.Object{recreated, older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
		"CompletedGoing": {reason: "nothing more is told of it", current: inPhase(api.RestoreCompleted), earlier: []string{"back"}, cached: []client.Object{etcdRestore(going), older}, want: result{Next: copied(func(r *api.ClusterRestore) { r.Name, r.UID = "zebra", "zebra" })}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore, c.Status.CarriedOut = "c0", tc.current, tc.earlier
			seen.InPlace, seen.Former = inPlace(c, limits{}), tc.former
			s := newStub(t, nil, tc.cached...)
			if tc.live != nil {
				s.Reader = newStub(t, nil, tc.live...).Client
			}
			if err := s.observeRestores(t.Context(), c, &seen, s.Client); err != nil {
				t.Fatal(err)
			}
			got := result{seen.next, seen.deleted, seen.InPlace != membership.InPlace{}, seen.InPlace.Withdrawn, seen.InPlace.Suspended, seen.Loss.Another && seen.next == nil}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRestoreAfterRestore: a restored cluster is not well, so that the volumes that its EtcdRestore
// is to delete are still there. Another EtcdRestore begins all the same, and they stay.
func TestRestoreAfterRestore(t *testing.T) {
	t.Parallel()
	version := membership.Version{Major: 3, Minor: 6, Patch: 16}
	type result struct {
		Next    string
		Deletes bool
	}
	begins := result{Next: "again"}
	for name, tc := range map[string]struct {
		reason string
		args   func(*observed)
		want   result
	}{
		"MajorityLost": {
			reason: "the restored cluster has lost its majority",
			args: func(seen *observed) {
				seen.Reach, seen.Members = membership.ReachNone, nil
				for n := range seen.Instances {
					i := &seen.Instances[n]
					i.Pod, i.Endpoint = membership.Pod{}, membership.Endpoint{}
					if n > 0 {
						i.Volume = membership.Volume{}
					}
				}
			},
			want: begins,
		},
		"Full": {
			reason: "the snapshot was of a full database",
			args: func(seen *observed) {
				for n := range seen.Instances {
					i := &seen.Instances[n]
					i.Pod.Quota, i.Endpoint.DBSize, i.Endpoint.InUse = 512<<20, 510<<20, 510<<20
					i.Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmNoSpace, Member: 0xa0}}
				}
			},
			want: begins,
		},
		"WrongImage": {
			reason: "an image runs another version than its tag says",
			args: func(seen *observed) {
				seen.Instances[0].Pod.Version = membership.Version{Major: 3, Minor: 6, Patch: 15}
			},
			want: begins,
		},
		"Well": {reason: "all is well, and nothing is deleted beside an EtcdRestore that is asked for", args: func(*observed) {}, want: begins},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.CarriedOut = "c0", []string{"back"}
			c.Status.Restore = inPhase(api.RestoreCompleted, func(r *api.ClusterRestore) {
				r.FormerVolumes, r.CompletedAt = api.RetentionDelete, new(metav1.Unix(2000, 0))
			})
			seen.Former = []membership.Instance{{
				Name: "db-10", Ordinal: 10,
				Volume: membership.Volume{UID: "former", Aside: "restore", ClusterID: 0xee, MemberID: 1, Version: version},
			}}
			tc.args(&seen)
			told := etcdRestore(func(e *api.EtcdRestore) {
				e.Status.CompletedAt, e.Status.ClusterID = new(metav1.Unix(2000, 0)), "c0"
			})
			again := etcdRestore(func(e *api.EtcdRestore) { e.Name, e.UID = "again", "again" })
			s := newStub(t, nil, told, again)
			if err := s.observeRestores(t.Context(), c, &seen, s.Client); err != nil {
				t.Fatal(err)
			}
			got := result{Deletes: membership.Plan(desired(c), seen.Observed).Action == membership.DiscardFormer}
			if seen.next != nil {
				got.Next = seen.next.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestObserveClients: a restored cluster is reached when the Service for clients leads to one of
// its members.
func TestObserveClients(t *testing.T) {
	t.Parallel()
	service := func(selector map[string]string) client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-client"}}
		s.Spec.Selector = selector
		return s
	}
	open, shut := service(map[string]string{"a": "b"}), service(nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "", errors.New("no"))
	former := leadsTo("db-0")
	former.Endpoints[0].TargetRef.UID = "pod-of-a-former-member"
	unready := leadsTo("db-0")
	unready.Endpoints[0].Conditions.Ready = new(false)
	completed := inPhase(api.RestoreCompleted, func(r *api.ClusterRestore) { r.CompletedAt = new(metav1.Now()) })
	cases := map[string]struct {
		reason  string
		restore *api.ClusterRestore
		objects []client.Object
		unready bool // no Pod is ready
		refuse  error
		want    bool
	}{
		"Led":         {reason: "it leads to a member", restore: inPhase(api.RestoreCompleted), objects: []client.Object{open, leadsTo("db-1")}, want: true},
		"NotYet":      {reason: "the EndpointSlices have yet to follow", restore: inPhase(api.RestoreCompleted), objects: []client.Object{open, unready}},
		"Former":      {reason: "they are as they were before the restore: nothing follows a Service that selects nothing", restore: inPhase(api.RestoreCompleted), objects: []client.Object{open, former}},
		"NoSlices":    {reason: "nothing makes any: it is open, and a Pod is ready", restore: inPhase(api.RestoreCompleted), objects: []client.Object{open}, want: true},
		"Unreadable":  {reason: "the installation is of an earlier release", restore: inPhase(api.RestoreCompleted), objects: []client.Object{open, leadsTo("db-1")}, refuse: forbidden, want: true},
		"Shut":        {reason: "it has yet to be opened", restore: inPhase(api.RestoreCompleted), objects: []client.Object{shut}},
		"Unready":     {reason: "the kubelet has yet to find one ready", restore: inPhase(api.RestoreCompleted), objects: []client.Object{open}, unready: true},
		"NotRestored": {reason: "nothing is asked", objects: []client.Object{open, leadsTo("db-1")}},
		"Told":        {reason: "nor any more", restore: completed, objects: []client.Object{open, leadsTo("db-1")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore = "c0", tc.restore
			for name, pod := range seen.pods {
				pod.UID = types.UID("pod-of-" + name)
				if !tc.unready {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
			}
			s := newStub(t, nil, tc.objects...)
			if tc.refuse != nil {
				s.Reader = unlisted{s.Client, tc.refuse}
			}
			if err := s.observeClients(t.Context(), c, &seen); err != nil {
				t.Fatal(err)
			}
			if seen.reached != tc.want {
				t.Errorf("%s: reached: want %t, got %t", tc.reason, tc.want, seen.reached)
			}
		})
	}
}

// unlisted refuses every list.
type unlisted struct {
	client.Reader
	err error
}

func (r unlisted) List(context.Context, client.ObjectList, ...client.ListOption) error { return r.err }

// TestFenceClients: the Service for clients is changed only as it was seen, and opened only for the
// EtcdCluster as it was seen.
func TestFenceClients(t *testing.T) {
	t.Parallel()
	type bound struct{ UID, ResourceVersion string }
	service := func(open bool) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-client", UID: "service", ResourceVersion: "5"}}
		if open {
			s.Spec.Selector = map[string]string{"a": "b"}
		}
		return s
	}
	shut := service(true)
	shut.Spec.Selector[api.LabelClients] = api.ClientsShut
	changed := func(c *api.EtcdCluster) { c.ResourceVersion = "2" }
	cases := map[string]struct {
		reason  string
		seen    *corev1.Service
		admits  bool
		live    func(*api.EtcdCluster)
		deleted bool
		want    bound
		err     bool
	}{
		"Opened":        {reason: "for this EtcdCluster", seen: service(false), admits: true, want: bound{"service", "5"}},
		"OpenedChanged": {reason: "a restore in place may have been begun since", seen: service(false), admits: true, live: changed, want: bound{"service", "5"}, err: true},
		"OpenedAnother": {reason: "another EtcdCluster has its name", seen: service(false), admits: true, live: func(c *api.EtcdCluster) { c.UID = "another" }, want: bound{"service", "5"}, err: true},
		"OpenedGone":    {reason: "there is no EtcdCluster any more", seen: service(false), admits: true, deleted: true, want: bound{"service", "5"}, err: true},
		"Open":          {reason: "it was open, and what it is bound to is enough", seen: service(true), admits: true, live: changed, want: bound{"service", "5"}},
		"Shut":          {reason: "to shut it is right for every view", seen: service(true), live: changed, want: bound{"service", "5"}},
		"StaysShut":     {reason: "nothing is let in", seen: service(false), live: changed, want: bound{"service", "5"}},
		"Reopened":      {reason: "it was shut for a restore in place", seen: shut, admits: true, live: changed, want: bound{"service", "5"}, err: true},
		"NotThere":      {reason: "there is nothing to bind it to", seen: &corev1.Service{}},
		"Made":          {reason: "it was deleted, and is made for this EtcdCluster", seen: &corev1.Service{}, admits: true},
		"MadeChanged":   {reason: "it was deleted while the cluster is restored in place, and an old view would let clients in", seen: &corev1.Service{}, admits: true, live: changed, err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			objects := render.Static(c, render.State{Admits: tc.admits, Labelled: true, Voters: 3})
			live := c.DeepCopy()
			if tc.live != nil {
				tc.live(live)
			}
			s := newStub(t, nil, live)
			if tc.deleted {
				s = newStub(t, nil)
			}
			if err := s.fenceClients(t.Context(), c, tc.seen, objects); (err != nil) != tc.err {
				t.Errorf("%s: error is %v", tc.reason, err)
			}
			got, others := bound{}, 0
			for _, object := range objects {
				d, err := decode(object)
				if err != nil {
					t.Fatal(err)
				}
				if d.Kind == "Service" && d.Metadata.Name == c.ClientServiceName() {
					got = bound{d.Metadata.UID, d.Metadata.ResourceVersion}
				} else if d.Metadata.UID != "" || d.Metadata.ResourceVersion != "" {
					others++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || others > 0 {
				t.Errorf("%s: %d others are bound; -want +got:\n%s", tc.reason, others, diff)
			}
		})
	}
}

// TestSearchImpossible: a search that cannot be begun holds up nothing else: a member that is down
// is started, and the restore says what is in the way.
func TestSearchImpossible(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		given  func(*world)
		job    func(*testing.T, *api.EtcdCluster) client.Object
		change func(*stub)
		refuse func(write) error
		want   string
		passes bool
	}{
		"NoStore": {
			reason: "nothing says where it is", given: func(w *world) { w.cluster.Status.Restore.Source.Store = nil },
			want: "there is no store of snapshots: set spec.backup.store of the EtcdCluster, or the store of what it is restored from",
		},
		"NoImage": {reason: "there is nothing to look with", change: func(s *stub) { s.AgentImage = "" }, want: errNoAgentImage.Error()},
		"Foreign": {
			reason: "its name is taken",
			job: func(t *testing.T, c *api.EtcdCluster) client.Object {
				return owned(searching(t, c), "batch/v1", "CronJob", "nightly", "nightly")
			},
			want: "Job db-find exists and belongs to CronJob nightly; delete it if nothing needs it, or create this EtcdCluster under another name",
		},
		"Refused": {
			reason: "a policy does not let it be made",
			refuse: func(w write) error {
				if w.Kind == "Job" {
					return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, w.Name, errors.New("by policy"))
				}
				return nil
			},
			want: `the API server refuses the Job that looks for the snapshot: jobs.batch "db-find" is forbidden: by policy`,
		},
		"Unknown": {
			reason: "a webhook does not answer", passes: true,
			refuse: func(w write) error {
				if w.Kind == "Job" {
					return apierrors.NewInternalError(errors.New("failed calling webhook"))
				}
				return nil
			},
			want: "the API server did not say whether it accepts the Job that looks for the snapshot; it is asked again",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.found()
			delete(w.pods, "db-1")
			delete(w.asked.endpoints, "db-1")
			if tc.given != nil {
				tc.given(&w)
			}
			w.address()
			objects := append(w.objects(), etcdRestore())
			if tc.job != nil {
				objects = append(objects, tc.job(t, w.cluster))
			}
			s := newStub(t, tc.refuse, objects...)
			s.AgentImage, s.Dial, s.StallAfter = agentImage, w.dial(func(string) error { return nil }), time.Minute
			if tc.change != nil {
				tc.change(s)
			}
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Start {
				t.Errorf("%s: the member that is down is not started: the step is %s", tc.reason, step)
			}
			restore := status(w.cluster, seen, step).Restore
			phase := api.RestoreBlocked
			if tc.passes {
				phase = api.RestorePending
			}
			if restore.Phase != phase || restore.Message != tc.want {
				t.Errorf("%s: the restore is %s: %q, want %q", tc.reason, restore.Phase, restore.Message, tc.want)
			}
		})
	}
}

// TestTakenBackPending: the cluster that was to be restored says no word of that when the
// EtcdRestore is deleted before it was begun.
func TestTakenBackPending(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.found()
	w.address()
	s := newStub(t, nil, w.objects()...)
	s.AgentImage, s.Dial = agentImage, w.dial(func(string) error { return nil })
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	step := membership.Plan(desired(w.cluster), seen.Observed)
	want := membership.Step{Action: membership.None, Rule: "healthy", Reason: membership.Healthy, Message: "3 healthy members"}
	if diff := cmp.Diff(want, step); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
