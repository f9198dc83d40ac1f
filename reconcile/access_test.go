package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// authFake is an etcd that has these users, and takes down what is done with them.
type authFake struct {
	membership.Auth
	membership.ObservedAuth
	others  []string
	did     []string
	refuses membership.AuthVerb
}

var errNoReply = errors.New("no reply")

func (f *authFake) Close() error { return nil }

func (f *authFake) Enabled(context.Context) (bool, error) { return f.ObservedAuth.Enabled, nil }
func (f *authFake) UserRoles(_ context.Context, name string) ([]string, error) {
	roles, ok := f.Users[name]
	if !ok {
		return nil, membership.ErrUnknown
	}
	return roles, nil
}

func (f *authFake) UserNames(context.Context) ([]string, error) {
	return append(slices.Clone(f.others), api.Manager, membership.RootName), nil
}

func (f *authFake) take(a membership.AuthAct) error {
	if a.Verb == f.refuses {
		return errNoReply
	}
	f.did = append(f.did, a.String())
	return nil
}

func (f *authFake) AddUser(_ context.Context, name, _ string) error {
	return f.take(membership.AuthAct{Verb: membership.AddUser, Name: name})
}

func (f *authFake) GrantRole(_ context.Context, user, role string) error {
	return f.take(membership.AuthAct{Verb: membership.GrantRole, Name: user, Role: role})
}

func (f *authFake) SetPassword(_ context.Context, name, password string) error {
	return f.take(membership.AuthAct{Verb: membership.SetPassword, Name: name + " to " + password})
}

func (f *authFake) Enable(context.Context) error {
	return f.take(membership.AuthAct{Verb: membership.EnableAuth})
}

func (f *authFake) Disable(context.Context) error {
	return f.take(membership.AuthAct{Verb: membership.DisableAuth})
}

