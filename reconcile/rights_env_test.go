//go:build env

package reconcile_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/render"
)

// TestSecretsNeedAnotherRight: an operator has exactly the rights of an installation for this
// namespace, without those on Secrets. It runs a cluster without TLS, and may not read any Secret.
// One that says nothing of TLS says what to type, or to have none. Once that is typed, it goes on
// by itself: with the right taken away again it serves.
func TestSecretsNeedAnotherRight(t *testing.T) {
	s := newStage(t)
	s.account = s.ns + ":quorate"
	s.install(render.InstallOptions{Namespace: s.ns, WatchNamespaces: []string{s.ns}, WithoutSecrets: true})
	s.operate()
	plain := s.cluster("plain", 1)
	s.create(plain)
	s.ready(plain)

	limited := rest.CopyConfig(apiServer)
	limited.Impersonate.UserName = "system:serviceaccount:" + s.account
	operator, err := client.New(limited, client.Options{Scheme: s.scheme})
	s.must(err)
	if err := operator.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: "any"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Fatalf("an installation without TLS may read Secrets: %v", err)
	}

	s.unasked = true
	c, other := s.cluster("db", 1), s.cluster("other", 1)
	s.create(c)
	s.create(other)
	message := s.stalled(c, api.ReasonCertificates)
	commands := granting(t, message)
	if instead := "For a cluster without TLS, set spec.tls.client.mode and spec.tls.peer.mode to Disabled instead"; !strings.HasSuffix(message, instead) {
		t.Errorf("the message does not end with %q: %s", instead, message)
	}
	if pods := s.pods(c); len(pods) > 0 {
		t.Errorf("%d Pods without certificates", len(pods))
	}
	s.stalled(other, api.ReasonCertificates)
	s.change(other, func() { withoutTLS(other) })
	s.ready(other)
	if mode := other.Status.TLS.Client.Mode; mode != api.TLSDisabled {
		t.Errorf("status.tls.client.mode is %s", mode)
	}
	h := (&page{T: t}).shell(s, nil)
	if out, err := h.command(commands); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	s.put(s.ready(c), "key", "value")

	if out, err := h.command("kubectl delete rolebinding quorate-secrets"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.stalledWith(c, api.ReasonCertificates, "may not read Secret", "kubectl create rolebinding")
	if !is(c, api.ConditionAvailable, metav1.ConditionTrue) {
		t.Errorf("a cluster whose Secrets cannot be read any more: %+v", c.Status.Conditions)
	}
	s.want(s.etcd(c), "key", "value")
	if out, err := h.command("kubectl create rolebinding quorate-secrets --role=quorate-secrets --serviceaccount=" + s.account); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.want(s.ready(c), "key", "value")
}

// TestRightsTakenAwayAndRestarted: an upgrade that prunes what it does not name takes the rights on
// Secrets away and restarts the operator, which then has no certificate to ask with. Members serve,
// and that is not denied, nor is another cause told.
func TestRightsTakenAwayAndRestarted(t *testing.T) {
	s := newStage(t)
	s.account = s.ns + ":quorate"
	s.install(render.InstallOptions{Namespace: s.ns, WatchNamespaces: []string{s.ns}})
	crash := s.operate()
	c := s.cluster("db", 3)
	s.secure(c)
	s.create(c)
	s.put(s.ready(c), "key", "value")

	h := (&page{T: t}).shell(s, nil)
	crash()
	if out, err := h.command("kubectl delete rolebinding quorate-secrets"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.operate()
	s.stalledWith(c, api.ReasonCertificates, "may not read Secret", "kubectl create rolebinding")
	available := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
	if available.Status != metav1.ConditionUnknown || available.Reason != api.ReasonCertificates {
		t.Errorf("members serve, and are not asked: %+v", available)
	}
	s.want(s.etcd(c), "key", "value")

	before := s.podUIDs(c)
	for _, name := range []string{"db-0", "db-1"} { // without these two there is no quorum
		s.deletePod(name)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
		s.awaitPod(pod, "recreated", func() bool { return string(pod.UID) != before[name] })
	}
	s.want(s.etcd(c), "key", "value")
	if out, err := h.command("kubectl create rolebinding quorate-secrets --role=quorate-secrets --serviceaccount=" + s.account); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.want(s.ready(c), "key", "value")
}

// TestRightsGivenOverEarlierOnes: what the message says to type leads on where there is a Role of
// that name with less, bound to the operator of an earlier installation.
func TestRightsGivenOverEarlierOnes(t *testing.T) {
	s := newStage(t)
	s.account = s.ns + ":quorate"
	s.install(render.InstallOptions{Namespace: s.ns, WatchNamespaces: []string{s.ns}, WithoutSecrets: true})
	s.operate()
	h := (&page{T: t}).shell(s, nil)
	for _, line := range []string{
		"kubectl create role quorate-secrets --verb=get --resource=secrets",
		"kubectl create rolebinding quorate-secrets --role=quorate-secrets --serviceaccount=quorate-system:quorate",
	} {
		if out, err := h.command(line); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	c := s.cluster("db", 1)
	s.secure(c)
	s.create(c)
	commands := granting(t, s.stalled(c, api.ReasonCertificates))
	if out, err := h.command(commands); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	s.ready(c)
}

// granting are the commands of a message that give the operator its rights.
func granting(t *testing.T, message string) string {
	t.Helper()
	_, commands, ok := strings.Cut(message, "run: ")
	commands, _, ends := strings.Cut(commands, ". It then goes on by itself")
	if !ok || !ends {
		t.Fatalf("no commands in: %s", message)
	}
	return commands
}

// install applies what an installation has of rights.
func (s *stage) install(options render.InstallOptions) {
	s.Helper()
	stream, err := render.Install(options)
	s.must(err)
	objects, err := hostlet.Objects(stream)
	s.must(err)
	for _, o := range objects {
		if o.GroupVersionKind().Group == "rbac.authorization.k8s.io" {
			s.must(s.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership))
		}
	}
}
