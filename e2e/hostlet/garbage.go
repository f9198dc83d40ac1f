package hostlet

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// collector deletes objects of one kind whose owners are all gone, as the
// garbage collector does after a deletion in the background.
type collector struct {
	mgr        ctrl.Manager
	kind       client.Object
	list       client.ObjectList
	controller controller.Controller

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool // kinds of owners
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

func setupGarbage(mgr ctrl.Manager) error {
	for _, c := range []*collector{
		{kind: &corev1.Pod{}, list: &corev1.PodList{}},
		{kind: &corev1.PersistentVolumeClaim{}, list: &corev1.PersistentVolumeClaimList{}},
		{kind: &corev1.Service{}, list: &corev1.ServiceList{}},
		{kind: &corev1.Secret{}, list: &corev1.SecretList{}},
		{kind: &batchv1.Job{}, list: &batchv1.JobList{}},
		{kind: &policyv1.PodDisruptionBudget{}, list: &policyv1.PodDisruptionBudgetList{}},
	} {
		c.mgr, c.watched = mgr, map[schema.GroupVersionKind]bool{}
		var err error
		if c.controller, err = ctrl.NewControllerManagedBy(mgr).For(c.kind).Build(c); err != nil {
			return fmt.Errorf("collect %T: %w", c.kind, err)
		}
	}
	return nil
}

// Reconcile one possible dependent.
func (c *collector) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := c.kind.DeepCopyObject().(client.Object)
	if err := c.mgr.GetClient().Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owners := obj.GetOwnerReferences()
	if len(owners) == 0 || obj.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	for _, ref := range owners {
		// Watch before looking, so that no deletion falls in between.
		if err := c.watch(ctx, ref); err != nil {
			return ctrl.Result{}, err
		}
		there, err := c.exists(ctx, obj.GetNamespace(), ref)
		if err != nil || there {
			return ctrl.Result{}, err
		}
	}
	uid := obj.GetUID()
	err := c.mgr.GetClient().Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // a namesake has taken its place
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// exists reads from the API server: to delete on a cache's word is not safe.
func (c *collector) exists(ctx context.Context, namespace string, ref metav1.OwnerReference) (bool, error) {
	owner := metadata(ref)
	err := c.mgr.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, owner)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	return err == nil && owner.UID == ref.UID, nil
}

// watch the owner's kind; a deleted owner brings up its dependents.
func (c *collector) watch(ctx context.Context, ref metav1.OwnerReference) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner := metadata(ref)
	gvk := owner.GroupVersionKind()
	if c.watched[gvk] {
		return nil
	}
	// A watch on a kind that does not exist would wait for it.
	if _, err := c.mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return fmt.Errorf("find owner's kind: %w", err)
	}
	deleted := source.Kind[client.Object](c.mgr.GetCache(), owner, handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue queue) {
			for _, request := range c.dependents(ctx, e.Object) {
				queue.Add(request)
			}
		},
	})
	if err := c.controller.Watch(deleted); err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	if err := deleted.WaitForSync(ctx); err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	c.watched[gvk] = true
	return nil
}

func (c *collector) dependents(ctx context.Context, owner client.Object) []ctrl.Request {
	list := c.list.DeepCopyObject().(client.ObjectList)
	if err := c.mgr.GetClient().List(ctx, list, client.InNamespace(owner.GetNamespace())); err != nil {
		c.mgr.GetLogger().Error(err, "Listing dependents", "owner", owner.GetName())
	}
	var requests []ctrl.Request
	_ = apimeta.EachListItem(list, func(item runtime.Object) error { // no error but ours
		obj := item.(client.Object)
		for _, ref := range obj.GetOwnerReferences() {
			if ref.UID == owner.GetUID() {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
			}
		}
		return nil
	})
	return requests
}

func metadata(ref metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind}}
}
