//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
)

// TestAuth plays a sample whose clients are authenticated: an application with a certificate of its
// own, and a user with a password.
func TestAuth(t *testing.T) {
	t.Parallel()
	c := &api.EtcdCluster{}
	testenv.Test(t, features.New("clients are authenticated").
		Setup(step(func(s *stage) {
			s.sample("auth.yaml")
			s.create(s.password())
			c.ObjectMeta = metav1.ObjectMeta{Namespace: s.ns, Name: "guarded"}
			s.ready(c)
			if auth := c.Status.Auth; auth == nil || !auth.Enabled || auth.User != "quorate" || len(auth.Unmanaged) > 0 {
				s.Fatalf("status.auth: %+v", auth)
			}
		})).
		Assess("each may do what its roles allow", step(func(s *stage) {
			s.allowed(c, application, write("/app/greeting", "hello"))
			s.allowed(c, reporting, read("/app/greeting"))
			s.refused(c, application, read("/other"))
			s.refused(c, reporting, write("/app/greeting", "bye"))
		})).
		Assess("a role that is changed holds at once", step(func(s *stage) {
			role := &api.EtcdRole{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "app"}}
			s.await(role, "there", func() bool { return role.UID != "" })
			s.change(role, func() { role.Spec.Permissions[0].Access = api.AccessRead })
			s.await(role, "applied", func() bool { return applied(role.Status.Conditions, role.Generation) })
			s.refused(c, application, write("/app/greeting", "bye"))
			s.allowed(c, application, read("/app/greeting"))
		})).
		Assess("a Pod that was deleted is back, and the cluster grows", step(func(s *stage) {
			s.deletePod("guarded-0")
			s.kubectl("scale", "etcdcluster", "guarded", "--replicas=4")
			s.await(c, "of four members", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.ReadyReplicas == 4 })
			s.allowed(c, reporting, read("/app/greeting"))
			s.refused(c, application, read("/other"))
		})).
		Assess("a user that was deleted is refused", step(func(s *stage) {
			user := &api.EtcdUser{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "reporting"}}
			s.await(user, "there", func() bool { return user.UID != "" })
			if err := s.Delete(s.Context(), user); err != nil {
				s.Fatal(err)
			}
			s.gone(user)
			s.refused(c, reporting, read("/app/greeting"))
		})).
		Assess("without authentication each certificate may do everything", step(func(s *stage) {
			s.change(c, func() { c.Spec.Auth = nil })
			s.await(c, "ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
			s.allowed(c, application, write("/other", "hello"))
		})).
		Feature())
}

// applied reports whether an EtcdRole or EtcdUser of this generation is in etcd.
func applied(conditions []metav1.Condition, generation int64) bool {
	ready := meta.FindStatusCondition(conditions, api.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == generation
}

// Users of the sample: one has a certificate, the other a password.
const (
	application = "app"
	reporting   = "reporting"

	reportingPassword = "open sesame"
)

// password is the Secret of the user reporting.
func (s *stage) password() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "reporting-password"},
		StringData: map[string]string{api.SecretPassword: reportingPassword},
	}
}

func read(key string) func(context.Context, *clientv3.Client) error {
	return func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.Get(ctx, key)
		return err
	}
}

func write(key, value string) func(context.Context, *clientv3.Client) error {
	return func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.Put(ctx, key, value)
		return err
	}
}

// allowed fails unless etcd does what a user asks for.
func (s *stage) allowed(c *api.EtcdCluster, user string, ask func(context.Context, *clientv3.Client) error) {
	s.Helper()
	s.insist("allow a user", func(ctx context.Context) error { return s.as(ctx, c, user, ask) })
}

// refused fails unless etcd refuses what a user asks for, or the user.
func (s *stage) refused(c *api.EtcdCluster, user string, ask func(context.Context, *clientv3.Client) error) {
	s.Helper()
	s.insist("refuse a user", func(ctx context.Context) error {
		err := s.as(ctx, c, user, ask)
		if err == nil {
			s.Fatalf("user %q may do what its roles do not allow", user)
		}
		if errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrAuthFailed) {
			return nil
		}
		return err
	})
}

// as asks with the certificate of the application, or with the one for all applications and a name
// and a password.
func (s *stage) as(ctx context.Context, c *api.EtcdCluster, user string, ask func(context.Context, *clientv3.Client) error) error {
	secret, name := &corev1.Secret{}, c.ApplicationSecret()
	if user == application {
		name = "app-etcd"
	}
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: name}, secret); err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(secret.Data[api.SecretCert], secret.Data[api.SecretKey])
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(secret.Data[api.SecretCA])
	config := clientv3.Config{
		TLS:         &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: authorities, MinVersion: tls.VersionTLS12},
		DialTimeout: 10 * time.Second,
	}
	if user != application {
		config.Username, config.Password = user, reportingPassword
	}
	etcd, err := s.connect(c, config)
	if err != nil {
		return err
	}
	return ask(ctx, etcd)
}
