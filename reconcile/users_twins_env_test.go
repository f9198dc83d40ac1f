//go:build env

package reconcile_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestUsersTwins: of two objects with one name in etcd the older one has it. Once that is deleted,
// the other one has it, and nothing of the older one stays.
func TestUsersTwins(t *testing.T) {
	s := newStage(t)
	s.peopled, s.version = true, etcd36
	s.operate()
	c := s.cluster("db", 1)
	s.secure(c)
	s.create(c)
	s.ready(c)
	first, second := s.role(c, "one", api.Permission{Access: api.AccessReadWrite, Prefix: new("/one/")}), s.role(c, "two", api.Permission{Access: api.AccessRead, Prefix: new("/two/")})
	first.Spec.Name, second.Spec.Name = "shared", "shared"
	one, two := s.user(c, "one", "shared"), s.user(c, "two")
	one.Spec.Name, two.Spec.Name = "shared", "shared"
	for _, o := range []client.Object{first, one} {
		s.create(o)
		s.applied(o)
	}
	for _, o := range []client.Object{second, two} {
		s.create(o)
		s.saysOf(o, true, api.ReasonNameTaken)
	}
	for _, o := range []client.Object{first, one} {
		s.must(s.Delete(t.Context(), o))
		s.gone(o)
	}
	s.applied(second)
	s.applied(two)
	s.asQuorate(c, func(ctx context.Context, etcd *clientv3.Client) error {
		user, err := etcd.UserGet(ctx, "shared")
		if err != nil {
			return err
		}
		role, err := etcd.RoleGet(ctx, "shared")
		if err != nil {
			return err
		}
		if len(user.Roles) != 0 || len(role.Perm) != 1 || string(role.Perm[0].Key) != "/two/" {
			t.Errorf("something of the older objects stays: roles %v, permissions %v", user.Roles, role.Perm)
		}
		return nil
	})
}

// TestUsersWithoutTLS: roles and users of a cluster that has lost its TLS for clients can still be
// deleted, and nothing of them is there once it has TLS again. Those that could not be applied
// meanwhile are then.
func TestUsersWithoutTLS(t *testing.T) {
	s := newStage(t)
	s.peopled, s.version = true, etcd36
	s.operate()
	c := s.cluster("db", 1)
	s.secure(c)
	s.create(c)
	s.ready(c)
	role, user, late := s.role(c, "app", api.Permission{Access: api.AccessRead, Prefix: new("")}), s.user(c, "app", "app"), s.user(c, "late")
	for _, o := range []client.Object{role, user} {
		s.create(o)
		s.applied(o)
	}
	s.switches(c, api.ClientTLS{Mode: api.TLSDisabled})
	s.create(late)
	s.saysOf(late, true, api.ReasonInvalidSpec, "has no TLS for clients")
	for _, o := range []client.Object{user, role} {
		s.must(s.Delete(t.Context(), o))
		s.gone(o)
	}
	s.switches(c, api.ClientTLS{Mode: api.TLSManaged})
	s.applied(late)
	s.asQuorate(c, func(ctx context.Context, etcd *clientv3.Client) error {
		users, err := etcd.UserList(ctx)
		if err != nil {
			return err
		}
		roles, err := etcd.RoleList(ctx)
		if err != nil {
			return err
		}
		if len(users.Users) != 1 || users.Users[0] != "late" || len(roles.Roles) != 0 {
			t.Errorf("what was deleted stays: users %v, roles %v", users.Users, roles.Roles)
		}
		return nil
	})
}
