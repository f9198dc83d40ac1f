//go:build env

package reconcile_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
)

// TestUsersCertificate: an EtcdUser has a certificate issued, with which its application writes all
// the time, and may do what its roles allow. A rotation of the authority waits for its Secret, and
// the application, which reads it at each connection, goes on. A Secret of somebody else is left
// alone.
func TestUsersCertificate(t *testing.T) {
	s := newStage(t)
	s.peopled = true
	s.operate()
	c := s.cluster("db", 3)
	s.secure(c)
	c.Spec.TLS.Client.RotationWait, c.Spec.Auth = new(api.Duration("0s")), &api.Auth{Enabled: true}
	planted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bob-etcd", Namespace: s.ns, Labels: map[string]string{api.LabelCluster: "db"}}, Data: map[string][]byte{api.SecretKey: []byte("known")}}
	all, reader := s.role(c, "all", api.Permission{Access: api.AccessReadWrite, Prefix: new("")}), s.role(c, "reader", api.Permission{Access: api.AccessRead, Prefix: new("/app/")})
	app, alice, bob := s.user(c, "app", "all"), s.user(c, "alice", "reader"), s.user(c, "bob", "reader")
	for _, u := range []*api.EtcdUser{app, alice, bob} {
		u.Spec.Certificate = &api.UserCertificate{SecretName: u.Name + "-etcd"}
	}
	for _, o := range []client.Object{c, planted, all, reader, app, alice, bob} {
		s.create(o)
	}
	s.saysOf(bob, true, api.ReasonCertificateBlocked, "Secret bob-etcd is labelled as one of EtcdCluster db, and was not created for this EtcdUser", "with another secretName")
	s.applied(app)
	s.applied(alice)
	s.must(s.Delete(t.Context(), planted))
	s.applied(bob)
	s.authenticates(c, true)

	l := s.load(c, func(config *history.Config) { light(config); config.Dial = dialer(s.rereading(c, "app-etcd")) })
	l.await(10)
	former := s.frozen("alice-etcd")
	former.InsecureSkipVerify = true // it is the member that has to refuse
	cases := map[string]struct{ got, want error }{
		"Reads":      {got: s.reads(c, s.frozen("alice-etcd"), "", "", "/app/key")},
		"ReadsOther": {got: s.reads(c, s.frozen("alice-etcd"), "", "", "/other/key"), want: rpctypes.ErrPermissionDenied},
		"BobReads":   {got: s.reads(c, s.frozen("bob-etcd"), "", "", "/app/key")},
	}
	for name, tc := range cases {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: want %v, got %v", name, tc.want, tc.got)
		}
	}

	was := c.Status.TLS.Client.Authority
	s.change(c, func() { c.Spec.TLS.Client.RotateAuthority = "stolen" })
	s.await(c, "rotated", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && rotatedTo("stolen", c.Status.TLS.Client) && c.Status.TLS.Client.Authority != was
	})
	for _, u := range []*api.EtcdUser{app, alice, bob} {
		s.awaitObject(u, "certified by the new authority", func() bool {
			has := u.Status.Certificate
			return has != nil && has.Authority == c.Status.TLS.Client.Authority && len(has.Trusts) == 1 && has.Trusts[0] == has.Authority
		})
	}
	l.await(10)
	if err := s.reads(c, s.frozen("alice-etcd"), "", "", "/app/key"); err != nil {
		t.Errorf("alice may not read with her new certificate: %v", err)
	}
	for _, pod := range s.pods(c) {
		if err := s.handshake(pod.Status.PodIP+":2379", former); err == nil {
			t.Errorf("%s trusts a certificate of the former authority", pod.Name)
		}
	}

	secret, last := s.secret("alice-etcd"), s.frozen("alice-etcd")
	if !metav1.IsControlledBy(secret, alice) {
		t.Errorf("the Secret does not go with the EtcdUser: %v", secret.OwnerReferences)
	}
	s.must(s.Delete(t.Context(), alice))
	s.eventually("alice is gone", func() bool {
		return apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(alice), alice.DeepCopy()))
	})
	if err := s.reads(c, last, "", "", "/app/key"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("a user that was deleted may read: %v", err)
	}
	s.change(c, func() { c.Spec.Auth = nil }) // the data is compared by those with the role root alone
	s.authenticates(c, false)
	l.check()
}

// frozen is how a client connects with what a Secret holds now.
func (s *stage) frozen(name string) *tls.Config {
	s.Helper()
	data := s.secret(name).Data
	config := s.pair(data)
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AppendCertsFromPEM(data[api.SecretCA])
	return config
}
