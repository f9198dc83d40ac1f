package backup

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// act carries out the step. It returns the step that is to be shown, which is another one where the
// API server is against it.
func (r *Reconciler) act(ctx context.Context, o Observed, step Step) (Step, error) {
	b := o.Backup
	switch step.Action {
	case Hold:
		return step, r.finalize(ctx, b, append(slices.Clone(b.Finalizers), api.FinalizerSnapshot))
	case Release:
		return step, r.release(ctx, b, step.Reason, step.Message)
	case Take:
		pods := &corev1.PodList{}
		if err := r.Client.List(ctx, pods, client.InNamespace(b.Namespace), client.MatchingLabels(render.Selector(o.Cluster))); err != nil {
			return step, fmt.Errorf("list Pods of EtcdCluster %s: %w", o.Cluster.Name, err)
		}
		job, err := render.BackupJob(b, render.Connecting(o.Cluster, pods.Items), r.AgentImage)
		if err != nil {
			return unrenderable(err), nil
		}
		return r.create(ctx, b, job, step)
	case Delete:
		job, err := render.DeletionJob(b, o.Cluster, r.AgentImage)
		if err != nil {
			step := unrenderable(err)
			step.Message += "; " + wayOut
			return step, nil
		}
		shown, err := r.create(ctx, b, job, step)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) { // nothing can run in it any more, and it must not wait for us
			return step, r.release(ctx, b, api.ReasonSnapshotLeft, "the namespace is being deleted: the snapshot "+b.Status.Name+" stays in the store")
		}
		if shown.Action == Stall {
			shown.After = o.deletionRest(o.Now)
			shown.Message += "; " + wayOut
		}
		return shown, err
	case Tidy, Stop:
		return step, r.remove(ctx, b, b.JobName(b.Status.Attempt))
	case RetryDeletion:
		return step, r.remove(ctx, b, b.DeletionJobName())
	case Begin:
		return step, r.confirm(ctx, o.Cluster)
	case None, Wait, Stall, GiveUp: // what is to be written down is in the status
	}
	return step, nil
}

// confirm returns an error where the EtcdCluster has changed since it was read: the cache may not
// know yet that spec.backup.encryption was set.
func (r *Reconciler) confirm(ctx context.Context, c *api.EtcdCluster) error {
	live := &api.EtcdCluster{}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look at the EtcdCluster again: %w", err)
	}
	if live.UID != c.UID || live.Generation != c.Generation {
		return apply.ErrChanged
	}
	return nil
}

// unrenderable is what is shown of a Job that cannot be made: what is wrong is for a person.
func unrenderable(err error) Step {
	return Step{Action: Stall, Reason: api.ReasonInvalidSpec, Message: err.Error()}
}

