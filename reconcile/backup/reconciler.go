package backup

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/fair"
	"quorate.dev/reconcile/index"
)

// Reconciler makes EtcdBackups true.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads from the API server itself.
	Reader client.Reader
	// Recorder takes an event for what was done.
	Recorder events.EventRecorder
	// AgentImage is the operator's own image, with which agents run; empty where it is not known.
	AgentImage string
	// StallAfter is how long a cluster may be missing, or a Pod fail to start, before the backup is
	// called stalled.
	StallAfter time.Duration
}

const (
	afterConflict = 50 * time.Millisecond // another writer was first, or the cache was behind, and it soon catches up
	firstRetry    = 100 * time.Millisecond
	lastRetry     = 30 * time.Second
)

// SetupWithManager registers the reconciler. The manager's cache has the indexes of package index.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.EtcdBackup{}).
		Owns(&batchv1.Job{}).
		Watches(&api.EtcdCluster{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			NewQueue:                fair.NewQueue(workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Named("etcdbackup").
		Complete(r)
}

// waiting are the backups that have not begun, and wait for something of their cluster.
func (r *Reconciler) waiting(ctx context.Context, cluster client.Object) []reconcile.Request {
	all := &api.EtcdBackupList{}
	if err := r.Client.List(ctx, all, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{index.OfCluster: cluster.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "Could not list EtcdBackups")
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if b := &all.Items[i]; !settled(b) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return requests
}

// Reconcile takes one step for one backup:
//
//  1. observe the EtcdBackup, its cluster, its Jobs and what their Pods have said
//  2. plan the one next step
//  3. act
//  4. report what was seen and decided, where it differs from what the status says
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b := &api.EtcdBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := *b.Status.DeepCopy()
	seen, err := r.observe(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := Plan(seen)
	shown, err := r.act(ctx, seen, step)
	if apierrors.IsConflict(err) || errors.Is(err, apply.ErrChanged) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	switch step.Action {
	case Hold, Release: // the change of the object itself brings the next pass
		return ctrl.Result{}, nil
	case Wait, Stall:
		log.FromContext(ctx).V(1).Info("Waiting", "reason", step.Reason)
	default:
		log.FromContext(ctx).Info("Took step", "step", step.Action, "reason", step.Reason)
	}
	if shown.Reason == "" { // it is being deleted, and others hold it
		return ctrl.Result{}, nil
	}
	if err := r.report(ctx, b, before, status(seen, shown)); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: afterConflict}, nil
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: shown.After}, nil
}
