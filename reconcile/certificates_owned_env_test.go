//go:build env

package reconcile_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// TestSecretsWithoutOwnerLive: an authority that was there before its cluster is not used; what the
// message says to type leads on, whether it was planted or restored. Secrets whose owner was
// removed get it back.
func TestSecretsWithoutOwnerLive(t *testing.T) {
	s := newStage(t)
	s.secured = true
	s.operate()
	h := (&page{T: t}).shell(s, nil)
	before := func(name string, c *api.EtcdCluster, data map[string][]byte) {
		s.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{api.LabelCluster: c.Name}},
			Type:       corev1.SecretTypeTLS, Data: data,
		})
	}
	types := func(c *api.EtcdCluster, name, command string) {
		s.stalledWith(c, string(membership.ForeignObject), "Secret "+name+" ", command)
		if pods := s.pods(c); len(pods) > 0 {
			t.Errorf("%d Pods with a Secret that is not known", len(pods))
		}
		_, line, _ := strings.Cut(s.stalled(c, string(membership.ForeignObject)), command)
		line = command + line
		if strings.Contains(command, "delete") {
			line, _, _ = strings.Cut(line, ". If you did")
		}
		if out, err := h.command(line); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}

	c := s.cluster("db", 1)
	planted := s.issue(s.authority(), pki.Use{Client: true}, time.Hour)
	before("db-client-ca", c, planted)
	s.create(c)
	types(c, "db-client-ca", "kubectl delete secret")
	s.put(s.ready(c), "key", "value")

	for _, name := range []string{"db-client-ca", "db-peer-ca", "db-server-tls", "db-peer-tls", "db-client-tls", "db-operator-tls"} {
		secret := s.secret(name)
		data := secret.DeepCopy().Data
		s.change(secret, func() { secret.OwnerReferences = nil })
		s.awaitSecret(name, "owned again", func(again *corev1.Secret) bool {
			return metav1.IsControlledBy(again, c) && again.UID == secret.UID && string(again.Data[api.SecretCert]) == string(data[api.SecretCert])
		})
	}
	s.want(s.ready(c), "key", "value")

	restored := s.cluster("web", 1)
	for _, plane := range []string{"-client-ca", "-peer-ca"} {
		before("web"+plane, restored, s.secret("db"+plane).Data)
	}
	s.create(restored)
	types(restored, "web-client-ca", "kubectl patch secret")
	types(restored, "web-peer-ca", "kubectl patch secret")
	s.ready(restored)
	if restored.Status.TLS.Client.Authority != c.Status.TLS.Client.Authority {
		t.Error("the restored authority is not the one that is trusted")
	}
}

// TestAuthorityPutBackBare: an authority is put back with nothing but its name and data. The policy
// of an installation lets the operator write only what has the label of a cluster: the message says
// how it gets that.
func TestAuthorityPutBackBare(t *testing.T) {
	s := newStage(t)
	s.account = s.ns + ":quorate"
	s.install(render.InstallOptions{Namespace: s.ns, WatchNamespaces: []string{s.ns}})
	s.secured = true
	s.operate()
	c := s.cluster("db", 1)
	s.create(c)
	s.ready(c)
	secret := s.secret("db-client-ca")
	s.must(s.Delete(s.Context(), secret))
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: secret.Name}, Type: corev1.SecretTypeTLS, Data: secret.Data})
	_, line, ok := strings.Cut(s.stalled(c, api.ReasonCertificates), "run: ")
	if !ok || !strings.HasPrefix(line, "kubectl label secret db-client-ca ") {
		t.Fatalf("it does not say to label the Secret: %s", line)
	}
	if out, err := (&page{T: t}).shell(s, nil).command(line); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	s.awaitSecret(secret.Name, "owned again", func(again *corev1.Secret) bool { return metav1.IsControlledBy(again, c) })
	s.ready(c)
}
