package backup

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestNeeded: the EtcdBackup monday has stored a snapshot, and one restore or another names it.
func TestNeeded(t *testing.T) {
	t.Parallel()
	const stored = "team-a-monday-20261123t075000z-1a2b3c4d"
	monday := good("monday", clock(8, 0))
	monday.Namespace, monday.Status.Name, monday.Spec.ClusterRef.Name = "team-a", stored, "db"
	unstored := started("unstored", clock(9, 0))
	unstored.Namespace = "team-a"
	cluster := func(change func(*api.EtcdCluster)) func() ([]api.EtcdCluster, []api.EtcdRestore) {
		c := api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "copy", Namespace: "team-b"}}
		change(&c)
		return func() ([]api.EtcdCluster, []api.EtcdRestore) { return []api.EtcdCluster{c}, nil }
	}
	carries := func(phase api.RestorePhase, change func(*api.ClusterRestore)) func() ([]api.EtcdCluster, []api.EtcdRestore) {
		return cluster(func(c *api.EtcdCluster) {
			c.Status.ClusterID = "cd"
			c.Status.Restore = &api.ClusterRestore{Name: "back", Phase: phase}
			change(c.Status.Restore)
		})
	}
	restore := func(change ...func(*api.EtcdRestore)) func() ([]api.EtcdCluster, []api.EtcdRestore) {
		e := api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "team-a"}}
		for _, c := range change {
			c(&e)
		}
		return func() ([]api.EtcdCluster, []api.EtcdRestore) { return nil, []api.EtcdRestore{e} }
	}
	plan := func(r *api.ClusterRestore) { r.Plan = &api.RestorePlan{From: api.RestoredSnapshot{Name: stored}} }
	from := func(source api.BootstrapRestore) func(*api.ClusterRestore) {
		return func(r *api.ClusterRestore) { r.Source = source }
	}
	byName := func(e *api.EtcdRestore) { e.Spec.Source.Snapshot = stored }
	byRef := func(e *api.EtcdRestore) { e.Spec.Source.BackupRef = &api.BackupReference{Name: "monday"} }
	says := func(reason string) func(*api.EtcdRestore) {
		return func(e *api.EtcdRestore) {
			e.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	cases := map[string]struct {
		reason string
		args   func() ([]api.EtcdCluster, []api.EtcdRestore)
		want   []string
	}{
		"None":      {reason: "Nothing is restored", args: cluster(func(*api.EtcdCluster) {})},
		"ByName":    {reason: "An EtcdRestore waits for its turn", args: restore(byName), want: []string{"monday"}},
		"ByRef":     {reason: "The same by the name of the EtcdBackup", args: restore(byRef), want: []string{"monday"}},
		"Stalled":   {reason: "It goes on when a person has acted", args: restore(byRef, says(api.ReasonRestoreFailed)), want: []string{"monday"}},
		"Completed": {reason: "It was carried out", args: restore(byRef, func(e *api.EtcdRestore) { e.Status.CompletedAt = instant(born) })},
		"Refused":   {reason: "It never will be", args: restore(byRef, says(api.ReasonRestoreRefused))},
		"Repeated":  {reason: "One of its name was", args: restore(byName, says(api.ReasonCarriedOut))},
		"RefElsewhere": {
			reason: "An EtcdBackup of that name in another namespace is meant",
			args:   restore(byRef, func(e *api.EtcdRestore) { e.Namespace = "team-b" }),
		},
		"Planned":   {reason: "A person looks at the plan, which names what was the newest", args: carries(api.RestorePending, plan), want: []string{"monday"}},
		"Blocked":   {reason: "A quota is raised first", args: carries(api.RestoreBlocked, plan), want: []string{"monday"}},
		"Source":    {reason: "It is looked for by its name", args: carries(api.RestorePending, func(r *api.ClusterRestore) { r.Source.Snapshot = stored }), want: []string{"monday"}},
		"Found":     {reason: "It has found one, and waits for a quota", args: carries(api.RestoreBlocked, from(api.BootstrapRestore{Cluster: "team-a/db"})), want: []string{"monday"}},
		"FoundByID": {reason: "The same by the ID of etcd", args: carries(api.RestorePending, from(api.BootstrapRestore{ClusterID: "cd"})), want: []string{"monday"}},
		"FoundBefore": {
			reason: "The same of before a time",
			args:   carries(api.RestorePending, from(api.BootstrapRestore{Cluster: "team-a/db", Before: instant(clock(8, 0))})), want: []string{"monday"},
		},
		"TooLate":      {reason: "It was taken after that", args: carries(api.RestorePending, from(api.BootstrapRestore{Cluster: "team-a/db", Before: instant(clock(7, 59))}))},
		"OtherCluster": {reason: "It looks for one of another cluster", args: carries(api.RestorePending, from(api.BootstrapRestore{Cluster: "team-b/db"}))},
		"OtherID":      {reason: "It looks for one of another etcd cluster", args: carries(api.RestorePending, from(api.BootstrapRestore{ClusterID: "ce"}))},
		"OtherName":    {reason: "It names another one", args: carries(api.RestoreBlocked, from(api.BootstrapRestore{Cluster: "team-a/db", Snapshot: "other"}))},
		"FoundAndPlanned": {reason: "The plan names the one that it takes", args: carries(api.RestorePending, func(r *api.ClusterRestore) {
			r.Source.Cluster, r.Plan = "team-a/db", &api.RestorePlan{From: api.RestoredSnapshot{Name: "another"}}
		})},
		"FoundMember": {reason: "It takes the data of a member", args: carries(api.RestorePending, func(r *api.ClusterRestore) {
			r.Survivor = &api.Survivor{}
		})},
		"FoundAndRefused": {reason: "It is never begun", args: carries(api.RestoreRefused, from(api.BootstrapRestore{Cluster: "team-a/db"}))},
		"Forgotten":       {reason: "The plan of one that was refused is history", args: carries(api.RestoreRefused, plan)},
		"Done":            {reason: "So is that of one that was carried out", args: carries(api.RestoreCompleted, plan)},
		"Restoring": {
			reason: "The new members read it, each by itself",
			args: cluster(func(c *api.EtcdCluster) {
				c.Status.Restored = &api.RestoredSnapshot{Name: stored}
				c.Status.Restore = &api.ClusterRestore{Name: "back", Phase: api.RestoreRestoring}
			}),
			want: []string{"monday"},
		},
		"Bootstrapping": {
			reason: "So do those of a new cluster",
			args:   cluster(func(c *api.EtcdCluster) { c.Status.Restored = &api.RestoredSnapshot{Name: stored} }),
			want:   []string{"monday"},
		},
		"Asked": {
			reason: "A new cluster has yet to choose, and only this one will do",
			args: cluster(func(c *api.EtcdCluster) {
				c.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{Snapshot: stored}}
			}),
			want: []string{"monday"},
		},
		"Formed": {
			reason: "All have read it",
			args: cluster(func(c *api.EtcdCluster) {
				c.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{Snapshot: stored}}
				c.Status.ClusterID, c.Status.Restored = "cd", &api.RestoredSnapshot{Name: stored}
			}),
		},
		"Survivor": {reason: "What a member has is in no store", args: restore(func(e *api.EtcdRestore) { e.Spec.Source.Survivor = &api.Survivor{} })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clusters, restores := tc.args()
			got := slices.Sorted(maps.Keys(needed([]api.EtcdBackup{monday, unstored}, clusters, restores)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
