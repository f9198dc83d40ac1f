package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// inPhase is a restore in place as the EtcdCluster has it, in that phase, of a cluster that may
// serve.
func inPhase(phase api.RestorePhase, change ...func(*api.ClusterRestore)) *api.ClusterRestore {
	r := &api.ClusterRestore{Name: "back", UID: "restore", Phase: phase, WhenServing: api.ServingReplace, Source: api.BootstrapRestore{Cluster: "ns/db"}}
	for _, change := range change {
		change(r)
	}
	return r
}

// refusing leaves a cluster that serves as it is.
func refusing(r *api.ClusterRestore) { r.WhenServing = api.ServingRefuse }

// begun has stopped the members of before.
func begun(r *api.ClusterRestore) {
	r.FormerClusterID, r.FormerFirstOrdinal, r.StartedAt = "c0", 0, new(metav1.Unix(1000, 0))
}

const (
	servesMessage   = "the cluster serves, and all that was written since the snapshot would be lost: if that is wanted, create another EtcdRestore, with another name and spec.whenServing: Replace"
	suspendedAnswer = "spec.suspend of the EtcdCluster is true: set it to false"
)

// TestSetRestore goes through the phases of a restore in place.
func TestSetRestore(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC))
	silent := func(seen *observed) {
		seen.Reach = membership.ReachSome
		for n := range seen.Instances {
			seen.Instances[n].Pod.Ready = false
		}
	}
	deleted := func(seen *observed) {
		seen.deleted, seen.InPlace = true, membership.InPlace{}
	}
	withdrawn := func(seen *observed) { seen.deleted, seen.InPlace.Withdrawn = true, true }
	next := func(seen *observed) {
		seen.next = inPhase(api.RestorePending, func(r *api.ClusterRestore) { r.Name, r.UID = "next", "next" })
	}
	theNext := inPhase(api.RestorePending, func(r *api.ClusterRestore) { r.Name, r.UID = "next", "next" })
	notFormed := func(seen *observed) { *seen = observed{} }
	completed := func(r *api.ClusterRestore) { r.CompletedAt = &now }
	says := func(message string) func(*api.ClusterRestore) {
		return func(r *api.ClusterRestore) { r.Message = message }
	}
	sixteen := make([]string, mostCarriedOut)
	for n := range sixteen {
		sixteen[n] = fmt.Sprintf("earlier-%d", n)
	}
	const bootstrap = "to start from a snapshot, delete the EtcdCluster and its PersistentVolumeClaims, and apply it with spec.bootstrap.restore"
	type result struct {
		Restore    *api.ClusterRestore
		CarriedOut []string
		ClusterID  string
	}
	cases := map[string]struct {
		reason  string
		restore *api.ClusterRestore
		earlier []string
		latch   string // status.clusterID by now
		cluster func(*api.EtcdCluster)
		seen    func(*observed)
		want    result
	}{
		"None":       {reason: "nothing is asked for", latch: "c0", want: result{ClusterID: "c0"}},
		"Adopted":    {reason: "the next one is copied, once", latch: "c0", seen: next, want: result{Restore: theNext, ClusterID: "c0"}},
		"LostStatus": {reason: "so it is where the status was lost", seen: func(seen *observed) { notFormed(seen); next(seen) }, want: result{Restore: theNext}},
		"AfterRefused": {
			reason: "one that was refused makes room", latch: "c0", restore: inPhase(api.RestoreRefused), earlier: []string{"back"}, seen: next,
			want: result{Restore: theNext, CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"AfterCompleted": {
			reason: "so does one that was carried out", latch: "c0", restore: inPhase(api.RestoreCompleted), earlier: []string{"back"}, seen: next,
			want: result{Restore: theNext, CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"Completed": {
			reason: "until then it stays as it is", latch: "c0", restore: inPhase(api.RestoreCompleted), earlier: []string{"back"},
			want: result{Restore: inPhase(api.RestoreCompleted), CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"Pending": {reason: "nothing is against it", latch: "c0", restore: inPhase(api.RestorePending), want: result{Restore: inPhase(api.RestorePending), ClusterID: "c0"}},
		"SecondWaits": {
			reason: "one is carried out at a time", latch: "c0", restore: inPhase(api.RestorePending), seen: next,
			want: result{Restore: inPhase(api.RestorePending), ClusterID: "c0"},
		},
		"SecondWaitsWhileRestoring": {
			reason: "one is carried out at a time", restore: inPhase(api.RestoreRestoring, begun), seen: func(seen *observed) { notFormed(seen); next(seen) },
			want: result{Restore: inPhase(api.RestoreRestoring, begun)},
		},
		"Refused": {
			reason: "it serves, and its name is used up", latch: "c0", restore: inPhase(api.RestorePending, refusing),
			want: result{Restore: inPhase(api.RestoreRefused, refusing, says(servesMessage)), CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"RefusedSuspended": {
			reason: "what else is in the way would be put right in vain", latch: "c0", restore: inPhase(api.RestorePending, refusing), cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true },
			want: result{Restore: inPhase(api.RestoreRefused, refusing, says(servesMessage)), CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"RefusedWhenUnblocked": {
			reason: "it came to serve while something was in the way", latch: "c0", restore: inPhase(api.RestoreBlocked, refusing, says("no snapshot")),
			want: result{Restore: inPhase(api.RestoreRefused, refusing, says(servesMessage)), CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"RefusedForGood": {
			reason: "it stays refused when the cluster is lost later", latch: "c0", restore: inPhase(api.RestoreRefused, refusing, says(servesMessage)), earlier: []string{"back"}, seen: silent,
			want: result{Restore: inPhase(api.RestoreRefused, refusing, says(servesMessage)), CarriedOut: []string{"back"}, ClusterID: "c0"},
		},
		"Down": {
			reason: "a cluster that does not serve is restored", latch: "c0", restore: inPhase(api.RestorePending, refusing), seen: silent,
			want: result{Restore: inPhase(api.RestorePending, refusing), ClusterID: "c0"},
		},
		"DownLately": {
			reason: "but not at once", latch: "c0", restore: inPhase(api.RestorePending, refusing), seen: func(seen *observed) { silent(seen); seen.InPlace.Lately = true },
			want: result{Restore: inPhase(api.RestorePending, refusing, says("the cluster may still serve: one of its Pods is ready, or a quorum answered a moment ago. The restore begins when neither holds any more")), ClusterID: "c0"},
		},
		"Blocked": {
			reason: "a person has suspended it", latch: "c0", restore: inPhase(api.RestorePending), cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true },
			want: result{Restore: inPhase(api.RestoreBlocked, says(suspendedAnswer)), ClusterID: "c0"},
		},
		"Unblocked": {
			reason: "and goes on with it", latch: "c0", restore: inPhase(api.RestoreBlocked, says(suspendedAnswer)),
			want: result{Restore: inPhase(api.RestorePending), ClusterID: "c0"},
		},
		"NoSnapshot": {
			reason: "the search has found nothing", latch: "c0", restore: inPhase(api.RestorePending), seen: func(seen *observed) {
				seen.Search = membership.Search{Begun: true, Problem: "the bucket does not exist"}
			},
			want: result{Restore: inPhase(api.RestoreBlocked, says("no snapshot to restore: the bucket does not exist")), ClusterID: "c0"},
		},
		"Encrypted": {
			reason: "nothing can read it, and a spec is not changed", latch: "c0", restore: inPhase(api.RestorePending),
			seen: func(seen *observed) {
				seen.Search = membership.Search{Begun: true, Found: membership.Snapshot{Name: "monday", SHA256: "5a", Encrypted: true}}
			},
			want: result{Restore: inPhase(api.RestoreBlocked, says("snapshot monday is encrypted: set spec.backup.identity of the EtcdCluster to the Secret that has the age identity which can read it, or delete EtcdRestore back, and apply it again with spec.source.identity")), ClusterID: "c0"},
		},
		"Newer": {
			reason: "it is of a later minor", latch: "c0", restore: inPhase(api.RestorePending),
			seen: func(seen *observed) {
				seen.Search = membership.Search{Begun: true, Found: membership.Snapshot{Name: "monday", SHA256: "5a", Version: membership.Version{Major: 3, Minor: 7, Patch: 3}}}
			},
			want: result{Restore: inPhase(api.RestoreBlocked, says("snapshot monday was taken from etcd 3.7.3, and etcd 3.6.16 cannot read its data: set spec.version to 3.7 or newer, or choose an earlier snapshot")), ClusterID: "c0"},
		},
		"Wordy": {
			reason: "the schema takes 2048 characters, and refuses the whole status otherwise", latch: "c0", restore: inPhase(api.RestorePending),
			seen: func(seen *observed) { seen.InPlace.Problem = strings.Repeat("x", 3000) + "\nand more" },
			want: result{Restore: inPhase(api.RestoreBlocked, says(strings.Repeat("x", 1021)+"...")), ClusterID: "c0"},
		},
		"Hibernated": {
			reason: "nothing would run", latch: "c0", restore: inPhase(api.RestorePending), cluster: func(c *api.EtcdCluster) { c.Spec.Replicas = new(int32(0)) }, seen: silent,
			want: result{Restore: inPhase(api.RestoreBlocked, says("spec.replicas of the EtcdCluster is 0: set it to the number of members that the restored cluster is to have")), ClusterID: "c0"},
		},
		"Memory": {
			reason: "the data would be gone with the Pods", latch: "c0", restore: inPhase(api.RestorePending), cluster: func(c *api.EtcdCluster) { c.Spec.Storage.Medium = api.MediumMemory },
			want: result{Restore: inPhase(api.RestoreBlocked, says("spec.storage.medium of the EtcdCluster is Memory: its members would lose their data as they stop, before it is known whether the restore succeeds; "+bootstrap)), ClusterID: "c0"},
		},
		"NotFormed": {
			reason: "there is nothing to put back", restore: inPhase(api.RestorePending), seen: func(seen *observed) { place := seen.InPlace; notFormed(seen); seen.InPlace = place },
			want: result{Restore: inPhase(api.RestoreBlocked, says("the EtcdCluster has not formed yet, so there is nothing to restore in place; "+bootstrap))},
		},
		"TakenBackPending": {
			reason: "nothing was done, and its name may be used again", latch: "c0", restore: inPhase(api.RestorePending), seen: deleted, want: result{ClusterID: "c0"},
		},
		"TakenBackBlocked": {
			reason: "so it is while something is in the way", latch: "c0", restore: inPhase(api.RestoreBlocked, says("no snapshot")), seen: deleted, want: result{ClusterID: "c0"},
		},
		"Restoring": {
			reason: "until the new members have formed a cluster", restore: inPhase(api.RestoreRestoring, begun), seen: notFormed, want: result{Restore: inPhase(api.RestoreRestoring, begun)},
		},
		"TakenBackRestoring": {
			reason: "the members of before come back", restore: inPhase(api.RestoreRestoring, begun), seen: func(seen *observed) { notFormed(seen); withdrawn(seen) },
			want: result{Restore: inPhase(api.RestoreReverting, begun)},
		},
		"Reverting": {
			reason: "whatever the new members have formed is no cluster of ours", latch: "c1", restore: inPhase(api.RestoreReverting, begun), want: result{Restore: inPhase(api.RestoreReverting, begun)},
		},
		"Formed": {
			reason: "that ends it, and clients have yet to come", latch: "c1", restore: inPhase(api.RestoreRestoring, begun),
			want: result{Restore: inPhase(api.RestoreCompleted, begun), CarriedOut: []string{"back"}, ClusterID: "c1"},
		},
		"Reached": {
			reason: "then they can", latch: "c1", restore: inPhase(api.RestoreCompleted, begun), earlier: []string{"back"}, seen: func(seen *observed) { seen.reached = true },
			want: result{Restore: inPhase(api.RestoreCompleted, begun, completed), CarriedOut: []string{"back"}, ClusterID: "c1"},
		},
		"NextBeforeReached": {
			reason: "they never could, and a person asks for another restore", latch: "c1", restore: inPhase(api.RestoreCompleted, begun), earlier: []string{"back"}, seen: next,
			want: result{Restore: theNext, CarriedOut: []string{"back"}, ClusterID: "c1"},
		},
		"FormedAndDeleted": {
			reason: "it is too late to take it back", latch: "c1", restore: inPhase(api.RestoreRestoring, begun), seen: withdrawn,
			want: result{Restore: inPhase(api.RestoreCompleted, begun), CarriedOut: []string{"back"}, ClusterID: "c1"},
		},
		"Seventeenth": {
			reason: "the schema holds sixteen names, and the oldest goes", latch: "c0", restore: inPhase(api.RestorePending, refusing), earlier: sixteen,
			want: result{
				Restore:    inPhase(api.RestoreRefused, refusing, says(servesMessage)),
				CarriedOut: append(slices.Clone(sixteen[1:]), "back"), ClusterID: "c0",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore, c.Status.CarriedOut = "c0", tc.restore.DeepCopy(), slices.Clone(tc.earlier)
			if tc.cluster != nil {
				tc.cluster(c)
			}
			seen.InPlace = inPlace(c, limits{now: now.Time, stallBefore: now.Add(time.Minute)}) // nothing was lately
			if tc.seen != nil {
				tc.seen(&seen)
			}
			s := *c.Status.DeepCopy()
			s.ClusterID = tc.latch
			setRestore(&s, c, seen, now)
			if diff := cmp.Diff(tc.want, result{s.Restore, s.CarriedOut, s.ClusterID}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.restore, c.Status.Restore); diff != "" {
				t.Errorf("%s: the status that was read has changed: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTakeFormer: what is of before a restore in place is no member.
func TestTakeFormer(t *testing.T) {
	t.Parallel()
	mark := func(names ...string) func(*observed) {
		return func(seen *observed) {
			for _, name := range names {
				seen.claims[name].Annotations[api.AnnotationSetAside] = "restore"
			}
		}
	}
	three := []string{"db-0", "db-1", "db-2"}
	type result struct{ Pods, Claims, FormerPods, FormerClaims []string }
	cases := map[string]struct {
		reason string
		status api.EtcdClusterStatus
		names  []string // that have both a Pod and a claim; empty: three
		seen   func(*observed)
		want   result
	}{
		"None": {reason: "nothing was ever restored", status: api.EtcdClusterStatus{ClusterID: "c0"}, want: result{Pods: three, Claims: three}},
		"ByOrdinal": {
			reason: "a lower ordinal is of before, whether the volume is marked yet or not", status: api.EtcdClusterStatus{ClusterID: "c0", FirstOrdinal: 2}, seen: mark("db-0"),
			want: result{Pods: []string{"db-2"}, Claims: []string{"db-2"}, FormerPods: []string{"db-0", "db-1"}, FormerClaims: []string{"db-0", "db-1"}},
		},
		"WhileRestoring": {
			reason: "the latch is open then", status: api.EtcdClusterStatus{FirstOrdinal: 2, Restore: inPhase(api.RestoreRestoring)}, seen: mark("db-0"),
			want: result{Pods: []string{"db-2"}, Claims: []string{"db-2"}, FormerPods: []string{"db-0", "db-1"}, FormerClaims: []string{"db-0", "db-1"}},
		},
		"Live": {
			reason: "no mark makes a member of today one of before", status: api.EtcdClusterStatus{ClusterID: "c0"}, seen: mark("db-0", "db-1"), want: result{Pods: three, Claims: three},
		},
		"LiveWhileRestoring": {
			reason: "nor a new one", status: api.EtcdClusterStatus{FirstOrdinal: 1, Restore: inPhase(api.RestoreRestoring)}, seen: mark("db-1", "db-2"),
			want: result{Pods: []string{"db-1", "db-2"}, Claims: []string{"db-1", "db-2"}, FormerPods: []string{"db-0"}, FormerClaims: []string{"db-0"}},
		},
		"LostStatus": {
			reason: "then only the marks tell", seen: mark("db-0", "db-1"),
			want: result{Pods: []string{"db-2"}, Claims: []string{"db-2"}, FormerPods: []string{"db-0", "db-1"}, FormerClaims: []string{"db-0", "db-1"}},
		},
		"LostStatusNoMark": {reason: "and without one it is a member", want: result{Pods: three, Claims: three}},
		"OtherNames": {
			reason: "what is no member's is left alone", status: api.EtcdClusterStatus{ClusterID: "c0", FirstOrdinal: 9}, names: []string{"db-x", "db-01", "other-0"},
			want: result{Pods: []string{"db-01", "db-x", "other-0"}, Claims: []string{"db-01", "db-x", "other-0"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status = tc.status
			seen := observed{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
			names := tc.names
			if names == nil {
				names = three
			}
			for _, name := range names {
				seen.pods[name], seen.claims[name] = newPod(name), newClaim(name)
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			of := takeFormer(c, &seen)
			got := result{slices.Sorted(maps.Keys(seen.pods)), slices.Sorted(maps.Keys(seen.claims)), slices.Sorted(maps.Keys(of.pods)), slices.Sorted(maps.Keys(of.claims))}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFormerFacts: of a former member, what is to be stopped and set aside is known by its ordinal.
func TestFormerFacts(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.Status.FirstOrdinal = 12
	of := objectsOfFormer{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	for _, name := range []string{"db-10", "db-2"} {
		of.claims[name] = newClaim(name)
	}
	of.claims["db-2"].Annotations[api.AnnotationSetAside] = "restore"
	of.pods["db-2"], of.pods["db-3"] = newPod("db-2"), newPod("db-3")
	var got []string
	for _, i := range of.facts(c, limits{now: time.Now()}) {
		got = append(got, fmt.Sprintf("%s %d %s %s %q", i.Name, i.Ordinal, i.Pod.UID, i.Volume.UID, i.Volume.Aside))
	}
	want := []string{`db-2 2 pod-of-db-2 claim-of-db-2 "restore"`, `db-3 3 pod-of-db-3  ""`, `db-10 10  claim-of-db-10 ""`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFirstStart reads what is written about a first start on a claim. A person or a tool may have
// written it.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
		want   membership.First
	}{
		"None":         {reason: "a member that came later has none"},
		"Plain":        {reason: "as every cluster begins", args: "cluster/3", want: membership.First{Token: "cluster", Size: 3}},
		"Base":         {reason: "as it begins again in place", args: "restore/5/12", want: membership.First{Token: "restore", Size: 5, Base: 12}},
		"BaseZero":     {reason: "it is not written out", args: "cluster/3/0"},
		"BaseNegative": {reason: "there is no such ordinal", args: "cluster/3/-1"},
		"BaseWord":     {reason: "no number", args: "cluster/3/x"},
		"BaseEmpty":    {reason: "no number", args: "cluster/3/"},
		"SizeZero":     {reason: "no member", args: "cluster/0"},
		"SizeLarge":    {reason: "more than the schema has", args: "cluster/10"},
		"SizeLargest":  {reason: "as many as it has", args: "cluster/9/1", want: membership.First{Token: "cluster", Size: 9, Base: 1}},
		"SizeWord":     {reason: "no number", args: "cluster/three/3"},
		"TokenAlone":   {reason: "no size", args: "cluster"},
		"BaseFar":      {reason: "no ordinal that a member can have", args: "cluster/3/999992"},
		"BaseFarthest": {reason: "the last that it can", args: "cluster/3/999991", want: membership.First{Token: "cluster", Size: 3, Base: 999991}},
		"Longer":       {reason: "more than Quorate writes", args: "cluster/3/3/3"},
		"Overflow":     {reason: "no number of this machine", args: "cluster/3/99999999999999999999"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, firstStart(tc.args)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExpect: the members of a first start are known by name before there is anything of them.
func TestExpect(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		first  map[string]membership.First
		base   int32
		phase  api.RestorePhase // of a restore from the data of a member; empty: there is none
		formed bool
		want   []string
	}{
		"New":       {reason: "as the spec asks for", want: []string{"db-0", "db-1", "db-2"}},
		"InPlace":   {reason: "from the first ordinal of today", base: 3, want: []string{"db-3", "db-4", "db-5"}},
		"Survivor":  {reason: "there is one copy, and the next names are for those that join", base: 3, phase: api.RestoreRestoring, want: []string{"db-3"}},
		"Reverting": {reason: "no more were begun", base: 3, phase: api.RestoreReverting, want: []string{"db-3"}},
		"Asked":     {reason: "a first start that goes on is not that of an EtcdRestore that waits", phase: api.RestorePending, want: []string{"db-0", "db-1", "db-2"}},
		"Formed":    {reason: "the spec's size is for later then", formed: true, base: 3},
		"Begun":     {reason: "with another size than the spec has by now", base: 3, first: map[string]membership.First{"db-4": {Token: "t", Size: 5, Base: 3}}, want: []string{"db-3", "db-4", "db-5", "db-6", "db-7"}},
		"FormedFew": {reason: "one of the first start is missing", formed: true, base: 3, first: map[string]membership.First{"db-5": {Token: "t", Size: 3, Base: 3}}, want: []string{"db-3", "db-4", "db-5"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := roster{cluster: newCluster(), instances: map[string]*membership.Instance{}}
			r.cluster.Status.FirstOrdinal = tc.base
			if tc.phase != "" {
				r.cluster.Status.Restore = inPhase(tc.phase, fromMember)
			}
			for name, first := range tc.first {
				r.at(name, func(i *membership.Instance) { i.Volume.First = first })
			}
			r.expect(tc.formed)
			var got []string
			for _, i := range r.sorted() {
				got = append(got, i.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSoonRestored holds when a pass is followed by another one for the sake of a restore in place.
func TestSoonRestored(t *testing.T) {
	t.Parallel()
	pending := func(seen *observed) { seen.InPlace.Name = "back" }
	cases := map[string]struct {
		reason  string
		restore *api.ClusterRestore
		seen    func(*observed)
		want    time.Duration
	}{
		"Formed":    {reason: "no watch tells of the EndpointSlices", restore: inPhase(api.RestoreCompleted), seen: func(*observed) {}, want: whileSearching},
		"Completed": {reason: "clients come", restore: inPhase(api.RestoreCompleted, func(r *api.ClusterRestore) { r.CompletedAt = new(metav1.Now()) }), seen: func(*observed) {}, want: atRest},

		"Rest":      {reason: "nothing is asked for", seen: func(*observed) {}, want: atRest},
		"Next":      {reason: "one has been copied", seen: func(seen *observed) { seen.next = inPhase(api.RestorePending) }, want: afterChange},
		"Deleted":   {reason: "one is taken back", seen: func(seen *observed) { seen.deleted = true }, want: afterChange},
		"Searching": {reason: "no watch tells of the Job", seen: func(seen *observed) { pending(seen); seen.Search.Begun = true }, want: whileSearching},
		"NotBegun":  {reason: "there is no Job, such as while something is in the way", seen: pending, want: atRest},
		"NotFound": {reason: "the kubelet tries again with its own pauses", seen: func(seen *observed) {
			pending(seen)
			seen.Search = membership.Search{Begun: true, Problem: "not there"}
		}, want: atRest},
		"Found": {reason: "what is in the way then is looked at in its own time", seen: func(seen *observed) {
			pending(seen)
			seen.Search = membership.Search{Begun: true, Found: membership.Snapshot{Name: "monday"}}
		}, want: atRest},
		"NotOurs": {reason: "the search of a new cluster has its own time", seen: func(seen *observed) { seen.Search.Begun = true }, want: atRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			tc.seen(&seen)
			c := newCluster()
			c.Status.Restore = tc.restore
			if got := untilRestoreLook(c, seen); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestTryInPlaceDeleted: an EtcdRestore that the API server refused to carry out is deleted. It is
// not tried once more.
func TestTryInPlaceDeleted(t *testing.T) {
	t.Parallel()
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}
	c.Status.ClusterID = "c1"
	c.Status.Restore = &api.ClusterRestore{Name: "back", UID: "back-uid", Phase: api.RestoreBlocked, WhenServing: api.ServingReplace}
	seen := observed{deleted: true}
	seen.Observed = membership.Observed{ClusterID: 0xc1, Search: membership.Search{Begun: true, Found: membership.Snapshot{Name: "db-monday", SHA256: "5a"}}}
	r := &Reconciler{} // it asks nothing
	if tries := r.tryInPlace(c, &seen); len(tries) > 0 {
		t.Errorf("%d tries", len(tries))
	}
}
