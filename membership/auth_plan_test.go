package membership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlanAuth: whatever etcd has, authentication is enabled last, and disabled without any other
// act. While it is enabled neither root nor the operator's own user is deleted.
func TestPlanAuth(t *testing.T) {
	t.Parallel()
	const own, secret = "quorate", "open sesame"
	type args struct {
		wanted   WantedAuth
		observed ObservedAuth
	}
	on := WantedAuth{Enabled: true, Ready: true, Own: own, RootPassword: secret}
	with := func(users map[string][]string) ObservedAuth { return ObservedAuth{Enabled: true, Users: users} }
	root := []string{RootName}
	begins := []AuthAct{
		{Verb: AddUser, Name: own}, {Verb: GrantRole, Name: own, Role: RootName},
		{Verb: AddUser, Name: RootName, Password: secret}, {Verb: GrantRole, Name: RootName, Role: RootName},
		{Verb: EnableAuth},
	}
	cases := map[string]struct {
		reason string
		args   args
		want   []AuthAct
	}{
		"First":    {reason: "both users, and then all is checked", args: args{wanted: on}, want: begins},
		"NotReady": {reason: "an EtcdUser is not applied yet", args: args{wanted: WantedAuth{Enabled: true, Own: own, RootPassword: secret}}},
		"Found": {
			reason: "users of these names were there: their passwords are not ours",
			args:   args{wanted: on, observed: ObservedAuth{Users: map[string][]string{own: root, RootName: {"other"}}}},
			want: []AuthAct{
				{Verb: DeleteUser, Name: own}, begins[0], begins[1],
				{Verb: DeleteUser, Name: RootName}, begins[2], begins[3], begins[4],
			},
		},
		"AtRest": {reason: "all is as it must be", args: args{wanted: on, observed: with(map[string][]string{own: root, RootName: root})}},
		"OwnLost": {
			reason: "somebody has deleted the operator's own user", args: args{wanted: on, observed: with(map[string][]string{RootName: root})},
			want: []AuthAct{begins[0], begins[1]},
		},
		"OwnWithoutRole": {
			reason: "somebody has revoked its role", args: args{wanted: on, observed: with(map[string][]string{own: {"other"}, RootName: root})},
			want: []AuthAct{begins[1]},
		},
		"OwnLostNotReady": {
			reason: "what is enabled is repaired, whatever is waited for",
			args:   args{wanted: WantedAuth{Enabled: true, Own: own}, observed: with(map[string][]string{RootName: root})},
			want:   []AuthAct{begins[0], begins[1]},
		},
		"RootPassword": {
			reason: "the Secret has changed",
			args:   args{wanted: WantedAuth{Enabled: true, Own: own, RootPassword: secret, SetRoot: true}, observed: with(map[string][]string{own: root, RootName: root})},
			want:   []AuthAct{{Verb: SetPassword, Name: RootName, Password: secret}},
		},
		"OwnIsRoot": {
			reason: "the certificate names root", args: args{wanted: WantedAuth{Enabled: true, Ready: true, Own: RootName, RootPassword: secret}},
			want: begins[2:],
		},
		"Disable":  {reason: "users stay as they are", args: args{wanted: WantedAuth{Own: own, Ready: true}, observed: with(nil)}, want: []AuthAct{{Verb: DisableAuth}}},
		"Disabled": {reason: "there is nothing to do", args: args{wanted: WantedAuth{Own: own, Ready: true, SetRoot: true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, PlanAuth(tc.args.wanted, tc.args.observed)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanRole(t *testing.T) {
	t.Parallel()
	read, all := Prefixed("/app/", AccessRead), Prefixed("", AccessReadWrite)
	key, both := Single("/app/", AccessWrite), Prefixed("/app/", AccessReadWrite)
	replaces := []AuthAct{{Verb: Revoke, Name: "r", Permission: read}, {Verb: Grant, Name: "r", Permission: read}}
	type args struct {
		want, has []Permission
		exists    bool
	}
	cases := map[string]struct {
		reason string
		args   args
		want   []AuthAct
	}{
		"New":   {reason: "it is added first", args: args{want: []Permission{read}}, want: []AuthAct{{Verb: AddRole, Name: "r"}, {Verb: Grant, Name: "r", Permission: read}}},
		"Empty": {reason: "it allows nothing", want: []AuthAct{{Verb: AddRole, Name: "r"}}},
		"Same":  {reason: "nothing is to be done", args: args{want: []Permission{read}, has: []Permission{read}, exists: true}},
		"Access": {
			reason: "a grant replaces that of the same range", args: args{want: []Permission{Prefixed("/app/", AccessWrite)}, has: []Permission{read}, exists: true},
			want: []AuthAct{{Verb: Grant, Name: "r", Permission: Prefixed("/app/", AccessWrite)}},
		},
		"Narrowed": {
			reason: "what is kept holds throughout", args: args{want: []Permission{read}, has: []Permission{all}, exists: true},
			want: []AuthAct{{Verb: Grant, Name: "r", Permission: read}, {Verb: Revoke, Name: "r", Permission: all}},
		},
		"SameKey": {
			reason: "of two permissions with one key etcd replaces the first one alone, and adds another one to the second",
			args:   args{want: []Permission{key, read}, has: []Permission{key, both}, exists: true}, want: replaces,
		},
		"SameKeyNew": {
			reason: "the one with the same key is there by then", args: args{want: []Permission{key, read}, has: []Permission{both}, exists: true},
			want: append([]AuthAct{{Verb: Grant, Name: "r", Permission: key}}, replaces...),
		},
		"Twice": {
			reason: "etcd has two permissions for one range, of which one allows too much",
			args:   args{want: []Permission{read}, has: []Permission{both, read}, exists: true}, want: replaces,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, PlanRole("r", tc.args.want, tc.args.has, tc.args.exists)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanUser(t *testing.T) {
	t.Parallel()
	type args struct {
		wanted WantedUser
		has    []string
		exists bool
	}
	add, grant := AuthAct{Verb: AddUser, Name: "u", Password: "p"}, AuthAct{Verb: GrantRole, Name: "u", Role: "a"}
	cases := map[string]struct {
		reason string
		args   args
		want   []AuthAct
	}{
		"New":      {reason: "with its roles", args: args{wanted: WantedUser{Name: "u", Roles: []string{"a"}, Password: "p"}}, want: []AuthAct{add, grant}},
		"Same":     {reason: "nothing is to be done", args: args{wanted: WantedUser{Name: "u", Roles: []string{"a"}, Password: "p"}, has: []string{"a"}, exists: true}},
		"Roles":    {reason: "the new ones first", args: args{wanted: WantedUser{Name: "u", Roles: []string{"a"}}, has: []string{"b"}, exists: true}, want: []AuthAct{grant, {Verb: RevokeRole, Name: "u", Role: "b"}}},
		"Password": {reason: "the Secret has changed", args: args{wanted: WantedUser{Name: "u", Password: "p", SetPassword: true}, exists: true}, want: []AuthAct{{Verb: SetPassword, Name: "u", Password: "p"}}},
		"None":     {reason: "there is no password to set", args: args{wanted: WantedUser{Name: "u", SetPassword: true}, exists: true}},
		"Found": {
			reason: "a user of that name was there, with a password that others may know",
			args:   args{wanted: WantedUser{Name: "u", Roles: []string{"a"}, Password: "p", Recreate: true, SetPassword: true}, has: []string{"a"}, exists: true},
			want:   []AuthAct{{Verb: DeleteUser, Name: "u"}, add, grant},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acts := PlanUser(tc.args.wanted, tc.args.has, tc.args.exists)
			if diff := cmp.Diff(tc.want, acts); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, act := range acts {
				if act.Password != "" && strings.Contains(act.String(), ": p") {
					t.Errorf("the password is said: %s", act)
				}
			}
		})
	}
}

// TestPermission: the ranges are those of etcdctl, and are told as they were asked for.
func TestPermission(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   Permission
		want   Permission
		said   string
	}{
		"Key":     {reason: "one key", args: Single("a", AccessRead), want: Permission{Key: "a", Access: AccessRead}, said: `Read of key "a"`},
		"Prefix":  {reason: "up to the next", args: Prefixed("/a/", AccessWrite), want: Permission{"/a/", "/a0", AccessWrite}, said: `Write of the keys with prefix "/a/"`},
		"Last":    {reason: "the last byte carries", args: Prefixed("a\xff", AccessRead), want: Permission{"a\xff", "b", AccessRead}, said: `Read of the keys with prefix "a\xff"`},
		"NoNext":  {reason: "nothing comes after it", args: Prefixed("\xff", AccessRead), want: Permission{"\xff", "\x00", AccessRead}, said: `Read of the keys from "\xff" on`},
		"All":     {reason: "the empty prefix", args: Prefixed("", AccessReadWrite), want: Permission{"\x00", "\x00", AccessReadWrite}, said: "ReadWrite of all keys"},
		"Range":   {reason: "without its end", args: Between("a", "c", AccessRead), want: Permission{"a", "c", AccessRead}, said: `Read of the keys from "a" to "c"`},
		"NoEnd":   {reason: "to the last key", args: Between("a", "", AccessRead), want: Permission{"a", "\x00", AccessRead}, said: `Read of the keys from "a" on`},
		"Control": {reason: "a message has no line breaks", args: Single("a\nb", AccessRead), want: Permission{Key: "a\nb", Access: AccessRead}, said: `Read of key "a\nb"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.args); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.said, tc.args.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	joined := Joined([]Permission{Single("b", AccessRead), Single("a", AccessWrite), Single("a", AccessRead), Single("b", AccessRead)})
	if diff := cmp.Diff([]Permission{Single("a", AccessReadWrite), Single("b", AccessRead)}, joined); diff != "" {
		t.Errorf("of two permissions for one range both hold: -want +got:\n%s", diff)
	}
}
