package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// UserReconciler makes EtcdUsers true.
type UserReconciler struct{ Shared }

// SetupWithManager registers the reconciler. The manager's cache has the indexes of package index.
func (r *UserReconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.EtcdUser{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&api.EtcdUser{}, handler.EnqueueRequestsFromMapFunc(r.twins), builder.WithPredicates(goes)).
		Watches(&api.EtcdCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(matters)).
		Watches(&api.EtcdRole{}, handler.EnqueueRequestsFromMapFunc(r.withRole)).
		WithOptions(options(workers)).
		Named("etcduser").
		Complete(r)
}

// ofCluster are the EtcdUsers of a cluster.
func (r *UserReconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.requests(ctx, cluster.GetNamespace(), cluster.GetName(), func(*api.EtcdUser) bool { return true })
}

// withRole are the EtcdUsers that wait for a role, or lose it.
func (r *UserReconciler) withRole(ctx context.Context, o client.Object) []reconcile.Request {
	role, _ := o.(*api.EtcdRole)
	return r.requests(ctx, role.Namespace, role.Spec.ClusterRef.Name, func(e *api.EtcdUser) bool {
		return slices.Contains(e.Spec.Roles, api.EtcdName(role.EtcdName())) &&
			(!role.DeletionTimestamp.IsZero() || !meta.IsStatusConditionTrue(e.Status.Conditions, api.ConditionReady))
	})
}

// twins are the other EtcdUsers for the same user.
func (r *UserReconciler) twins(ctx context.Context, o client.Object) []reconcile.Request {
	user, _ := o.(*api.EtcdUser)
	return r.requests(ctx, user.Namespace, user.Spec.ClusterRef.Name, func(e *api.EtcdUser) bool {
		return e.UID != user.UID && e.EtcdName() == user.EtcdName()
	})
}

func (r *UserReconciler) requests(ctx context.Context, namespace, cluster string, concerns func(*api.EtcdUser) bool) []reconcile.Request {
	all, err := r.all(ctx, namespace, cluster)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list EtcdUsers")
	}
	var requests []reconcile.Request
	for i := range all {
		if concerns(&all[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	return requests
}

func (r *UserReconciler) all(ctx context.Context, namespace, cluster string) ([]api.EtcdUser, error) {
	list := &api.EtcdUserList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index.OfCluster: cluster})
	return list.Items, err
}

