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

// setupJobs gives each Job one Pod. What becomes of that is not noted on the Job.
func (h *Hostlet) setupJobs(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("jobs").
		For(&batchv1.Job{}).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			job := &batchv1.Job{}
			if err := h.client.Get(ctx, req.NamespacedName, job); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if job.DeletionTimestamp != nil {
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
			if err := h.client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
				return ctrl.Result{}, fmt.Errorf("create the Pod of Job %s: %w", job.Name, err)
			}
			return ctrl.Result{}, nil
		}))
}
