//go:build env

package reconcile_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestSecretsNeedAnotherRight: an operator has exactly the rights of an installation for this
// namespace. It runs a cluster without TLS, and may not read any Secret. One with TLS says what to
// type, and once that is typed, it goes on by itself: with the right taken away again it serves.
func TestSecretsNeedAnotherRight(t *testing.T) {
	s := newStage(t)
	s.account = s.ns + ":quorate"
	s.install(render.InstallOptions{Namespace: s.ns, WatchNamespaces: []string{s.ns}})
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

	c := s.cluster("db", 1)
	s.secure(c)
	s.create(c)
	message := s.stalled(c, api.ReasonCertificates)
	_, commands, ok := strings.Cut(message, "run: ")
	commands, _, ends := strings.Cut(commands, ". It then goes on by itself")
	if !ok || !ends || len(s.pods(c)) > 0 {
		t.Fatalf("%d Pods, and no commands in: %s", len(s.pods(c)), message)
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

// install applies what an installation has of rights.
func (s *stage) install(options render.InstallOptions) {
	s.Helper()
	stream, err := render.Install(options)
	s.must(err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return
		}
		s.must(err)
		if o.GroupVersionKind().Group == "rbac.authorization.k8s.io" {
			s.must(s.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership))
		}
	}
}