// Reconcile makes one user of one cluster as its EtcdUser says.
func (r *UserReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &api.EtcdUser{}
	if err := r.Client.Get(ctx, request.NamespacedName, e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next := *e.Status.DeepCopy()
	what, err := r.take(ctx, e, &next)
	switch {
	case apierrors.IsConflict(err), errors.Is(err, apply.ErrChanged):
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
func (r *UserReconciler) report(ctx context.Context, e *api.EtcdUser, next api.EtcdUserStatus) error {
	if equality.Semantic.DeepEqual(e.Status, next) {
		return nil
	}
	desired := apiac.EtcdUser(e.Name, e.Namespace).WithResourceVersion(e.ResourceVersion)
	if err := apply.Status(ctx, r.Client, next, desired.WithStatus); err != nil {
		return err
	}
	e.Status, e.ResourceVersion = next, *desired.ResourceVersion
	return nil
}

// begin writes down that etcd may have something of the object from now on, which is deleted with
// it. What is known already is not written again.
func (r *UserReconciler) begin(ctx context.Context, e *api.EtcdUser, next *api.EtcdUserStatus) error {
	if next.Applied != nil {
		return nil
	}
	next.Applied = &api.Applied{}
	return r.report(ctx, e, *next.DeepCopy())
}

// take one look, and do what it shows. Nothing is said of what is gone.
func (r *UserReconciler) take(ctx context.Context, e *api.EtcdUser, next *api.EtcdUserStatus) (said, error) {
	c, err := r.cluster(ctx, e.Namespace, e.Spec.ClusterRef.Name)
	if err != nil {
		return said{}, err
	}
	taken, err := r.taken(ctx, e, c)
	switch {
	case err != nil:
		return said{}, err
	case !e.DeletionTimestamp.IsZero():
		return r.remove(ctx, e, c, taken == "" && e.Status.Applied != nil, func(etcd membership.Auth) error {
			return etcd.DeleteUser(ctx, e.EtcdName())
		})
	case c == nil:
		return r.missing(e, e.Spec.ClusterRef.Name), nil
	case taken != "":
		return said{stalled: true, reason: api.ReasonNameTaken, message: taken}, nil
	}
	var s secret
	if ref := e.Spec.PasswordSecretRef; ref != nil {
		if s.password, s.version, s.wrong, err = r.Password(ctx, r.Reader, e.Namespace, ref.Name); err != nil {
			return said{}, errors.Join(err, r.certifyDespite(ctx, e, c))
		}
	}
	if err := r.hold(ctx, e); err != nil {
		return said{}, err
	}
	etcd, what := r.connect(ctx, c)
	switch {
	case etcd == nil && s.wrong != "":
		what = r.unusable(s)
	case etcd == nil:
		what = rests(e.Status.Conditions, e.Generation, what)
	default:
		what, err = r.settle(ctx, etcd, e, c, next, s)
		if err = errors.Join(err, etcd.Close()); err != nil {
			return said{}, errors.Join(err, r.certifyDespite(ctx, e, c))
		}
	}
	return r.certify(ctx, e, c, next, what), nil
}

// certifyDespite looks after the certificate of a user where the rest of the look has failed:
// neither the certificate nor a rotation of the authority waits until etcd takes the user, or its
// password can be read.
func (r *UserReconciler) certifyDespite(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster) error {
	now := *e.Status.DeepCopy()
	if what := r.certify(ctx, e, c, &now, said{}); what.reason != "" {
		now.ObservedGeneration, now.Conditions = e.Generation, conditions(e.Status.Conditions, e.Generation, what)
	}
	return r.report(ctx, e, now)
}

// secret is a password, which one that is, and why it cannot be used.
type secret struct{ password, version, wrong string }

// unusable is what is said where the password cannot be used.
func (s Shared) unusable(of secret) said {
	return said{stalled: true, reason: api.ReasonPasswordInvalid, message: "spec.passwordSecretRef: " + of.wrong + ". If etcd has a password for this user already, that stays valid", after: s.soon()}
}

// settle makes the user as it is wanted.
func (r *UserReconciler) settle(ctx context.Context, etcd membership.Auth, e *api.EtcdUser, c *api.EtcdCluster, next *api.EtcdUserStatus, s secret) (said, error) {
	name := e.EtcdName()
	has, err := etcd.UserRoles(ctx, name)
	exists := !errors.Is(err, membership.ErrUnknown)
	if err != nil && exists {
		return r.failed(c, err)
	}
	applied := api.Applied{Generation: e.Generation, ClusterID: c.Status.ClusterID}
	before, err := r.before(ctx, e, c)
	if err != nil {
		return said{}, err
	}
	wanted := membership.WantedUser{
		Name: name, Password: s.password, SetPassword: e.Status.Password != s.version,
		Recreate: before == nil || before.ClusterID != applied.ClusterID,
	}
	for _, role := range e.Spec.Roles {
		wanted.Roles = append(wanted.Roles, string(role))
	}
	if s.wrong != "" {
		if !exists || wanted.Recreate { // there is no password to add it with
			return r.unusable(s), nil
		}
		wanted.SetPassword, s.version = false, e.Status.Password // its roles are as the spec says all the same
	}
	acts := membership.PlanUser(wanted, has, exists)
	if len(acts) > 0 && e.Spec.Drift == api.DriftReport && before != nil && *before == applied && !wanted.SetPassword {
		return drifted(acts, r.every()), nil
	}
	if len(acts) > 0 {
		if err := r.begin(ctx, e, next); err != nil {
			return said{}, err
		}
	}
	var unknown []string
	done := make([]membership.AuthAct, 0, len(acts))
	for _, act := range acts {
		err := membership.Carry(ctx, etcd, act)
		switch {
		case act.Verb == membership.GrantRole && errors.Is(err, membership.ErrUnknown):
			unknown = append(unknown, act.Role)
			continue
		case err != nil:
			return r.failed(c, err)
		}
		done = append(done, act)
	}
	r.tell(e, done)
	next.Applied, next.Password = &applied, s.version
	switch {
	case s.wrong != "":
		return r.unusable(s), nil
	case len(unknown) > 0:
		// That a role is not granted yet is no drift. The watch of EtcdRoles tells when it can be,
		// but for roles that others add.
		applied.Generation = 0
		return said{reason: api.ReasonRoleNotFound, message: "etcd has no role " + strings.Join(unknown, " and no role ") + ": apply an EtcdRole for each missing name, or correct spec.roles. The user has its other roles", after: r.soon()}, nil
	}
	return said{ready: true, reason: api.ReasonApplied, message: "etcd has the user " + name + " as the spec says", after: r.every()}, nil
}

// before is which spec etcd was given last. A user that is not known to be ours is deleted first,
// and that is not done on the word of the cache alone.
func (r *UserReconciler) before(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster) (*api.Applied, error) {
	if e.Status.Applied != nil && e.Status.Applied.ClusterID == c.Status.ClusterID {
		return e.Status.Applied, nil
	}
	live := &api.EtcdUser{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(e), live); err != nil {
		return nil, fmt.Errorf("look at the EtcdUser again: %w", err)
	}
	if live.UID != e.UID || live.Generation != e.Generation {
		return nil, apply.ErrChanged
	}
	return live.Status.Applied, nil
}

// taken says what else has the name; empty: nothing has.
func (r *UserReconciler) taken(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster) (string, error) {
	if c != nil && c.Status.Auth != nil && c.Status.Auth.User == e.EtcdName() {
		return fmt.Sprintf("%s is Quorate's own user in etcd (status.auth.user of EtcdCluster %s): delete this EtcdUser, and apply one with another name", e.EtcdName(), c.Name), nil
	}
	all, err := r.all(ctx, e.Namespace, e.Spec.ClusterRef.Name)
	if err != nil {
		return "", fmt.Errorf("list EtcdUsers: %w", err)
	}
	for i := range all {
		other := &all[i]
		if other.UID != e.UID && other.EtcdName() == e.EtcdName() && other.DeletionTimestamp.IsZero() && (older(other, e) || !e.DeletionTimestamp.IsZero()) {
			return fmt.Sprintf("EtcdUser %[1]s, which is older, has the user %[2]s of the same cluster: delete this EtcdUser. Or delete EtcdUser %[1]s, and this one replaces its user", other.Name, e.EtcdName()), nil
		}
	}
	return "", nil
}