// create a Job where there is none of that name. Nothing is created on the word of the cache alone:
// the EtcdBackup is looked at once more.
func (r *Reconciler) create(ctx context.Context, b *api.EtcdBackup, job *batchv1ac.JobApplyConfiguration, step Step) (Step, error) {
	live := &api.EtcdBackup{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(b), live); err != nil {
		return step, fmt.Errorf("get EtcdBackup: %w", err)
	}
	if live.UID != b.UID || live.ResourceVersion != b.ResourceVersion {
		return step, apply.ErrChanged
	}
	name := *job.Name
	err := r.Client.Apply(ctx, job.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership)
	switch {
	case err == nil:
		r.Recorder.Eventf(b, nil, corev1.EventTypeNormal, step.Reason, string(step.Action), "Created Job %s", name)
		return step, nil
	case apierrors.IsConflict(err):
		return r.occupied(ctx, b, name, step)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return step, fmt.Errorf("create Job %s: %w", name, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return Step{
			Action: Stall, Reason: api.ReasonRefused, After: betweenDeletions,
			Message: podstatus.Clause("the API server refuses Job "+name, err.Error()),
		}, nil
	default:
		return step, fmt.Errorf("create Job %s: %w", name, err)
	}
}

// occupied: there is a Job of that name. It is ours where the cache was behind, or does not show it
// because it has lost our label: it gets that back. Both are looked at again soon, and not at once.
func (r *Reconciler) occupied(ctx context.Context, b *api.EtcdBackup, name string, step Step) (Step, error) {
	job := &batchv1.Job{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, job)
	if apierrors.IsNotFound(err) {
		return Step{}, apply.ErrChanged
	}
	if err != nil {
		return Step{}, fmt.Errorf("get Job %s: %w", name, err)
	}
	if metav1.IsControlledBy(job, b) {
		step.After = whileRunning
		return r.label(ctx, b, job, step)
	}
	there := described(b, job)
	if there.Former {
		return former(there), nil
	}
	step = foreign(there, "make another EtcdBackup under another name, or delete that Job")
	step.After = betweenDeletions // it is not in the cache, and no watch tells when it goes
	return step, nil
}

// label gives a Job of ours its label back, where it has lost it.
func (r *Reconciler) label(ctx context.Context, b *api.EtcdBackup, job *batchv1.Job, step Step) (Step, error) {
	if job.Labels[api.LabelBackup] != "" {
		return step, nil
	}
	name := job.Name
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, job.UID, api.LabelBackup, b.Name)
	err := r.Client.Patch(ctx, job, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(api.Manager))
	switch words := refusal(err); {
	case words != "":
		return Step{
			Action: Stall, Reason: api.ReasonRefused, After: betweenDeletions,
			Message: podstatus.Clause("the API server refuses to give Job "+name+" its label "+api.LabelBackup+" back", words),
		}, nil
	case err != nil:
		return Step{}, fmt.Errorf("give Job %s its label back: %w", name, err)
	case job.Labels[api.LabelBackup] == "":
		return Step{
			Action: Stall, Reason: api.ReasonRefused, After: betweenDeletions,
			Message: "something takes the label " + api.LabelBackup + " from Job " + name + ", by which Quorate finds it: have that (a policy, a webhook, a controller) leave the label",
		}, nil
	}
	return step, nil
}

// remove a Job of ours, and its Pods with it.
func (r *Reconciler) remove(ctx context.Context, b *api.EtcdBackup, name string) error {
	job := &batchv1.Job{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, job); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !job.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(job, b) {
		return nil
	}
	err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete Job %s: %w", name, err)
	}
	return nil
}

// release lets an EtcdBackup go, and says why where there is something to say.
func (r *Reconciler) release(ctx context.Context, b *api.EtcdBackup, reason, message string) error {
	rest := slices.DeleteFunc(slices.Clone(b.Finalizers), func(f string) bool { return f == api.FinalizerSnapshot })
	if err := r.finalize(ctx, b, rest); err != nil {
		return err
	}
	if reason != "" {
		r.Recorder.Eventf(b, nil, corev1.EventTypeNormal, reason, string(Release), "%s", message)
	}
	return nil
}

// finalize writes the finalizers, under the condition that nothing else of the EtcdBackup has
// changed.
func (r *Reconciler) finalize(ctx context.Context, b *api.EtcdBackup, finalizers []string) error {
	next := b.DeepCopy()
	next.Finalizers = finalizers
	err := r.Client.Patch(ctx, next, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{}), client.FieldOwner(api.Manager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the finalizers: %w", err)
	}
	return nil
}

// report writes the status where it differs from before, under the condition that the object has
// not changed since it was read.
func (r *Reconciler) report(ctx context.Context, b *api.EtcdBackup, before, next api.EtcdBackupStatus) error {
	if equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	desired := apiac.EtcdBackup(b.Name, b.Namespace).WithResourceVersion(b.ResourceVersion)
	if err := apply.Status(ctx, r.Client, next, desired.WithStatus); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.announce(b, before, next)
	return nil
}

// announce what has come about since before.
func (r *Reconciler) announce(b *api.EtcdBackup, before, next api.EtcdBackupStatus) {
	if before.SHA256 == "" && next.SHA256 != "" {
		r.Recorder.Eventf(b, nil, corev1.EventTypeNormal, api.ReasonSaved, string(Take), "Stored %s from member %s at revision %d", next.Location, next.Member, next.Revision)
	}
	if before.VerifiedAt == nil && next.VerifiedAt != nil {
		r.Recorder.Eventf(b, nil, corev1.EventTypeNormal, api.ReasonVerified, string(Take), "Verified snapshot %s", next.Name)
	}
	if before.Failure == nil && next.Failure != nil {
		r.Recorder.Eventf(b, nil, corev1.EventTypeWarning, next.Failure.Reason, string(GiveUp), "%s", podstatus.Clause("Gave up", next.Failure.Message))
	}
}