// TestSettleAuth: what a look at etcd's users does, writes beforehand, and has the status say.
func TestSettleAuth(t *testing.T) {
	t.Parallel()
	root := []string{membership.RootName}
	both := membership.ObservedAuth{Enabled: true, Users: map[string][]string{api.Manager: root, membership.RootName: root}}
	on := func(c *api.EtcdCluster) { c.Spec.Auth = &api.Auth{Enabled: true} }
	known := func(password string) func(*api.EtcdCluster) {
		return func(c *api.EtcdCluster) {
			c.Status.Auth = &api.AuthStatus{Enabled: true, User: api.Manager, RootPassword: password, ClusterID: "c0"}
		}
	}
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "root", Namespace: "ns", UID: "u", ResourceVersion: "3"}, Data: map[string][]byte{api.SecretPassword: []byte(password)}}
	}
	withSecret := func(c *api.EtcdCluster) {
		c.Spec.Auth = &api.Auth{Enabled: true, RootSecretRef: &api.SecretReference{Name: "root"}}
	}
	user := func(ready metav1.ConditionStatus) *api.EtcdUser {
		u := &api.EtcdUser{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "ns", Generation: 1}}
		u.Spec.ClusterRef.Name = "db"
		u.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: ready, ObservedGeneration: 1}}
		u.Status.Applied = &api.Applied{Generation: 1, ClusterID: "c0"}
		return u
	}
	before := user(metav1.ConditionTrue)
	before.Status.Applied.ClusterID = "before"
	begins := []string{"add user quorate", "grant to user quorate: role root", "add user root", "grant to user root: role root", "enable authentication"}
	enabled := func(password string) *api.AuthStatus {
		return &api.AuthStatus{Enabled: true, User: api.Manager, RootPassword: password, ClusterID: "c0"}
	}
	type args struct {
		cluster []func(*api.EtcdCluster)
		objects []client.Object
		etcd    authFake
	}
	type want struct {
		did    []string
		before *api.AuthStatus // written before
		status *api.AuthStatus
		said   membership.Step
	}
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"First": {
			reason: "the status says it before it is so",
			args:   args{cluster: []func(*api.EtcdCluster){on}, objects: []client.Object{user(metav1.ConditionTrue)}},
			want:   want{did: begins, before: enabled(generated), status: enabled(generated)},
		},
		"UserNotReady": {
			reason: "its clients would be refused",
			args:   args{cluster: []func(*api.EtcdCluster){on}, objects: []client.Object{user(metav1.ConditionFalse)}},
			want: want{status: &api.AuthStatus{}, said: membership.Step{
				Action: membership.Wait, Reason: membership.Reason(api.ReasonEnablingAuth), Message: "waiting for EtcdUser app to be Ready, before etcd authenticates clients",
			}},
		},
		"UserOfBefore": {
			reason: "it was Ready in another etcd, such as that of before a restore: this one may not have it",
			args:   args{cluster: []func(*api.EtcdCluster){on}, objects: []client.Object{before}},
			want: want{status: &api.AuthStatus{}, said: membership.Step{
				Action: membership.Wait, Reason: membership.Reason(api.ReasonEnablingAuth), Message: "waiting for EtcdUser app to be Ready, before etcd authenticates clients",
			}},
		},
		"RestoredNoPassword": {
			reason: "etcd is not left open for it: root gets one that is stored nowhere", args: args{cluster: []func(*api.EtcdCluster){withSecret, known("u/3"), func(c *api.EtcdCluster) { c.Status.Auth.ClusterID = "before" }}},
			want: want{did: begins, before: enabled(""), status: enabled(""), said: membership.Step{
				Action: membership.Stall, Reason: membership.Reason(api.ReasonAuthBlocked),
				Message: "the password of root cannot be used: Secret root does not exist: create it with the key password (spec.auth.rootSecretRef). root keeps the password that it has, or has one that is stored nowhere",
			}},
		},
		"NoPassword": {
			reason: "root would have none", args: args{cluster: []func(*api.EtcdCluster){withSecret}},
			want: want{status: &api.AuthStatus{}, said: membership.Step{
				Action: membership.Stall, Reason: membership.Reason(api.ReasonAuthBlocked),
				Message: "the password of root cannot be used: Secret root does not exist: create it with the key password (spec.auth.rootSecretRef). etcd does not authenticate clients until it can",
			}},
		},
		"Password": {
			reason: "it is that of the Secret", args: args{cluster: []func(*api.EtcdCluster){withSecret}, objects: []client.Object{secret("p")}},
			want: want{did: begins, before: enabled("u/3"), status: enabled("u/3")},
		},
		"AtRest": {
			reason: "nothing is done", args: args{cluster: []func(*api.EtcdCluster){on, known(generated)}, etcd: authFake{ObservedAuth: both}},
			want: want{status: enabled(generated)},
		},
		"Unmanaged": {
			reason: "what no object names is told", args: args{cluster: []func(*api.EtcdCluster){on, known(generated)}, objects: []client.Object{user(metav1.ConditionTrue)}, etcd: authFake{ObservedAuth: both, others: []string{"app", "bob"}}},
			want: want{status: func() *api.AuthStatus { s := enabled(generated); s.Unmanaged = []string{"bob"}; return s }()},
		},
		"OtherPassword": {
			reason: "the Secret has changed", args: args{cluster: []func(*api.EtcdCluster){withSecret, known("u/2")}, objects: []client.Object{secret("p")}, etcd: authFake{ObservedAuth: both}},
			want: want{did: []string{"change the password of user root to p"}, status: enabled("u/3")},
		},
		"WrongPassword": {
			reason: "root keeps what it has", args: args{cluster: []func(*api.EtcdCluster){withSecret, known("u/2")}, objects: []client.Object{secret("p\n")}, etcd: authFake{ObservedAuth: both}},
			want: want{status: enabled("u/2"), said: membership.Step{
				Action: membership.Stall, Reason: membership.Reason(api.ReasonAuthBlocked),
				Message: "the password of root cannot be used: the key password of Secret root ends with a line break, which clients would have to send as well: write it without one (printf instead of echo) (spec.auth.rootSecretRef). root keeps the password that it has, or has one that is stored nowhere",
			}},
		},
		"OwnLost": {
			reason: "it is given its user back, whatever is waited for",
			args:   args{cluster: []func(*api.EtcdCluster){on, known(generated)}, objects: []client.Object{user(metav1.ConditionFalse)}, etcd: authFake{ObservedAuth: membership.ObservedAuth{Enabled: true, Users: map[string][]string{membership.RootName: root}}}},
			want:   want{did: begins[:2], status: enabled(generated)},
		},
		"Disabled": {
			reason: "users stay", args: args{cluster: []func(*api.EtcdCluster){known(generated), func(c *api.EtcdCluster) { c.Spec.Auth = &api.Auth{} }}, etcd: authFake{ObservedAuth: both}},
			want: want{did: []string{"disable authentication"}, status: &api.AuthStatus{}},
		},
		"Removed": {
			reason: "to remove spec.auth is the same", args: args{cluster: []func(*api.EtcdCluster){known(generated)}, etcd: authFake{ObservedAuth: both}},
			want: want{did: []string{"disable authentication"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID = "c0"
			for _, change := range tc.args.cluster {
				change(c)
			}
			r := newStub(t, nil, tc.args.objects...)
			l := &authLook{r: r.Reconciler, c: c, seen: healthy(), found: &access{status: c.Status.Auth}}
			etcd := tc.args.etcd
			if err := l.settle(t.Context(), &etcd, api.Manager); err != nil {
				t.Fatal(err)
			}
			got := want{did: etcd.did, status: l.found.status, said: l.found.said}
			if len(r.status) > 0 {
				got.before = r.status[0].Auth
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeniedAuth: where etcd denies access to the operator, and it cannot help itself, it is said
// what to do.
func TestDeniedAuth(t *testing.T) {
	t.Parallel()
	type args struct {
		cluster func(*api.EtcdCluster)
		denied  bool
	}
	stall := func(reason, message string) membership.Step {
		return membership.Step{Action: membership.Stall, Reason: membership.Reason(reason), Message: message}
	}
	secured := func(c *api.EtcdCluster) { c.Spec.TLS, c.Status.TLS.Client.Mode = nil, api.TLSManaged }
	cases := map[string]struct {
		reason string
		args   args
		want   membership.Step
	}{
		"NotAsked": {reason: "spec.auth is not set, and etcd lets the operator in", args: args{cluster: secured}},
		"NotSet": {
			reason: "the snapshot of another etcd", args: args{cluster: secured, denied: true},
			want: stall(api.ReasonAccessDenied, "etcd authenticates clients, and denies access to Quorate: set spec.auth.enabled to true, so that Quorate sees to that user, or to false, so that etcd authenticates no clients (docs/auth.md#after-a-restore)"),
		},
		"NoAuthority": {
			reason: "there is nothing to issue a certificate with", args: args{denied: true, cluster: func(c *api.EtcdCluster) { secured(c); c.Spec.Auth = &api.Auth{Enabled: true} }},
			want: stall(api.ReasonAccessDenied, "etcd authenticates clients, and denies access to Quorate's user (the common name in Secret db-operator-tls). As a user with the role root, run: etcdctl user add NAME --no-password, unless it exists, and: etcdctl user grant-role NAME root (docs/auth.md#quorates-own-access)"),
		},
		"NoTLS": {
			reason: "the operator has no certificate", args: args{denied: true, cluster: func(*api.EtcdCluster) {}},
			want: stall(api.ReasonAccessDenied, "etcd authenticates clients, as its data says, and the operator has no certificate, because spec.tls.client.mode is Disabled. "+
				"If an EtcdRestore brought this about, delete it. Else delete the EtcdCluster, of which the volumes stay, and apply it again with spec.auth.enabled and spec.tls.client.mode Managed (docs/auth.md#after-a-restore)"),
		},
		"WantsWithoutTLS": {
			reason: "a cluster of before TLS was the default", args: args{cluster: func(c *api.EtcdCluster) { c.Spec.TLS, c.Spec.Auth = nil, &api.Auth{Enabled: true} }},
			want: stall(api.ReasonAuthBlocked, "spec.auth.enabled needs TLS for clients, and there is none (status.tls.client.mode is Disabled): set spec.tls.client.mode to Managed or Secret, or spec.auth.enabled to false"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			tc.args.cluster(c)
			seen.denied = tc.args.denied
			rest := membership.Step{Action: membership.None, Reason: membership.Healthy}
			var err error
			if seen.access, err = newStub(t, nil).authenticate(t.Context(), c, seen, rest); err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want.Action == "" {
				want = rest
			}
			if diff := cmp.Diff(want, withAccess(seen, rest)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnansweredAuth: what was written before etcd authenticates clients is not taken back where it
// is not known whether it does. That the spec is not carried out is said.
func TestUnansweredAuth(t *testing.T) {
	t.Parallel()
	on := &api.AuthStatus{Enabled: true, User: api.Manager, RootPassword: generated, ClusterID: "c0"}
	both := map[string][]string{api.Manager: {membership.RootName}, membership.RootName: {membership.RootName}}
	const notKnown = "spec.auth is not known to be carried out, and this is tried again: no reply"
	says := membership.Step{Action: membership.Wait, Reason: membership.Reason(api.ReasonAuthBlocked)}
	cases := map[string]struct {
		reason  string
		spec    *api.Auth
		etcd    authFake
		before  *api.AuthStatus
		want    *api.AuthStatus
		message string
	}{
		"Enables": {
			reason: "etcd may authenticate clients by now", spec: &api.Auth{Enabled: true}, etcd: authFake{refuses: membership.EnableAuth},
			want: on, message: notKnown,
		},
		"Disables": {
			reason: "it may still do so", etcd: authFake{refuses: membership.DisableAuth, ObservedAuth: membership.ObservedAuth{Enabled: true, Users: both}}, before: on,
			want: on, message: notKnown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID, c.Spec.Auth, c.Status.Auth = "c0", tc.spec, tc.before
			l := &authLook{r: newStub(t, nil).Reconciler, c: c, seen: healthy(), found: &access{status: c.Status.Auth}}
			etcd := tc.etcd
			err := l.settle(t.Context(), &etcd, api.Manager)
			if !errors.Is(err, errNoReply) {
				t.Fatal(err)
			}
			l.failed(err)
			if diff := cmp.Diff(tc.want, l.found.status); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			want := says
			want.Message = tc.message
			if diff := cmp.Diff(want, l.found.said); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
