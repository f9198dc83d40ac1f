package users

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/index"
)

// etcd is an etcd with users and roles. It refuses the act of one verb.
type etcd struct {
	membership.Auth
	users   map[string][]string // their roles
	roles   map[string][]membership.Permission
	refuses membership.AuthVerb
}

var errRefused = errors.New("refused")

func (f *etcd) take(verb membership.AuthVerb, do func()) error {
	if verb == f.refuses {
		return errRefused
	}
	do()
	return nil
}

func (f *etcd) Close() error { return nil }

func (f *etcd) UserRoles(_ context.Context, name string) ([]string, error) {
	roles, ok := f.users[name]
	if !ok {
		return nil, membership.ErrUnknown
	}
	return roles, nil
}

func (f *etcd) AddUser(_ context.Context, name, _ string) error {
	return f.take(membership.AddUser, func() { f.users[name] = []string{} })
}

func (f *etcd) DeleteUser(_ context.Context, name string) error {
	return f.take(membership.DeleteUser, func() { delete(f.users, name) })
}

func (f *etcd) GrantRole(_ context.Context, user, role string) error {
	return f.take(membership.GrantRole, func() { f.users[user] = append(f.users[user], role) })
}

func (f *etcd) RevokeRole(_ context.Context, user, role string) error {
	return f.take(membership.RevokeRole, func() {
		f.users[user] = slices.DeleteFunc(f.users[user], func(has string) bool { return has == role })
	})
}

func (f *etcd) Permissions(_ context.Context, role string) ([]membership.Permission, error) {
	permissions, ok := f.roles[role]
	if !ok {
		return nil, membership.ErrUnknown
	}
	return permissions, nil
}

func (f *etcd) AddRole(_ context.Context, name string) error {
	return f.take(membership.AddRole, func() { f.roles[name] = nil })
}

func (f *etcd) DeleteRole(_ context.Context, name string) error {
	delete(f.roles, name)
	return nil
}

func (f *etcd) Grant(_ context.Context, role string, p membership.Permission) error {
	return f.take(membership.Grant, func() { f.roles[role] = append(f.roles[role], p) })
}

// newShared is what reconcilers share over an API server that has these objects, and an available
// cluster db with that etcd. wrong is why no password can be used.
func newShared(t *testing.T, f *etcd, wrong string, objects ...client.Object) Shared {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	db := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}
	db.Status.ClusterID = "c0"
	db.Status.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionTrue}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, db)...).WithStatusSubresource(&api.EtcdRole{}, &api.EtcdUser{})
	for o, by := range index.Kinds() {
		if _, _, err := scheme.ObjectKinds(o); err == nil {
			builder.WithIndex(o, index.OfCluster, by)
		}
	}
	c := builder.Build()
	return Shared{
		Client: c, Reader: c, Recorder: events.NewFakeRecorder(100), StallAfter: time.Minute,
		Grant:   func(*api.EtcdCluster) string { return "kubectl create role" },
		Connect: func(context.Context, *api.EtcdCluster) (membership.Auth, error) { return f, nil },
		Password: func(context.Context, client.Reader, string, string) (string, string, string, error) {
			return "", "", wrong, nil
		},
	}
}

func newUser(roles ...api.EtcdName) *api.EtcdUser {
	u := &api.EtcdUser{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "ns", UID: "u", Generation: 2}}
	u.Spec.ClusterRef.Name, u.Spec.Roles = "db", roles
	return u
}

func newRole(permissions ...api.Permission) *api.EtcdRole {
	r := &api.EtcdRole{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "ns", UID: "r", Generation: 2}}
	r.Spec.ClusterRef.Name, r.Spec.Permissions = "db", permissions
	return r
}

