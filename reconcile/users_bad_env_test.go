//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
	"quorate.dev/snapshot"
)

// TestUsersBad: what cannot be done is said, and what runs keeps running. One cluster meets it one
// after the other; its clients write all the time.
func TestUsersBad(t *testing.T) {
	s := newStage(t)
	s.peopled, s.account = true, s.ns+":quorate" // with the rights of an installation, and no other
	s.install(render.InstallOptions{Namespace: s.ns, WatchNamespaces: []string{s.ns}})
	s.operate()
	c := s.cluster("db", 3)
	s.secure(c)
	s.create(c)
	s.put(s.ready(c), "/app/key", "value")
	s.put(s.etcd(c), "/other/key", "value")
	app := s.load(c, light)

	// A user that cannot be made keeps etcd from authenticating clients, which would be refused.
	lost := s.user(c, "lost", "nothere")
	s.create(lost)
	s.saysOf(lost, false, api.ReasonRoleNotFound, "etcd has no role nothere")
	s.change(c, func() {
		c.Spec.Auth = &api.Auth{Enabled: true, RootSecretRef: &api.SecretReference{Name: "root"}}
	})
	s.stalledWith(c, api.ReasonAuthBlocked, "the password of root cannot be used", "Secret root does not exist", "etcd does not authenticate clients until it can")
	root := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "root", Namespace: s.ns}, StringData: map[string]string{api.SecretPassword: strings.Repeat("x", 73)}}
	s.create(root)
	s.stalledWith(c, api.ReasonAuthBlocked, "has 73 bytes, and etcd takes 72 at most")
	s.change(root, func() { root.StringData = map[string]string{api.SecretPassword: "toor"} })
	s.await(c, "waiting for an EtcdUser", func() bool {
		r := condition(c, api.ConditionReconciling)
		return r != nil && r.Reason == api.ReasonEnablingAuth && strings.Contains(r.Message, "EtcdUser lost")
	})
	twin := s.user(c, "twin")
	twin.Spec.Name = "lost"
	s.create(twin)
	s.saysOf(twin, true, api.ReasonNameTaken, "EtcdUser lost, which is older, has the user lost of the same cluster")
	s.stalledWith(c, api.ReasonAuthBlocked, "because EtcdUser twin is not Ready")
	s.must(s.Delete(t.Context(), twin))
	s.gone(twin)
	s.must(s.Delete(t.Context(), lost))
	s.gone(lost)
	s.populate(c)
	s.authenticates(c, true)
	s.permitted(c)
	app.await(10)
	if err := s.reads(c, s.stranger(c), "root", "toor", "/other/key"); err != nil {
		t.Errorf("root does not come in with its password: %v", err)
	}

	// From now on etcd authenticates clients.
	s.change(root, func() { root.StringData = map[string]string{api.SecretPassword: "swordfish"} })
	s.eventually("root has another password", func() bool { return s.reads(c, s.stranger(c), "root", "swordfish", "/other/key") == nil })
	secret := s.secret("alice")
	s.change(secret, func() { secret.Data[api.SecretPassword] = []byte("two\n") })
	alice := s.user(c, "alice")
	s.saysOf(alice, true, api.ReasonPasswordInvalid, "ends with a line break", "If etcd has a password for this user already, that stays valid")
	s.permitted(c)
	s.change(secret, func() { secret.Data[api.SecretPassword] = []byte("another") })
	s.applied(alice)
	if err := s.reads(c, s.stranger(c), "alice", "another", "/app/key"); err != nil {
		t.Errorf("alice does not come in with another password: %v", err)
	}
	plain := c.DeepCopy()
	plain.Spec.Auth, plain.Spec.TLS.Client = &api.Auth{}, &api.ClientTLS{Mode: api.TLSDisabled}
	err := s.Patch(t.Context(), plain, client.MergeFrom(c))
	if err == nil || !strings.Contains(err.Error(), "spec.tls.client.mode cannot be changed while etcd authenticates clients") {
		t.Errorf("the mode is changed while Quorate and the clients are the users of their certificates: %v", err)
	}
	s.must(s.Delete(t.Context(), alice))
	s.gone(alice)
	if err := s.reads(c, s.stranger(c), "alice", "another", "/app/key"); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Errorf("alice was deleted, and etcd says: %v", err)
	}
	s.asQuorate(c, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.UserAdd(ctx, "mallory", "by hand")
		return err
	})
	s.await(c, "with a user that nothing names", func() bool {
		return c.Status.Auth != nil && len(c.Status.Auth.Unmanaged) == 1 && c.Status.Auth.Unmanaged[0] == "mallory"
	})
	s.change(c, func() { c.Spec.Auth.Enabled = false })
	s.authenticates(c, false)
	app.await(10)
	unharmed(s, "clients beside all that is refused", app)
}

// TestUsersRestored: a snapshot has users, roles and passwords. After a restore in place the users
// are as their objects say now, also with passwords that were changed since, and one that was
// deleted since is told.
func TestUsersRestored(t *testing.T) {
	s := newStage(t, agents)
	s.peopled = true
	s.inStore(func(context.Context, snapshot.Store) error { return nil })
	s.operate()
	s.backUp()
	c := s.guarded(3, etcd36, backups)
	s.secure(c)
	s.create(c)
	s.put(s.ready(c), "/app/key", "value")
	s.put(s.etcd(c), "/other/key", "value")
	s.populate(c)
	bob := s.user(c, "bob", "all")
	s.create(bob)
	s.applied(bob)
	s.change(c, func() { c.Spec.Auth = &api.Auth{Enabled: true} })
	s.authenticates(c, true)
	b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: s.ns}}
	b.Spec.ClusterRef.Name = c.Name
	s.create(b)
	s.awaitObject(b, "verified", func() bool { return b.Status.VerifiedAt != nil })

	alice, secret := s.user(c, "alice"), s.secret("alice")
	s.applied(alice)
	had := alice.Status.Password
	s.change(secret, func() { secret.Data[api.SecretPassword] = []byte("another") })
	s.awaitObject(alice, "with another password", func() bool { return alice.Status.Password != had })
	s.must(s.Delete(t.Context(), bob))
	s.gone(bob)

	e := s.etcdRestore("back", anyway)
	s.create(e)
	s.restores(e)
	s.authenticates(c, true)
	s.awaitObject(alice, "applied to what was restored", func() bool { return alice.Status.Applied.ClusterID == c.Status.ClusterID })
	s.await(c, "with a user that came back", func() bool {
		return c.Status.Auth != nil && len(c.Status.Auth.Unmanaged) == 1 && c.Status.Auth.Unmanaged[0] == "bob"
	})
	if err := s.reads(c, s.stranger(c), "alice", "another", "/app/key"); err != nil {
		t.Errorf("alice does not come in with the password that the Secret has: %v", err)
	}
	if err := s.reads(c, s.stranger(c), "alice", password, "/app/key"); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Errorf("alice comes in with the password of the snapshot: %v", err)
	}
	s.resize(c, 4)
	s.await(c, "ready with its size", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == 4 })
}
