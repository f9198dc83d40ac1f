package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/index"
)

// RoleReconciler makes EtcdRoles true.
type RoleReconciler struct{ Shared }

// SetupWithManager registers the reconciler. The manager's cache has the indexes of package index.
func (r *RoleReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.EtcdRole{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&api.EtcdRole{}, handler.EnqueueRequestsFromMapFunc(r.twins), builder.WithPredicates(goes)).
		Watches(&api.EtcdCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(matters)).
		WithOptions(options(workers)).
		Named("etcdrole").
		Complete(r)
}

// ofCluster are the EtcdRoles of a cluster.
func (r *RoleReconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	all, err := r.all(ctx, cluster.GetNamespace(), cluster.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list EtcdRoles")
	}
	requests := make([]reconcile.Request, 0, len(all))
	for i := range all {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
	}
	return requests
}

// twins are the other EtcdRoles for the same role.
func (r *RoleReconciler) twins(ctx context.Context, o client.Object) []reconcile.Request {
	role, _ := o.(*api.EtcdRole)
	all, err := r.all(ctx, role.Namespace, role.Spec.ClusterRef.Name)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list EtcdRoles")
	}
	var requests []reconcile.Request
	for i := range all {
		if all[i].UID != role.UID && all[i].EtcdName() == role.EtcdName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	return requests
}

func (r *RoleReconciler) all(ctx context.Context, namespace, cluster string) ([]api.EtcdRole, error) {
	list := &api.EtcdRoleList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index.OfCluster: cluster})
	return list.Items, err
}

// Reconcile makes one role of one cluster as its EtcdRole says.
func (r *RoleReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &api.EtcdRole{}
	if err := r.Client.Get(ctx, request.NamespacedName, e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next := *e.Status.DeepCopy()
	what, err := r.take(ctx, e, &next)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	case err != nil:
		return ctrl.Result{}, err
	case what.reason == "": // it is gone
		return ctrl.Result{}, nil
	}
	next.ObservedGeneration, next.Conditions = e.Generation, conditions(e.Status.Conditions, e.Generation, what)
	err = r.report(ctx, e, next)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	return ctrl.Result{RequeueAfter: what.after}, client.IgnoreNotFound(err)
}

// report writes the status where it is another one.
func (r *RoleReconciler) report(ctx context.Context, e *api.EtcdRole, next api.EtcdRoleStatus) error {
	if equality.Semantic.DeepEqual(e.Status, next) {
		return nil
	}
	desired := apiac.EtcdRole(e.Name, e.Namespace).WithResourceVersion(e.ResourceVersion)
	if err := apply.Status(ctx, r.Client, next, desired.WithStatus); err != nil {
		return err
	}
	e.Status, e.ResourceVersion = next, *desired.ResourceVersion
	return nil
}

// begin writes down that etcd may have something of the object from now on, which is deleted with
// it. What is known already is not written again.
func (r *RoleReconciler) begin(ctx context.Context, e *api.EtcdRole, next *api.EtcdRoleStatus) error {
	if next.Applied != nil {
		return nil
	}
	next.Applied = &api.Applied{}
	return r.report(ctx, e, *next.DeepCopy())
}

// take one look, and do what it shows. Nothing is said of what is gone.
func (r *RoleReconciler) take(ctx context.Context, e *api.EtcdRole, next *api.EtcdRoleStatus) (said, error) {
	c, err := r.cluster(ctx, e.Namespace, e.Spec.ClusterRef.Name)
	if err != nil {
		return said{}, err
	}
	taken, err := r.taken(ctx, e)
	switch {
	case err != nil:
		return said{}, err
	case !e.DeletionTimestamp.IsZero():
		return r.remove(ctx, e, c, taken == "" && e.Status.Applied != nil, func(etcd membership.Auth) error {
			return etcd.DeleteRole(ctx, e.EtcdName())
		})
	case c == nil:
		return r.missing(e, e.Spec.ClusterRef.Name), nil
	case taken != "":
		return said{stalled: true, reason: api.ReasonNameTaken, message: taken}, nil
	}
	if err := r.hold(ctx, e); err != nil {
		return said{}, err
	}
	etcd, what := r.connect(ctx, c)
	if etcd == nil {
		return rests(e.Status.Conditions, e.Generation, what), nil
	}
	what, err = r.settle(ctx, etcd, e, c, next)
	return what, errors.Join(err, etcd.Close())
}

// settle makes the role as it is wanted.
func (r *RoleReconciler) settle(ctx context.Context, etcd membership.Auth, e *api.EtcdRole, c *api.EtcdCluster, next *api.EtcdRoleStatus) (said, error) {
	name := e.EtcdName()
	has, err := etcd.Permissions(ctx, name)
	exists := !errors.Is(err, membership.ErrUnknown)
	if err != nil && exists {
		return r.failed(c, err)
	}
	acts := membership.PlanRole(name, permissions(e), has, exists)
	applied := api.Applied{Generation: e.Generation, ClusterID: c.Status.ClusterID}
	if len(acts) > 0 && e.Spec.Drift == api.DriftReport && e.Status.Applied != nil && *e.Status.Applied == applied {
		return drifted(acts, r.every()), nil
	}
	if len(acts) > 0 {
		if err := r.begin(ctx, e, next); err != nil {
			return said{}, err
		}
	}
	for _, act := range acts {
		if err := membership.Carry(ctx, etcd, act); err != nil {
			return r.failed(c, err)
		}
	}
	r.tell(e, acts)
	next.Applied = &applied
	return said{ready: true, reason: api.ReasonApplied, message: "etcd has the role " + name + " as the spec says", after: r.every()}, nil
}

// drifted is said where spec.drift is Report.
func drifted(acts []membership.AuthAct, after time.Duration) said {
	return said{stalled: true, reason: api.ReasonDrifted, after: after, message: "what etcd has differs from the spec, and is not reverted, because spec.drift is Report. Change the spec, or set spec.drift to Revert, which does this: " + told(acts)}
}

// taken says which other EtcdRole has the name; empty: none has.
func (r *RoleReconciler) taken(ctx context.Context, e *api.EtcdRole) (string, error) {
	all, err := r.all(ctx, e.Namespace, e.Spec.ClusterRef.Name)
	if err != nil {
		return "", fmt.Errorf("list EtcdRoles: %w", err)
	}
	for i := range all {
		other := &all[i]
		if other.UID != e.UID && other.EtcdName() == e.EtcdName() && other.DeletionTimestamp.IsZero() && (older(other, e) || !e.DeletionTimestamp.IsZero()) {
			return fmt.Sprintf("EtcdRole %[1]s, which is older, has the role %[2]s of the same cluster: delete this EtcdRole. Or delete EtcdRole %[1]s, and this one takes its role over", other.Name, e.EtcdName()), nil
		}
	}
	return "", nil
}

// permissions of the spec, as etcd writes them.
func permissions(e *api.EtcdRole) []membership.Permission {
	all := make([]membership.Permission, 0, len(e.Spec.Permissions))
	for _, p := range e.Spec.Permissions {
		access := membership.Access(p.Access)
		switch {
		case p.Key != nil:
			all = append(all, membership.Single(*p.Key, access))
		case p.Prefix != nil:
			all = append(all, membership.Prefixed(*p.Prefix, access))
		case p.From != nil && p.To != nil:
			all = append(all, membership.Between(*p.From, *p.To, access))
		case p.From != nil:
			all = append(all, membership.Between(*p.From, "", access))
		}
	}
	return membership.Joined(all)
}
