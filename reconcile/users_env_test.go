//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/share"
)

// TestUsers: etcd comes to authenticate clients on a living cluster, which is then resized, changed
// to another version, and authenticates none again. A client that is a user writes all the time.
func TestUsers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, version, next string }{
		"On35": {reason: "etcd 3.5 is upgraded to 3.6", version: etcd35, next: etcd36},
		"On36": {reason: "etcd 3.6 is upgraded to 3.7", version: etcd36, next: etcd37},
		"On37": {reason: "etcd 3.7 is downgraded to 3.6", version: etcd37, next: etcd36},
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.version, s.peopled = tc.version, true
			s.operate()
			c := s.cluster("db", 3)
			s.secure(c)
			s.create(c)
			s.put(s.ready(c), "/app/key", "value")
			s.put(s.etcd(c), "/other/key", "value")
			app := s.load(c, light)
			app.await(5)
			s.populate(c)

			s.change(c, func() { c.Spec.Auth = &api.Auth{Enabled: true} })
			s.authenticates(c, true)
			s.permitted(c)
			app.await(10)

			s.drifts(c)
			s.resize(c, 4)
			s.sized(c, 4)
			s.resize(c, 3)
			s.sized(c, 3)
			app.await(10)
			s.change(c, func() { c.Spec.Version = tc.next })
			s.await(c, "ready with "+tc.next, func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == tc.next })
			app.await(10)
			s.permitted(c)

			s.change(c, func() { c.Spec.Auth = nil })
			s.authenticates(c, false)
			if err := s.reads(c, s.stranger(c), "", "", "/other/key"); err != nil {
				t.Errorf("a client that is no user is refused, although etcd authenticates none: %v", err)
			}
			app.await(10)
			unharmed(s, "clients that are a user, all the time", app)
		})
	}
}

const password = "open sesame"

// populate adds a user for the application's certificate, which may do everything, and alice, who
// may read some keys and has a password.
func (s *stage) populate(c *api.EtcdCluster) {
	s.Helper()
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "alice", Namespace: s.ns}, StringData: map[string]string{api.SecretPassword: password}})
	alice := s.user(c, "alice", "reader") // before its role is there
	alice.Spec.PasswordSecretRef = &api.SecretReference{Name: "alice"}
	s.create(alice)
	app := s.user(c, "app", "all")
	app.Spec.Name = api.EtcdName(c.ClientServiceName())
	s.create(app)
	all := s.role(c, "all", api.Permission{Access: api.AccessReadWrite, Prefix: new("")})
	reader := s.role(c, "reader", api.Permission{Access: api.AccessRead, Prefix: new("/app/")})
	s.create(reader)
	s.create(all)
	for _, o := range []client.Object{all, reader, app, alice} {
		s.applied(o)
	}
}

func (s *stage) role(c *api.EtcdCluster, name string, permissions ...api.Permission) *api.EtcdRole {
	r := &api.EtcdRole{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	r.Spec.ClusterRef.Name, r.Spec.Permissions = c.Name, permissions
	return r
}

func (s *stage) user(c *api.EtcdCluster, name string, roles ...api.EtcdName) *api.EtcdUser {
	u := &api.EtcdUser{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	u.Spec.ClusterRef.Name, u.Spec.Roles = c.Name, roles
	return u
}

func conditionsOf(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *api.EtcdRole:
		return o.Status.Conditions
	case *api.EtcdUser:
		return o.Status.Conditions
	default:
		return nil
	}
}

// applied waits until etcd has a role or a user as the newest spec says.
func (s *stage) applied(o client.Object) {
	s.Helper()
	s.awaitObject(o, "applied", func() bool {
		ready := meta.FindStatusCondition(conditionsOf(o), api.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == o.GetGeneration()
	})
}

// saysOf waits until a role or a user is not Ready for that reason, and says these words.
func (s *stage) saysOf(o client.Object, stalled bool, reason string, words ...string) {
	s.Helper()
	s.awaitObject(o, reason+": "+strings.Join(words, ", "), func() bool {
		ready := meta.FindStatusCondition(conditionsOf(o), api.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == reason && meta.IsStatusConditionTrue(conditionsOf(o), api.ConditionStalled) == stalled &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(ready.Message, word) })
	})
}

// authenticates waits until the cluster is ready, and etcd authenticates clients or not.
func (s *stage) authenticates(c *api.EtcdCluster, enabled bool) {
	s.Helper()
	s.await(c, "ready, and with authentication as the spec says", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && c.HasAuth() == enabled })
}

// stranger is how a client connects whose certificate names no user.
func (s *stage) stranger(c *api.EtcdCluster) *tls.Config { return s.tlsOf(c, c.ServerSecret()) }

// tlsOf is how a client connects with the certificate in a Secret.
func (s *stage) tlsOf(c *api.EtcdCluster, secret string) *tls.Config {
	s.Helper()
	config := s.pair(s.secret(secret).Data)
	config.RootCAs = s.clientTLS(c).RootCAs
	return config
}

