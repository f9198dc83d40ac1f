package reconcile

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// restoreInPlace carries out a step of a restore in place, after a look past the cache. What it
// rests on is status.restore: a change of that shows there.
func (r *Reconciler) restoreInPlace(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	var err error
	switch step.Action {
	case membership.Replace:
		err = r.report(ctx, c, replacing(c, seen, step))
	case membership.Revert:
		err = r.report(ctx, c, reverting(c))
	case membership.StopFormer:
		return each(step.Members, func(name string) error { return r.deletePod(ctx, c, seen.former.pods[name], step) })
	case membership.SetAside:
		err = r.markAside(ctx, seen, step, fmt.Sprintf("%q", c.Status.Restore.UID))
	case membership.Readmit:
		err = r.markAside(ctx, seen, step, "null")
	default:
		err = r.discardFormer(ctx, seen, step)
	}
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}

// replacing is the status with which a restore in place begins. It is written at once: from then on
// no former member counts.
func replacing(c *api.EtcdCluster, seen observed, step membership.Step) api.EtcdClusterStatus {
	s := status(c, seen, step)
	r := s.Restore
	r.Phase, r.Message, r.StartedAt, r.Plan = api.RestoreRestoring, "", new(metav1.Now()), planned(c, seen, metav1.Now())
	r.FormerClusterID, r.FormerRestored, r.FormerFirstOrdinal = s.ClusterID, s.Restored, s.FirstOrdinal
	s.FirstOrdinal = int32(nextOrdinal(c, seen.Instances))
	s.NextOrdinal = s.FirstOrdinal + int32(firstSize(c)) // also where the restore is taken back: no name is used twice
	s.ClusterID, s.Restored, s.Operation, s.FailedChange = "", seen.found, nil, nil
	s.Members, s.Replicas, s.ReadyReplicas, s.Leader, s.Version, s.DBSize = nil, 0, 0, "", "", nil
	s.Ready = readyOf(c, s.ReadyReplicas)
	return s
}

// firstSize is how many first members a restore in place starts: there is one copy of what a
// survivor has.
func firstSize(c *api.EtcdCluster) int {
	if r := c.Status.Restore; r != nil && r.Survivor != nil {
		return min(size(c), 1)
	}
	return size(c)
}

// reverting is the status with which the former members are those of the cluster again.
func reverting(c *api.EtcdCluster) api.EtcdClusterStatus {
	s := *c.Status.DeepCopy()
	r := s.Restore
	s.ClusterID, s.Restored, s.FirstOrdinal = r.FormerClusterID, r.FormerRestored, r.FormerFirstOrdinal
	s.Operation, s.Members, s.Restore = nil, nil, nil
	return s
}

// markAside writes the mark on the claims of former members, these very ones as they were seen, or
// takes it away. One that came late may be on the claim of a member by now. Nothing else on them
// changes.
func (r *Reconciler) markAside(ctx context.Context, seen observed, step membership.Step, value string) error {
	return each(step.Members, func(name string) error {
		claim := cmp.Or(seen.former.claims[name], seen.claims[name])
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q,"annotations":{%q:%s}}}`, claim.UID, claim.ResourceVersion, api.AnnotationSetAside, value)
		if err := r.Client.Patch(ctx, claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(api.Manager)); err != nil {
			return fmt.Errorf("patch PersistentVolumeClaim %s: %w", name, err)
		}
		return nil
	})
}

// discardFormer deletes the claims of former members, these very ones.
func (r *Reconciler) discardFormer(ctx context.Context, seen observed, step membership.Step) error {
	return each(step.Members, func(name string) error {
		claim := seen.former.claims[name]
		err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PersistentVolumeClaim %s: %w", name, err)
		}
		return nil
	})
}
