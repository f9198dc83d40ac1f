package restore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/fair"
	"quorate.dev/reconcile/index"
	"quorate.dev/reconcile/podstatus"
)

// Reconciler writes the status of EtcdRestores.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Recorder takes an event for what has come about.
	Recorder events.EventRecorder
	// StallAfter is how long a cluster or a backup may be missing before the restore is called
	// stalled.
	StallAfter time.Duration
}

const (
	afterConflict = 50 * time.Millisecond // the cache was behind, and it soon catches up
	firstRetry    = 100 * time.Millisecond
	lastRetry     = 30 * time.Second
)

// SetupWithManager registers the reconciler. The manager's cache has the indexes of package index.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.EtcdRestore{}).
		Watches(&api.EtcdCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster)).
		Watches(&api.EtcdBackup{}, handler.EnqueueRequestsFromMapFunc(r.ofBackup)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			NewQueue:                fair.NewQueue(workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Named("etcdrestore").
		Complete(r)
}

// ofCluster are the EtcdRestores of a cluster, but for those that have ended well.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.unended(ctx, cluster, func(*api.EtcdRestore) bool { return true }, client.MatchingFields{index.OfCluster: cluster.GetName()})
}

// ofBackup are the EtcdRestores from an EtcdBackup, but for those that have ended well.
func (r *Reconciler) ofBackup(ctx context.Context, backup client.Object) []reconcile.Request {
	return r.unended(ctx, backup, func(e *api.EtcdRestore) bool {
		return e.Spec.Source.BackupRef != nil && e.Spec.Source.BackupRef.Name == backup.GetName()
	})
}

// unended lists the EtcdRestores in the namespace of an object that matter, but for those that have
// ended well.
func (r *Reconciler) unended(ctx context.Context, o client.Object, matters func(*api.EtcdRestore) bool, opts ...client.ListOption) []reconcile.Request {
	all := &api.EtcdRestoreList{}
	if err := r.Client.List(ctx, all, append(opts, client.InNamespace(o.GetNamespace()))...); err != nil {
		log.FromContext(ctx).Error(err, "Could not list EtcdRestores")
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if e := &all.Items[i]; e.Status.CompletedAt == nil && matters(e) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e)})
		}
	}
	return requests
}

// Reconcile says what has become of one restore.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &api.EtcdRestore{}
	if err := r.Client.Get(ctx, request.NamespacedName, e); err != nil || !e.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	o := Observed{Restore: e, Cluster: &api.EtcdCluster{}, Patience: r.StallAfter, Now: time.Now()}
	found, err := r.get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Spec.ClusterRef.Name}, o.Cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !found {
		o.Cluster = nil
	}
	if ref := e.Spec.Source.BackupRef; ref != nil {
		o.Backup = &api.EtcdBackup{}
		if found, err = r.get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: ref.Name}, o.Backup); err != nil {
			return ctrl.Result{}, err
		}
		if !found {
			o.Backup = nil
		}
	}
	next, after := status(o)
	err = r.report(ctx, e, next)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// get reads an object, and reports whether there is one.
func (r *Reconciler) get(ctx context.Context, key client.ObjectKey, o client.Object) (bool, error) {
	err := r.Client.Get(ctx, key, o)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get %s: %w", key, err)
	}
	return err == nil, nil
}

// report writes the status where it differs, under the condition that the object has not changed
// since it was read.
func (r *Reconciler) report(ctx context.Context, e *api.EtcdRestore, next api.EtcdRestoreStatus) error {
	if equality.Semantic.DeepEqual(e.Status, next) {
		return nil
	}
	desired := apiac.EtcdRestore(e.Name, e.Namespace).WithResourceVersion(e.ResourceVersion)
	if err := apply.Status(ctx, r.Client, next, desired.WithStatus); err != nil {
		return client.IgnoreNotFound(err)
	}
	ready := meta.FindStatusCondition(next.Conditions, api.ConditionReady)
	before := meta.FindStatusCondition(e.Status.Conditions, api.ConditionReady)
	if before == nil || before.Reason != ready.Reason {
		kind := corev1.EventTypeNormal
		if meta.IsStatusConditionTrue(next.Conditions, api.ConditionStalled) {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(e, nil, kind, ready.Reason, "Restore", "%s", podstatus.FirstLine(ready.Message))
	}
	return nil
}
