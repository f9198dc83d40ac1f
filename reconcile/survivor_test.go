package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestSurvivor: the member whose data is restored, or why there is none.
func TestSurvivor(t *testing.T) {
	t.Parallel()
	data := func(name string) *api.RestoredSnapshot {
		return &api.RestoredSnapshot{Name: "member/" + name, SHA256: "claim-of-" + name, ClusterID: "c0", EtcdVersion: "3.6.16", Size: 20 << 10}
	}
	type args struct {
		member string
		seen   []func([]membership.Instance)
	}
	type result struct {
		Data *api.RestoredSnapshot
		Why  string
	}
	on := func(n int, change func(*membership.Instance)) func([]membership.Instance) {
		return func(all []membership.Instance) { change(&all[n]) }
	}
	gone := func(i *membership.Instance) { i.Volume = membership.Volume{} }
	silent := func(i *membership.Instance) { i.Endpoint = membership.Endpoint{} }
	only := func(change ...func(*membership.Instance)) []func([]membership.Instance) {
		seen := []func([]membership.Instance){on(0, gone), on(2, gone)}
		for _, c := range change {
			seen = append(seen, on(1, c))
		}
		return seen
	}
	const none = "no member is left with a volume that has its data: delete the EtcdRestore, and create one from a stored snapshot"
	without := func(why string) string {
		return "spec.source.survivor.member is db-1, " + why + ": delete the EtcdRestore, and apply it again with one of those that are left, db-0, db-2"
	}
	cases := map[string]struct {
		reason string
		args   args
		want   result
	}{
		"Only":  {reason: "there is no choice", args: args{seen: only()}, want: result{Data: data("db-1")}},
		"Named": {reason: "the others may have more or less", args: args{member: "db-2"}, want: result{Data: data("db-2")}},
		"SilentUnnamed": {
			reason: "it may be a learner", args: args{seen: only(silent)},
			want: result{Why: "db-1 is left with its data, and it does not answer, so that nothing tells whether it has a vote: to take it all the same, delete the EtcdRestore, and apply it again with spec.source.survivor.member db-1"},
		},
		"Silent": {
			reason: "a member that does not run has its data all the same, and a person takes it", args: args{member: "db-1", seen: only(silent)},
			want: result{Data: &api.RestoredSnapshot{Name: "member/db-1", SHA256: "claim-of-db-1", ClusterID: "c0", EtcdVersion: "3.6.16"}},
		},
		"Answers": {
			reason: "it tells how far it is",
			args:   args{seen: only(func(i *membership.Instance) { i.Endpoint.Revision, i.Endpoint.DBSize = 4711, 30<<10 })},
			want: result{Data: &api.RestoredSnapshot{
				Name: "member/db-1", SHA256: "claim-of-db-1", ClusterID: "c0", EtcdVersion: "3.6.16", Revision: 4711, Size: 30 << 10,
			}},
		},
		"Updating": {
			reason: "the next minor may have written to it, and reads what this one has written",
			args: args{member: "db-1", seen: only(silent, func(i *membership.Instance) {
				i.Pod, i.Volume.Next = membership.Pod{}, membership.Version{Major: 3, Minor: 7}
			})},
			want: result{Data: &api.RestoredSnapshot{Name: "member/db-1", SHA256: "claim-of-db-1", ClusterID: "c0", EtcdVersion: "3.7.0"}},
		},
		"Several": {
			reason: "which has all that was acknowledged only a person can know",
			args:   args{seen: []func([]membership.Instance){on(1, gone), on(0, func(i *membership.Instance) { i.Endpoint.RaftIndex = 17 })}},
			want:   result{Why: "there are several volumes with data of the cluster, those of db-0 (log up to entry 17 at least), db-2: if these members can come back, bring back their nodes, and delete the EtcdRestore; if a majority of the cluster cannot, delete the EtcdRestore, and apply it again with spec.source.survivor.member set to the member to take"},
		},
		"None": {reason: "a stored snapshot is what is left", args: args{seen: only(gone)}, want: result{Why: none}},
		"NamedOfNone": {
			reason: "the same, with a name", args: args{member: "db-1", seen: only(gone)},
			want: result{Why: "spec.source.survivor.member is db-1, which has no volume, and no other is left with its data: delete the EtcdRestore, and create one from a stored snapshot"},
		},
		"NamedUnknown": {
			reason: "there is none of that name", args: args{member: "db-7", seen: only()},
			want: result{Why: "spec.source.survivor.member is db-7, which has no volume: delete the EtcdRestore, and apply it again with one of those that are left, db-1"},
		},
		"NamedMissing": {
			reason: "its volume is gone", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, gone)}},
			want: result{Why: without("which has no volume")},
		},
		"NamedForeign": {
			reason: "what has that name belongs to another owner", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.Foreign = true })}},
			want: result{Why: without("which has no volume")},
		},
		"NamedGoing": {
			reason: "its data goes with its Pod", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.Terminating = true })}},
			want: result{Why: without("whose volume is being deleted")},
		},
		"NamedReplaced": {
			reason: "what is on it may be anything", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.Replaced = true })}},
			want: result{Why: without("whose volume is another object than the one on which its data was written")},
		},
		"NamedRetired": {
			reason: "the cluster has gone on without it", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.Retired = true })}},
			want: result{Why: without("which is no member of the cluster any more")},
		},
		"NamedUnrecorded": {
			reason: "it may be blank", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.MemberID = 0 })}},
			want: result{Why: without("whose volume is not known to have data of this cluster")},
		},
		"NamedOfAnotherCluster": {
			reason: "it is other data", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.ClusterID = 0xc9 })}},
			want: result{Why: without("whose volume is not known to have data of this cluster")},
		},
		"NamedAside": {
			reason: "it has the data of before", args: args{member: "db-1", seen: []func([]membership.Instance){on(1, func(i *membership.Instance) { i.Volume.Aside = "earlier" })}},
			want: result{Why: without("whose volume was set aside for an earlier EtcdRestore")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.Restore = inPhase(api.RestorePending, func(r *api.ClusterRestore) { r.Survivor = &api.Survivor{Member: tc.args.member} })
			for _, change := range tc.args.seen {
				change(seen.Instances)
			}
			got, why := survivor(c, seen.Observed)
			if diff := cmp.Diff(tc.want, result{got, why}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