func requestOf(o client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// TestPartly: of what was begun in etcd nothing stays where the object is deleted before etcd had
// all of it.
func TestPartly(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		object client.Object
		with   func(Shared) reconcile.Reconciler
		after  membership.AuthVerb // which etcd refuses
	}{
		"User": {reason: "it has a password by then", object: newUser("a"), with: func(s Shared) reconcile.Reconciler { return &UserReconciler{s} }, after: membership.GrantRole},
		"Role": {reason: "it may have some permissions by then", object: newRole(api.Permission{Access: api.AccessRead, Prefix: new("")}), with: func(s Shared) reconcile.Reconciler { return &RoleReconciler{s} }, after: membership.Grant},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &etcd{users: map[string][]string{}, roles: map[string][]membership.Permission{}, refuses: tc.after}
			s := newShared(t, f, "", tc.object)
			r := tc.with(s)
			if _, err := r.Reconcile(t.Context(), requestOf(tc.object)); !errors.Is(err, errRefused) {
				t.Fatalf("etcd refuses to %s: %v", tc.after, err)
			}
			if len(f.users)+len(f.roles) != 1 {
				t.Fatalf("nothing was begun: users %v, roles %v", f.users, f.roles)
			}
			if err := s.Client.Delete(t.Context(), tc.object); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), requestOf(tc.object)); err != nil {
				t.Fatal(err)
			}
			if len(f.users)+len(f.roles) != 0 {
				t.Errorf("%s: users %v and roles %v stay", tc.reason, f.users, f.roles)
			}
		})
	}
}

// TestBadPassword: while the password of a user cannot be used, its roles are still those of the
// spec. A user that is not known to be this one is left as it is.
func TestBadPassword(t *testing.T) {
	t.Parallel()
	ours := &api.Applied{Generation: 1, ClusterID: "c0"}
	type users = map[string][]string
	cases := map[string]struct {
		reason  string
		has     users
		applied *api.Applied
		want    users
	}{
		"Shrinks":  {reason: "what the spec does not name any more is revoked", has: users{"app": {"a", "b"}}, applied: ours, want: users{"app": {"a"}}},
		"Gone":     {reason: "there is no password to add it with", has: users{}, applied: ours, want: users{}},
		"Restored": {reason: "it may have another password", has: users{"app": {"b"}}, applied: &api.Applied{Generation: 1, ClusterID: "before"}, want: users{"app": {"b"}}},
		"Found":    {reason: "others have made it", has: users{"app": {"b"}}, want: users{"app": {"b"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser("a")
			u.Spec.PasswordSecretRef = &api.SecretReference{Name: "gone"}
			u.Status.Applied, u.Status.Password = tc.applied, "u/1"
			f := &etcd{users: tc.has}
			s := newShared(t, f, "Secret gone does not exist", u)
			if _, err := (&UserReconciler{s}).Reconcile(t.Context(), requestOf(u)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, f.users); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(u.Status.Conditions, api.ConditionReady)
			if ready == nil || ready.Reason != api.ReasonPasswordInvalid || ready.Status != metav1.ConditionFalse || u.Status.Password != "u/1" {
				t.Errorf("%s: the status is %+v", tc.reason, u.Status)
			}
		})
	}
}

// TestMatters: roles and users are looked at after each change of their cluster that decides what
// becomes of them.
func TestMatters(t *testing.T) {
	t.Parallel()
	mode := func(mode api.TLSMode) func(*api.EtcdCluster) {
		return func(c *api.EtcdCluster) {
			c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: mode}}
		}
	}
	cases := map[string]struct {
		reason      string
		before, now func(*api.EtcdCluster)
		want        bool
	}{
		"Leader": {reason: "it decides nothing", before: mode(api.TLSManaged), now: func(c *api.EtcdCluster) { mode(api.TLSManaged)(c); c.Status.Leader = "db-1" }},
		"TLS":    {reason: "without TLS they are stalled", before: mode(api.TLSDisabled), now: mode(api.TLSManaged), want: true},
		"Rotates": {
			reason: "their certificates are to come with trust in another authority", before: mode(api.TLSManaged), want: true,
			now: func(c *api.EtcdCluster) { mode(api.TLSManaged)(c); c.Status.TLS.Client.Trusts = []string{"a", "b"} },
		},
		"Restored": {reason: "etcd may have none of them", before: mode(api.TLSManaged), now: func(c *api.EtcdCluster) { mode(api.TLSManaged)(c); c.Status.ClusterID = "c1" }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, now := &api.EtcdCluster{}, &api.EtcdCluster{}
			tc.before(before)
			tc.now(now)
			if got := matters.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now}); got != tc.want {
				t.Errorf("%s: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
