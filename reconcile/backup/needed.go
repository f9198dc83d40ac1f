package backup

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// needed are the names of the EtcdBackups whose snapshots a restore names, or may have found, and
// has yet to read. Retention keeps them: a restore that was planned, or begun, must find its
// snapshot. The name of a snapshot is the same in every store and of every namespace.
func needed(backups []api.EtcdBackup, clusters []api.EtcdCluster, restores []api.EtcdRestore) map[string]bool {
	snapshots, refs := map[string]bool{}, map[client.ObjectKey]bool{}
	for i := range clusters {
		for _, name := range namedBy(&clusters[i]) {
			snapshots[name] = true
		}
	}
	for i := range restores {
		if e := &restores[i]; !e.Over() {
			snapshots[e.Spec.Source.Snapshot] = true
			if ref := e.Spec.Source.BackupRef; ref != nil {
				refs[client.ObjectKey{Namespace: e.Namespace, Name: ref.Name}] = true
			}
		}
	}
	names := map[string]bool{}
	for i := range backups {
		b := &backups[i]
		found := func(c api.EtcdCluster) bool { return mayHaveFound(&c, b) }
		if b.Status.Name != "" && (snapshots[b.Status.Name] || slices.ContainsFunc(clusters, found)) || refs[client.ObjectKeyFromObject(b)] {
			names[b.Name] = true
		}
	}
	return names
}

// namedBy are the snapshots that an EtcdCluster names and has yet to read: all first members read
// the one that was chosen until they have formed a cluster.
func namedBy(c *api.EtcdCluster) []string {
	var names []string
	if c.Status.ClusterID == "" {
		if c.Status.Restored != nil {
			names = append(names, c.Status.Restored.Name)
		}
		if b := c.Spec.Bootstrap; b != nil {
			names = append(names, b.Restore.Snapshot)
		}
	}
	if r := c.Status.Restore; r.Asked() {
		names = append(names, r.Source.Snapshot)
		if r.Plan != nil {
			names = append(names, r.Plan.From.Name)
		}
	}
	return names
}

// mayHaveFound reports whether the snapshot of an EtcdBackup may be the one that a restore in place
// has found. It names none yet, and may wait for long, such as for a quota. Nothing says which one
// it has found, so all that fit are kept until it has begun, or has a plan, which names it.
func mayHaveFound(c *api.EtcdCluster, b *api.EtcdBackup) bool {
	r := c.Status.Restore
	if !r.Asked() || r.Plan != nil || r.Survivor != nil || r.Source.Snapshot != "" {
		return false
	}
	of := b.Namespace + "/" + b.Spec.ClusterRef.Name
	return (r.Source.Cluster == "" || r.Source.Cluster == of) && (r.Source.ClusterID == "" || r.Source.ClusterID == b.Status.ClusterID) &&
		(r.Source.Before == nil || b.Status.TakenAt == nil || !b.Status.TakenAt.After(r.Source.Before.Time))
}

// needed are those of the EtcdBackups of a schedule that are needed. Restores in other namespaces
// are known from the cache. Those in its own are looked for past it: what is deleted in a store
// does not come back.
func (r *Scheduler) needed(ctx context.Context, s *api.EtcdBackupSchedule, backups []api.EtcdBackup) (map[string]bool, error) {
	clusters, restores := &api.EtcdClusterList{}, &api.EtcdRestoreList{}
	names := map[string]bool{}
	for _, from := range []struct {
		reader client.Reader
		in     []client.ListOption
	}{{r.Client, nil}, {r.Reader, []client.ListOption{client.InNamespace(s.Namespace)}}} {
		for _, list := range []client.ObjectList{clusters, restores} {
			if err := from.reader.List(ctx, list, from.in...); err != nil {
				return nil, fmt.Errorf("list what restores need: %w", err)
			}
		}
		for name := range needed(backups, clusters.Items, restores.Items) {
			names[name] = true
		}
	}
	return names, nil
}
