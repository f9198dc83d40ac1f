//go:build env

package reconcile_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// TestUsersOwnCertificate: with certificates of others, Quorate is the user that its certificate
// names. A certificate for another user is not used while etcd authenticates clients, and Quorate
// goes on with the one that it has.
func TestUsersOwnCertificate(t *testing.T) {
	s := newStage(t)
	s.peopled = true
	s.operate()
	c := s.cluster("db", 1)
	s.clientPort(c, ownPort("server", "operator"))
	ours := s.authority()
	named := func(name string) map[string][]byte {
		cert, key, err := ours.Issue(name, pki.Use{Client: true}, nil, time.Now(), 30*24*time.Hour)
		s.must(err)
		return map[string][]byte{api.SecretCert: cert, api.SecretKey: key, api.SecretCA: ours.PEM()}
	}
	hosts := append(s.addresses(c), "*.db."+s.ns+".svc", "db-client."+s.ns+".svc", "127.0.0.1")
	operator := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "operator", Namespace: s.ns}, Type: corev1.SecretTypeTLS, Data: named("machine")}
	s.create(operator)
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "server", Namespace: s.ns}, Type: corev1.SecretTypeTLS, Data: s.issue(ours, pki.Use{Hosts: hosts, Server: true, Client: true}, 30*24*time.Hour)})
	c.Spec.Auth = &api.Auth{Enabled: true}
	s.create(c)
	s.authenticates(c, true)
	if c.Status.Auth.User != "machine" {
		t.Errorf("status.auth.user is %s", c.Status.Auth.User)
	}

	own := s.user(c, "machine")
	s.create(own)
	s.saysOf(own, true, api.ReasonNameTaken, "machine is Quorate's own user in etcd")
	s.must(s.Delete(t.Context(), own))
	s.gone(own)

	good := operator.Data
	s.change(operator, func() { operator.Data = named("other") })
	s.stalledWith(c, api.ReasonCertificates, "Secret operator (spec.tls.client.operatorSecretRef)", "has the common name other, and Quorate's user in etcd is machine")
	if !is(c, api.ConditionAvailable, metav1.ConditionTrue) {
		t.Errorf("the cluster is not asked any more: %+v", condition(c, api.ConditionAvailable))
	}
	s.change(operator, func() { operator.Data = good })
	s.authenticates(c, true)
	s.change(c, func() { c.Spec.Auth.Enabled = false })
	s.authenticates(c, false)
	s.change(operator, func() { operator.Data = named("other") })
	s.change(c, func() { c.Spec.Auth.Enabled = true })
	s.await(c, "with another user of Quorate's own", func() bool { return c.HasAuth() && c.Status.Auth.User == "other" })
}
