package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/index"
)

// waits reports whether etcd is not to authenticate clients yet, because an EtcdRole or an EtcdUser
// is not applied: its client would be refused.
func (l *authLook) waits(ctx context.Context) (bool, error) {
	if l.c.HasAuth() {
		return false, nil
	}
	roles, users, err := l.r.usersOf(ctx, l.c)
	if err != nil {
		return true, err
	}
	waits := false
	for i := range roles {
		waits = l.waitsFor("EtcdRole", &roles[i], roles[i].Status.Conditions, roles[i].Status.Applied) || waits
	}
	for i := range users {
		waits = l.waitsFor("EtcdUser", &users[i], users[i].Status.Conditions, users[i].Status.Applied) || waits
	}
	return waits, nil
}

// waitsFor reports whether an object is not Ready, or is so in another etcd, such as that of before
// a restore. The first one is said, or one that waits for a person.
func (l *authLook) waitsFor(kind string, o client.Object, conditions []metav1.Condition, applied *api.Applied) bool {
	ready := meta.FindStatusCondition(conditions, api.ConditionReady)
	here := applied != nil && applied.ClusterID == l.c.Status.ClusterID
	switch {
	case !o.GetDeletionTimestamp().IsZero(), here && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == o.GetGeneration():
		return false
	case meta.IsStatusConditionTrue(conditions, api.ConditionStalled):
		l.say(membership.Stall, api.ReasonAuthBlocked, fmt.Sprintf("etcd does not authenticate clients yet, because %[1]s %[2]s is not Ready, and its users would be refused: do what the conditions of the %[1]s say, or delete the %[1]s", kind, o.GetName()))
	case l.found.said.Action == "":
		l.say(membership.Wait, api.ReasonEnablingAuth, fmt.Sprintf("waiting for %s %s to be Ready, before etcd authenticates clients", kind, o.GetName()))
	}
	return true
}

// usersOf are the EtcdRoles and EtcdUsers of a cluster, by name.
func (r *Reconciler) usersOf(ctx context.Context, c *api.EtcdCluster) ([]api.EtcdRole, []api.EtcdUser, error) {
	of := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingFields{index.OfCluster: c.Name}}
	roles, users := &api.EtcdRoleList{}, &api.EtcdUserList{}
	if err := r.Client.List(ctx, roles, of...); err != nil {
		return nil, nil, fmt.Errorf("list EtcdRoles: %w", err)
	}
	if err := r.Client.List(ctx, users, of...); err != nil {
		return nil, nil, fmt.Errorf("list EtcdUsers: %w", err)
	}
	slices.SortFunc(roles.Items, func(a, b api.EtcdRole) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(users.Items, func(a, b api.EtcdUser) int { return strings.Compare(a.Name, b.Name) })
	return roles.Items, users.Items, nil
}

// waitedFor are the clusters that wait for an EtcdRole or an EtcdUser before etcd authenticates
// clients.
func (r *Reconciler) waitedFor(ctx context.Context, o client.Object) []reconcile.Request {
	name := ""
	switch o := o.(type) {
	case *api.EtcdRole:
		name = o.Spec.ClusterRef.Name
	case *api.EtcdUser:
		name = o.Spec.ClusterRef.Name
	}
	c := &api.EtcdCluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, c); err != nil {
		if !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Error(err, "Could not get an EtcdCluster")
		}
		return nil
	}
	if !c.WantsAuth() || c.HasAuth() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(c)}}
}

// mostUnmanaged and mostUserName are what the schema of the status has room for.
const (
	mostUnmanaged = 32
	mostUserName  = 64
)

// unmanaged are the users in etcd that nothing in Kubernetes names.
func (l *authLook) unmanaged(ctx context.Context, etcd membership.Auth, own string) ([]string, error) {
	names, err := etcd.UserNames(ctx)
	if err != nil {
		return nil, err
	}
	_, users, err := l.r.usersOf(ctx, l.c)
	if err != nil {
		return nil, err
	}
	managed := []string{own, membership.RootName}
	for i := range users {
		managed = append(managed, users[i].EtcdName())
	}
	names = slices.DeleteFunc(names, func(name string) bool { return len(name) > mostUserName || slices.Contains(managed, name) })
	if len(names) == 0 {
		return nil, nil
	}
	return names[:min(len(names), mostUnmanaged)], nil
}

// withAccess is the step that the status reports: what there is to say of etcd's users in place of
// the step of a healthy cluster, and that etcd denies access in place of any step.
func withAccess(seen observed, step membership.Step) membership.Step {
	if seen.access == nil || seen.access.said.Action == "" {
		return step
	}
	if isHealthy(step) || seen.access.said.Reason == membership.Reason(api.ReasonAccessDenied) {
		return seen.access.said
	}
	return step
}