// as is a client of all members; without a name, it is the user of its certificate.
func (s *stage) as(c *api.EtcdCluster, config *tls.Config, name, password string) (*clientv3.Client, error) {
	s.Helper()
	var endpoints []string
	for _, pod := range s.pods(c) {
		endpoints = append(endpoints, endpoint(c)(&pod))
	}
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: patience, Logger: zap.NewNop(), TLS: config, Username: name, Password: password})
}

// do something as a user, and return what etcd says of it.
func (s *stage) do(c *api.EtcdCluster, config *tls.Config, name, password string, what func(context.Context, *clientv3.Client) error) error {
	s.Helper()
	etcd, err := s.as(c, config, name, password)
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }() // what was asked is known
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	return what(ctx, etcd)
}

func (s *stage) reads(c *api.EtcdCluster, config *tls.Config, name, password, key string) error {
	s.Helper()
	return s.do(c, config, name, password, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.Get(ctx, key)
		return err
	})
}

// asQuorate does something with the operator's own certificate.
func (s *stage) asQuorate(c *api.EtcdCluster, what func(context.Context, *clientv3.Client) error) {
	s.Helper()
	s.must(s.do(c, s.tlsOf(c, c.OperatorSecret()), "", "", what))
}

// permitted fails unless each client may do what its user may, and nothing else.
func (s *stage) permitted(c *api.EtcdCluster) {
	s.Helper()
	write := func(key string) func(context.Context, *clientv3.Client) error {
		return func(ctx context.Context, etcd *clientv3.Client) error {
			_, err := etcd.Put(ctx, key, "value")
			return err
		}
	}
	cases := map[string]struct{ got, want error }{
		"AppWrites":       {got: s.do(c, s.clientTLS(c), "", "", write("/other/key"))},
		"AppEnables":      {got: s.do(c, s.clientTLS(c), "", "", func(ctx context.Context, e *clientv3.Client) error { _, err := e.AuthDisable(ctx); return err }), want: rpctypes.ErrPermissionDenied},
		"AliceReads":      {got: s.reads(c, s.stranger(c), "alice", password, "/app/key")},
		"AliceReadsOther": {got: s.reads(c, s.stranger(c), "alice", password, "/other/key"), want: rpctypes.ErrPermissionDenied},
		"AliceWrites":     {got: s.do(c, s.stranger(c), "alice", password, write("/app/key")), want: rpctypes.ErrPermissionDenied},
		"AliceGuessed":    {got: s.reads(c, s.stranger(c), "alice", "abracadabra", "/app/key"), want: rpctypes.ErrAuthFailed},
		"StrangerReads":   {got: s.reads(c, s.stranger(c), "", "", "/app/key"), want: rpctypes.ErrPermissionDenied},
	}
	for name, tc := range cases {
		if !errors.Is(tc.got, tc.want) {
			s.Errorf("%s: want %v, got %v", name, tc.want, tc.got)
		}
	}
}

// drifts changes users in etcd itself: what the spec says comes back, and the operator's own user,
// which others cannot take away from it for good.
func (s *stage) drifts(c *api.EtcdCluster) {
	s.Helper()
	alice, reader := s.user(c, "alice"), s.role(c, "reader")
	s.applied(alice)
	s.change(alice, func() { alice.Spec.Drift = api.DriftReport })
	s.applied(alice)
	s.asQuorate(c, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.UserRevokeRole(ctx, "alice", "reader")
		return err
	})
	s.saysOf(alice, true, api.ReasonDrifted, "grant to user alice: role reader")
	s.change(alice, func() { alice.Spec.Drift = api.DriftRevert })
	s.applied(alice)
	s.applied(reader)
	s.asQuorate(c, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.RoleGrantPermission(ctx, "reader", "/other/", "/other0", clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	})
	s.eventually("alice may not read what a role was given by hand", func() bool {
		return errors.Is(s.reads(c, s.stranger(c), "alice", password, "/other/key"), rpctypes.ErrPermissionDenied)
	})
	s.asQuorate(c, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.UserDelete(ctx, api.Manager)
		return err
	})
	s.eventually("the operator has its user again", func() bool {
		return s.do(c, s.tlsOf(c, c.OperatorSecret()), "", "", func(ctx context.Context, etcd *clientv3.Client) error {
			_, err := etcd.UserList(ctx) // for those with the role root alone
			return err
		}) == nil
	})
	s.ready(c)
	s.permitted(c)
}

// eventually waits for what etcd cannot be watched for.
func (s *stage) eventually(what string, holds func() bool) {
	s.Helper()
	for begun := time.Now(); !holds(); <-time.After(100 * time.Millisecond) {
		if time.Since(begun) > patience {
			s.Fatalf("waited %s until %s", patience, what)
		}
	}
}
