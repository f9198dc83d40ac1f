package membership

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AuthVerb is what an act does with users, roles or authentication.
type AuthVerb string

// The verbs.
const (
	AddUser     AuthVerb = "add user"
	DeleteUser  AuthVerb = "delete user"
	SetPassword AuthVerb = "change the password of user"
	GrantRole   AuthVerb = "grant to user"
	RevokeRole  AuthVerb = "revoke from user"
	AddRole     AuthVerb = "add role"
	Grant       AuthVerb = "grant to role"
	Revoke      AuthVerb = "revoke from role"
	EnableAuth  AuthVerb = "enable authentication"
	DisableAuth AuthVerb = "disable authentication"
)

// AuthAct is one change of users, roles or authentication.
type AuthAct struct {
	Verb AuthVerb
	// Name is that of the user, or of the role.
	Name string
	// Role is what is granted to a user or revoked.
	Role string
	// Permission is what is granted to a role or revoked.
	Permission Permission
	// Password is that of a user; empty: without one.
	Password string
}

// String says what an act does, without the password.
func (a AuthAct) String() string {
	switch a.Verb {
	case GrantRole, RevokeRole:
		return fmt.Sprintf("%s %s: role %s", a.Verb, a.Name, a.Role)
	case Grant, Revoke:
		return fmt.Sprintf("%s %s: %s", a.Verb, a.Name, a.Permission)
	default:
		return strings.TrimSpace(string(a.Verb) + " " + a.Name)
	}
}

// JoinActs says what acts do, in one line.
func JoinActs(acts []AuthAct) string {
	texts := make([]string, 0, len(acts))
	for _, act := range acts {
		texts = append(texts, act.String())
	}
	return strings.Join(texts, ", ")
}

// Carry makes one change.
func Carry(ctx context.Context, etcd Auth, a AuthAct) error {
	switch a.Verb {
	case AddUser:
		return etcd.AddUser(ctx, a.Name, a.Password)
	case DeleteUser:
		return etcd.DeleteUser(ctx, a.Name)
	case SetPassword:
		return etcd.SetPassword(ctx, a.Name, a.Password)
	case GrantRole:
		return etcd.GrantRole(ctx, a.Name, a.Role)
	case RevokeRole:
		return etcd.RevokeRole(ctx, a.Name, a.Role)
	case AddRole:
		return etcd.AddRole(ctx, a.Name)
	case Grant:
		return etcd.Grant(ctx, a.Name, a.Permission)
	case Revoke:
		return etcd.Revoke(ctx, a.Name, a.Permission)
	case EnableAuth:
		return etcd.Enable(ctx)
	case DisableAuth:
		return etcd.Disable(ctx)
	default:
		return fmt.Errorf("%q changes nothing", a.Verb)
	}
}

// WantedAuth is what is wanted of authentication.
type WantedAuth struct {
	Enabled bool
	// Ready: nothing is waited for any more before it is enabled.
	Ready bool
	// Own is the operator's own user.
	Own string
	// RootPassword is given to root where that is added, and where SetRoot says so.
	RootPassword string
	SetRoot      bool
}

// ObservedAuth is what etcd has.
type ObservedAuth struct {
	Enabled bool
	// Users are the roles of root and of the operator's own user, where these exist.
	Users map[string][]string
}

// PlanAuth decides what is to be done, in this order.
//
// It enables authentication last, and after it has added both users again: what they were before
// may have a password, or none, and cannot be seen. While authentication is enabled neither of them
// is deleted, nor loses the role root. It disables authentication first, and leaves users and roles
// as they are.
func PlanAuth(w WantedAuth, o ObservedAuth) []AuthAct {
	switch {
	case !w.Enabled && o.Enabled:
		return []AuthAct{{Verb: DisableAuth}}
	case !w.Enabled, !o.Enabled && !w.Ready:
		return nil
	}
	var acts []AuthAct
	users := []AuthAct{{Verb: AddUser, Name: w.Own}, {Verb: AddUser, Name: RootName, Password: w.RootPassword}}
	if w.Own == RootName {
		users = users[1:]
	}
	for _, add := range users {
		roles, exists := o.Users[add.Name]
		if exists && !o.Enabled {
			acts = append(acts, AuthAct{Verb: DeleteUser, Name: add.Name})
			roles, exists = nil, false
		}
		switch {
		case !exists:
			acts = append(acts, add)
		case add.Name == RootName && w.SetRoot:
			acts = append(acts, AuthAct{Verb: SetPassword, Name: RootName, Password: w.RootPassword})
		}
		if !slices.Contains(roles, RootName) {
			acts = append(acts, AuthAct{Verb: GrantRole, Name: add.Name, Role: RootName})
		}
	}
	if !o.Enabled {
		acts = append(acts, AuthAct{Verb: EnableAuth})
	}
	return acts
}

