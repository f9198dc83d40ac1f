package membership

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DialAuth is the AuthDialer for real members.
func DialAuth(host string, port int, config *tls.Config) (Auth, error) {
	if config == nil {
		return asAuth(Dial(host, port))
	}
	return asAuth(DialTLS(host, port, config))
}

func asAuth(c Client, err error) (Auth, error) {
	if err != nil {
		return nil, err
	}
	return &authClient{c.(*client)}, nil
}

type authClient struct{ *client }

var _ Auth = (*authClient)(nil)

// denied are the answers behind ErrDenied. The first one is for a client that names no user, and
// the second one for a client whose user does not exist: to a request about no user it can be about
// nothing else.
var denied = []error{rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed}

// asDenied adds ErrDenied where etcd has refused the caller as a user.
func asDenied(err error) error {
	if slices.ContainsFunc(denied, func(target error) bool { return errors.Is(err, target) }) {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}

// auth makes one call, under CallTimeout. The errors in done say that it was made before. Where
// users were changed a moment ago, etcd refuses what was under way, which is ErrLater.
func (c *authClient) auth(ctx context.Context, what string, call func(context.Context) error, done ...error) error {
	err := c.change(ctx, what, call, done...)
	switch {
	case errors.Is(err, rpctypes.ErrRoleNotFound):
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case errors.Is(err, rpctypes.ErrAuthOldRevision):
		return fmt.Errorf("%w: %w", ErrLater, err)
	default:
		return err
	}
}

// aboutUser is auth for a call about a user, to which etcd may answer that there is no such user:
// the one that was asked for, or the caller. To list users etcd asks the same of the caller.
func (c *authClient) aboutUser(ctx context.Context, what string, call func(context.Context) error, done ...error) error {
	var answer error
	err := c.auth(ctx, what, func(ctx context.Context) error {
		answer = call(ctx)
		return answer
	}, done...)
	if !errors.Is(answer, rpctypes.ErrUserNotFound) {
		return err
	}
	if _, err := c.UserNames(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%s at etcd %s: %w: %w", what, c.address, ErrUnknown, answer)
}

func (c *authClient) Enabled(ctx context.Context) (enabled bool, _ error) {
	err := c.auth(ctx, "ask whether authentication is enabled", func(ctx context.Context) error {
		r, err := c.etcd.AuthStatus(ctx)
		enabled = err == nil && r.Enabled
		return err
	})
	return enabled, err
}

func (c *authClient) Enable(ctx context.Context) error {
	return c.auth(ctx, "enable authentication", func(ctx context.Context) error {
		_, err := c.etcd.AuthEnable(ctx)
		return err
	})
}

func (c *authClient) Disable(ctx context.Context) error {
	return c.auth(ctx, "disable authentication", func(ctx context.Context) error {
		_, err := c.etcd.AuthDisable(ctx)
		return err
	}, rpctypes.ErrAuthNotEnabled)
}

func (c *authClient) UserNames(ctx context.Context) (names []string, _ error) {
	err := c.auth(ctx, "list users", func(ctx context.Context) error {
		r, err := c.etcd.UserList(ctx)
		if err == nil {
			names = slices.Sorted(slices.Values(r.Users))
		}
		return err
	})
	return names, err
}

func (c *authClient) UserRoles(ctx context.Context, name string) (roles []string, _ error) {
	err := c.aboutUser(ctx, "get user "+name, func(ctx context.Context) error {
		r, err := c.etcd.UserGet(ctx, name)
		if err == nil {
			roles = slices.Sorted(slices.Values(r.Roles))
		}
		return err
	})
	return roles, err
}

func (c *authClient) AddUser(ctx context.Context, name, password string) error {
	return c.auth(ctx, "add user "+name, func(ctx context.Context) error {
		_, err := c.etcd.UserAddWithOptions(ctx, name, password, &clientv3.UserAddOptions{NoPassword: password == ""})
		return err
	}, rpctypes.ErrUserAlreadyExist)
}

func (c *authClient) SetPassword(ctx context.Context, name, password string) error {
	return c.aboutUser(ctx, "change the password of user "+name, func(ctx context.Context) error {
		_, err := c.etcd.UserChangePassword(ctx, name, password)
		return err
	})
}

func (c *authClient) DeleteUser(ctx context.Context, name string) error {
	err := c.aboutUser(ctx, "delete user "+name, func(ctx context.Context) error {
		_, err := c.etcd.UserDelete(ctx, name)
		return err
	})
	if errors.Is(err, ErrUnknown) { // it was deleted before
		return nil
	}
	return err
}

func (c *authClient) GrantRole(ctx context.Context, user, role string) error {
	return c.aboutUser(ctx, "grant role "+role+" to user "+user, func(ctx context.Context) error {
		_, err := c.etcd.UserGrantRole(ctx, user, role)
		return err
	})
}

func (c *authClient) RevokeRole(ctx context.Context, user, role string) error {
	return c.aboutUser(ctx, "revoke role "+role+" from user "+user, func(ctx context.Context) error {
		_, err := c.etcd.UserRevokeRole(ctx, user, role)
		return err
	}, rpctypes.ErrRoleNotGranted)
}

func (c *authClient) Permissions(ctx context.Context, role string) (permissions []Permission, _ error) {
	err := c.auth(ctx, "get role "+role, func(ctx context.Context) error {
		r, err := c.etcd.RoleGet(ctx, role)
		if err != nil {
			return err
		}
		for _, p := range r.Perm {
			permissions = append(permissions, Permission{Key: string(p.Key), End: string(p.RangeEnd), Access: accessOf(p.PermType)})
		}
		return nil
	})
	SortPermissions(permissions)
	return permissions, err
}

func (c *authClient) AddRole(ctx context.Context, name string) error {
	return c.auth(ctx, "add role "+name, func(ctx context.Context) error {
		_, err := c.etcd.RoleAdd(ctx, name)
		return err
	}, rpctypes.ErrRoleAlreadyExist)
}

func (c *authClient) DeleteRole(ctx context.Context, name string) error {
	return c.auth(ctx, "delete role "+name, func(ctx context.Context) error {
		_, err := c.etcd.RoleDelete(ctx, name)
		return err
	}, rpctypes.ErrRoleNotFound)
}

func (c *authClient) Grant(ctx context.Context, role string, p Permission) error {
	return c.auth(ctx, "grant a permission to role "+role, func(ctx context.Context) error {
		_, err := c.etcd.RoleGrantPermission(ctx, role, p.Key, p.End, permissionTypes[p.Access])
		return err
	})
}

func (c *authClient) Revoke(ctx context.Context, role string, p Permission) error {
	return c.auth(ctx, "revoke a permission from role "+role, func(ctx context.Context) error {
		_, err := c.etcd.RoleRevokePermission(ctx, role, p.Key, p.End)
		return err
	}, rpctypes.ErrPermissionNotGranted)
}

// permissionTypes are the kinds of access as etcd calls them.
var permissionTypes = map[Access]clientv3.PermissionType{
	AccessRead: clientv3.PermissionType(authpb.READ), AccessWrite: clientv3.PermissionType(authpb.WRITE), AccessReadWrite: clientv3.PermissionType(authpb.READWRITE),
}

func accessOf(t authpb.Permission_Type) Access {
	switch t {
	case authpb.READ:
		return AccessRead
	case authpb.WRITE:
		return AccessWrite
	default:
		return AccessReadWrite
	}
}

// SortPermissions brings permissions into the order of their ranges.
func SortPermissions(all []Permission) {
	slices.SortFunc(all, func(a, b Permission) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.End, b.End)) })
}
