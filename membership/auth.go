package membership

import (
	"context"
	"crypto/tls"
	"errors"
)

// RootName is the user, and the role, that etcd itself knows: the role may do everything, and
// etcd enables authentication only where the user has the role.
const RootName = "root"

// ErrDenied says that etcd knows the caller as no user with the role root. Only such a user may
// ask for the members, or change anything but keys, while authentication is enabled.
var ErrDenied = errors.New("etcd denies access")

// ErrUnknown says that etcd has no such user or role.
var ErrUnknown = errors.New("etcd does not have it")

// Auth are the users and roles of etcd. Every call has CallTimeout. It goes through etcd's log and
// needs a quorum, also where it only reads. What had been done already is no error.
type Auth interface {
	Switch
	Users
	Grants
	Roles
	Close() error
}

// Switch turns authentication on and off.
type Switch interface {
	// Enabled reports whether etcd authenticates clients. Before 3.7 etcd denies that as well.
	Enabled(ctx context.Context) (bool, error)
	// Enable has etcd authenticate clients. The user root must have the role root.
	Enable(ctx context.Context) error
	// Disable has etcd serve each client that connects. Users and roles stay.
	Disable(ctx context.Context) error
}

// Users are the names under which clients may connect while authentication is enabled.
type Users interface {
	UserNames
	// AddUser adds a user, without a password where that is empty: such a user is the common name
	// of a client certificate.
	AddUser(ctx context.Context, name, password string) error
	// SetPassword changes the password of a user that was added with one.
	SetPassword(ctx context.Context, name, password string) error
	// DeleteUser removes a user.
	DeleteUser(ctx context.Context, name string) error
}

// Grants change which roles a user has.
type Grants interface {
	GrantRole(ctx context.Context, user, role string) error
	RevokeRole(ctx context.Context, user, role string) error
}

// UserNames tells of users.
type UserNames interface {
	// UserNames are those of all users, sorted.
	UserNames(ctx context.Context) ([]string, error)
	// UserRoles are the roles of a user, sorted; ErrUnknown where there is no such user.
	UserRoles(ctx context.Context, name string) ([]string, error)
}

// Roles are what users may do.
type Roles interface {
	// Permissions are those of a role, sorted; ErrUnknown where there is no such role.
	Permissions(ctx context.Context, role string) ([]Permission, error)
	// AddRole adds a role without permissions.
	AddRole(ctx context.Context, name string) error
	// DeleteRole removes a role, also from its users.
	DeleteRole(ctx context.Context, name string) error
	// Grant gives a role a permission, in place of the one that it has for the same range.
	Grant(ctx context.Context, role string, p Permission) error
	// Revoke takes the permission for a range from a role.
	Revoke(ctx context.Context, role string, p Permission) error
}

// Access is what a permission allows with the keys of its range.
type Access string

// The kinds of access.
const (
	AccessRead      Access = "Read"
	AccessWrite     Access = "Write"
	AccessReadWrite Access = "ReadWrite"
)

// Permission is access to a range of keys, as etcd writes it: from Key up to End, without End. An
// empty End means Key alone, and "\x00" all keys from Key on.
type Permission struct {
	Key, End string
	Access   Access
}

// AuthDialer makes an Auth of one member with TLS, as SecureDialer makes a Client. A nil
// configuration is for a member without TLS.
type AuthDialer func(host string, port int, config *tls.Config) (Auth, error)
