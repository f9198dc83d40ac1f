package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
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

// tryInPlace asks the API server for what the search and the first of the new members will need,
// and makes nothing (dry run): what is refused is told before any member is stopped. So is a quota
// that does not admit all of them.
func (r *Reconciler) tryInPlace(ctx context.Context, c *api.EtcdCluster, seen *observed) error {
	why, _ := membership.InPlaceWaits(desired(c), seen.Observed)
	if !c.Status.Restore.Asked() || seen.deleted || why != "" || planShown(c, *seen) {
		return nil
	}
	if !seen.Search.Begun {
		return r.trySearch(ctx, c, seen)
	}
	if r.AgentImage == "" {
		seen.InPlace.Problem = errNoAgentImage.Error()
		return nil
	}
	if seen.Search.Found == (membership.Snapshot{}) {
		return nil
	}
	restored := c.DeepCopy()
	restored.Status = replacing(c, *seen, membership.Step{Action: membership.Replace})
	err := r.tryFirstMember(ctx, restored, *seen)
	if err == nil {
		seen.InPlace.Problem, err = r.tryQuotas(ctx, restored, *seen)
	}
	var invalid *invalidError
	switch {
	case errors.As(err, &invalid):
		seen.InPlace.Problem = invalid.Error()
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		seen.InPlace.Problem = podstatus.Clause("the API server refuses what the new members need", err.Error())
	case err != nil:
		seen.InPlace.Problem, seen.InPlace.Passes = "the API server did not say whether it accepts what the new members need; it is asked again", true
		return err
	}
	return nil
}

// trySearch finds out why the search for the snapshot cannot be begun: what heals the cluster must
// not wait for it.
func (r *Reconciler) trySearch(ctx context.Context, c *api.EtcdCluster, seen *observed) error {
	if r.AgentImage == "" {
		seen.InPlace.Problem = errNoAgentImage.Error()
		return nil
	}
	want, err := render.FindJob(c, r.AgentImage)
	if err != nil {
		seen.InPlace.Problem = err.Error()
		return nil //nolint:nilerr // it is told to the person who can do something about it
	}
	job := &batchv1.Job{}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: *want.Name}, job)
	if err == nil {
		if foreign, ok := errors.AsType[*foreignError](applicable(c, job, "Job")); ok {
			seen.InPlace.Problem = foreign.Error()
		}
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("get Job %s: %w", *want.Name, err)
	}
	err = r.Client.Apply(ctx, want.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership, client.DryRunAll)
	switch {
	case refuses(err):
		seen.InPlace.Problem = podstatus.Clause("the API server refuses the Job that looks for the snapshot", err.Error())
		return nil
	case err != nil:
		seen.InPlace.Problem, seen.InPlace.Passes = "the API server did not say whether it accepts the Job that looks for the snapshot; it is asked again", true
	}
	return err
}

func (r *Reconciler) tryFirstMember(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	if err := valid(c, seen); err != nil {
		return err
	}
	d := desired(c)
	f := membership.First{Token: d.Token, Size: firstSize(c), Base: d.Base, Snapshot: snapshotFacts(c.Status.Restored).ID()}
	m := render.Member{Name: c.MemberName(f.Base), Version: d.Version.String(), AgentImage: r.AgentImage}
	begins(&m, c, f)
	claim := render.Volume(c, m)
	if err := r.Client.Apply(ctx, claim, client.FieldOwner(api.Manager), client.ForceOwnership, client.DryRunAll); err != nil {
		return fmt.Errorf("try to create PersistentVolumeClaim %s: %w", m.Name, err)
	}
	pod, err := render.Pod(c, m)
	if err != nil {
		return &invalidError{err}
	}
	if err := r.Client.Apply(ctx, pod, client.FieldOwner(api.Manager), client.ForceOwnership, client.DryRunAll); err != nil {
		return fmt.Errorf("try to create Pod %s: %w", m.Name, err)
	}
	if c.Status.Restore.Survivor == nil {
		return nil
	}
	job, err := render.CopyJob(c, m, c.Status.Restored.EtcdVersion)
	if err != nil {
		return &invalidError{err}
	}
	err = r.Client.Apply(ctx, job.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership, client.DryRunAll)
	if err != nil && !apierrors.IsConflict(err) { // that of an earlier restore makes room later
		return fmt.Errorf("try to create Job %s: %w", *job.Name, err)
	}
	return nil
}
