package reconcile

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
)

// The Jobs of a restore: one looks for the snapshot, one copies what a survivor has. They and their
// Pods are read from the API server itself: the cache holds neither, and they are for some seconds
// in the life of a cluster.

// jobOf is the Job as it is wanted, and its Pods; nil where there is none, or one of an earlier
// restore, for which beginJob makes room.
func (r *Reconciler) jobOf(ctx context.Context, c *api.EtcdCluster, want *batchv1ac.JobApplyConfiguration) (*batchv1.Job, []corev1.Pod, error) {
	job := &batchv1.Job{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: *want.Name}, job)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get Job %s: %w", *want.Name, err)
	}
	if !metav1.IsControlledBy(job, c) || !job.DeletionTimestamp.IsZero() || job.Annotations[api.AnnotationRevision] != want.Annotations[api.AnnotationRevision] {
		return nil, nil, nil
	}
	pods := &corev1.PodList{}
	if err := r.Reader.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)}); err != nil {
		return nil, nil, fmt.Errorf("list the Pods of Job %s: %w", job.Name, err)
	}
	return job, pods.Items, nil
}

// podless is why a Job has no Pod that should have one by now; empty where it has, or may get one.
func podless(job *batchv1.Job, pods []corev1.Pod, stallBefore time.Time) string {
	if len(pods) > 0 || !job.CreationTimestamp.Time.Before(stallBefore) {
		return ""
	}
	return "Job " + job.Name + " has no Pod" + podstatus.NoPod(job.Name, job.Namespace)
}

// notStarted is why a Pod of a Job does not start that should have by now; empty where it has, or
// may.
func notStarted(pod *corev1.Pod, stallBefore time.Time) string {
	if pod.CreationTimestamp.After(stallBefore) {
		return ""
	}
	if problem := podstatus.Pending(pod); problem != "" {
		return "the Pod " + pod.Name + " " + problem
	}
	return ""
}

// beginJob creates a Job of a restore, or makes room for it where there is one of an earlier
// restore.
func (r *Reconciler) beginJob(ctx context.Context, c *api.EtcdCluster, step membership.Step, want *batchv1ac.JobApplyConfiguration) error {
	job := &batchv1.Job{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: *want.Name}, job)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.Client.Apply(ctx, want.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership); err != nil {
			return fmt.Errorf("create Job %s: %w", *want.Name, err)
		}
		r.event(c, step, "Created Job "+*want.Name)
		return nil
	case err != nil:
		return fmt.Errorf("get Job %s: %w", *want.Name, err)
	}
	if err := applicable(c, job, "Job"); err != nil {
		return err
	}
	err = r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Job %s, which is of an earlier restore: %w", job.Name, err)
	}
	return nil
}

// stopJob deletes a Job of the cluster, if it is to go.
func (r *Reconciler) stopJob(ctx context.Context, c *api.EtcdCluster, name string, goes func(*batchv1.Job) bool) error {
	job := &batchv1.Job{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, job)
	if err != nil || !metav1.IsControlledBy(job, c) || !job.DeletionTimestamp.IsZero() || !goes(job) {
		return client.IgnoreNotFound(err)
	}
	err = r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}