// PlanRole decides how a role gets the permissions that are wanted. What it keeps it has
// throughout: it is given the new ones first.
//
// To grant a permission replaces the one for the same range only where etcd finds that one first
// among those with its key. Else etcd adds another one, and the role may do what both allow. So
// where there are several of one key, those for the range are revoked before one is granted.
func PlanRole(name string, want, has []Permission, exists bool) []AuthAct {
	var acts []AuthAct
	if !exists {
		acts = append(acts, AuthAct{Verb: AddRole, Name: name})
	}
	all := slices.Concat(want, has)
	for _, p := range want {
		differs := slices.ContainsFunc(has, func(h Permission) bool { return h.sameRange(p) && h != p })
		if !differs && slices.Contains(has, p) {
			continue
		}
		if differs && (slices.Contains(has, p) || slices.ContainsFunc(all, func(o Permission) bool { return o.Key == p.Key && o.End != p.End })) {
			acts = append(acts, AuthAct{Verb: Revoke, Name: name, Permission: p})
		}
		acts = append(acts, AuthAct{Verb: Grant, Name: name, Permission: p})
	}
	for _, p := range has {
		if !slices.ContainsFunc(want, p.sameRange) {
			acts = append(acts, AuthAct{Verb: Revoke, Name: name, Permission: p})
		}
	}
	return acts
}

// WantedUser is what is wanted of a user.
type WantedUser struct {
	Name  string
	Roles []string
	// Password is empty for a user without one.
	Password string
	// Recreate: what is there is not known to be ours. It may have a password that others know, or
	// none, and is deleted first.
	Recreate bool
	// SetPassword: the password is not known to be the one that etcd has.
	SetPassword bool
}

// PlanUser decides how a user gets the roles and the password that are wanted.
func PlanUser(w WantedUser, has []string, exists bool) []AuthAct {
	var acts []AuthAct
	if exists && w.Recreate {
		acts = append(acts, AuthAct{Verb: DeleteUser, Name: w.Name})
		has, exists = nil, false
	}
	switch {
	case !exists:
		acts = append(acts, AuthAct{Verb: AddUser, Name: w.Name, Password: w.Password})
	case w.SetPassword && w.Password != "":
		acts = append(acts, AuthAct{Verb: SetPassword, Name: w.Name, Password: w.Password})
	}
	for _, role := range w.Roles {
		if !slices.Contains(has, role) {
			acts = append(acts, AuthAct{Verb: GrantRole, Name: w.Name, Role: role})
		}
	}
	for _, role := range has {
		if !slices.Contains(w.Roles, role) {
			acts = append(acts, AuthAct{Verb: RevokeRole, Name: w.Name, Role: role})
		}
	}
	return acts
}

func (p Permission) sameRange(other Permission) bool { return p.Key == other.Key && p.End == other.End }

// toEnd is the End of a range that has no end.
const toEnd = "\x00"

// Single is a permission for one key.
func Single(key string, access Access) Permission { return Permission{Key: key, Access: access} }

// Between is a permission for the keys from one to another, which is not among them; an empty one:
// for all keys from the first one on.
func Between(from, to string, access Access) Permission {
	if to == "" {
		to = toEnd
	}
	return Permission{Key: from, End: to, Access: access}
}

// Prefixed is a permission for all keys with a prefix.
func Prefixed(prefix string, access Access) Permission {
	if prefix == "" {
		return Permission{Key: toEnd, End: toEnd, Access: access}
	}
	return Permission{Key: prefix, End: prefixEnd(prefix), Access: access}
}

// prefixEnd is the first key after those with a prefix.
func prefixEnd(prefix string) string {
	end := []byte(prefix)
	for n := len(end) - 1; n >= 0; n-- {
		if end[n] < 0xff {
			end[n]++
			return string(end[:n+1])
		}
	}
	return toEnd
}

// Joined are permissions for different ranges: of two for the same one, both hold.
func Joined(all []Permission) []Permission {
	var joined []Permission
	for _, p := range all {
		n := slices.IndexFunc(joined, p.sameRange)
		switch {
		case n < 0:
			joined = append(joined, p)
		case joined[n].Access != p.Access:
			joined[n].Access = AccessReadWrite
		}
	}
	SortPermissions(joined)
	return joined
}

// String says which keys, and what may be done with them.
func (p Permission) String() string {
	key, end := strconv.QuoteToASCII(p.Key), strconv.QuoteToASCII(p.End)
	switch {
	case p.End == "":
		return fmt.Sprintf("%s of key %s", p.Access, key)
	case p.Key == toEnd && p.End == toEnd:
		return fmt.Sprintf("%s of all keys", p.Access)
	case p.End == toEnd:
		return fmt.Sprintf("%s of the keys from %s on", p.Access, key)
	case p.End == prefixEnd(p.Key):
		return fmt.Sprintf("%s of the keys with prefix %s", p.Access, key)
	default:
		return fmt.Sprintf("%s of the keys from %s to %s", p.Access, key, end)
	}
}
