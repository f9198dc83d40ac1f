package hostlet

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// setupJobs gives each Job one Pod, and notes on it how that has ended.
func (h *Hostlet) setupJobs(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("jobs").
		For(&batchv1.Job{}).
		Owns(&corev1.Pod{}).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			job := &batchv1.Job{}
			if err := h.client.Get(ctx, req.NamespacedName, job); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if job.DeletionTimestamp != nil || len(job.Status.Conditions) > 0 {
				return ctrl.Result{}, nil
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: job.Namespace, Name: fmt.Sprintf("%s-%.5s", job.Name, job.UID),
					Labels: job.Spec.Template.Labels, Annotations: job.Spec.Template.Annotations,
				},
				Spec: *job.Spec.Template.Spec.DeepCopy(),
			}
			if err := ctrl.SetControllerReference(job, pod, mgr.GetScheme()); err != nil {
				return ctrl.Result{}, err
			}
			err := h.client.Create(ctx, pod)
			if err == nil {
				return ctrl.Result{}, nil
			}
			if !apierrors.IsAlreadyExists(err) {
				return ctrl.Result{}, fmt.Errorf("create the Pod of Job %s: %w", job.Name, err)
			}
			if err := h.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, h.noteEnd(ctx, job, pod)
		}))
}

// noteEnd notes on a Job how its Pod has ended. The Pod of one that is to be tried again never
// fails: its containers restart.
func (h *Hostlet) noteEnd(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) error {
	now, status := metav1.Now(), job.Status.DeepCopy()
	status.StartTime = &now
	var ends []batchv1.JobConditionType // the API server takes the last one only after the first
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		status.Succeeded, status.CompletionTime = 1, &now
		ends = []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	case corev1.PodFailed:
		status.Failed = 1
		ends = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	default:
		return nil
	}
	for _, kind := range ends {
		status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now})
	}
	job.Status = *status
	err := h.client.Status().Update(ctx, job)
	if apierrors.IsConflict(err) {
		return nil // the watch is about to tell
	}
	return client.IgnoreNotFound(err)
}
