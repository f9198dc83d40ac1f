//go:build env

package reconcile_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestRefusedImage: a policy refuses the image of the next version. No member leaves the Service
// for clients for a change that does not come, no claim announces it, and the status says why.
func TestRefusedImage(t *testing.T) {
	s := newStage(t)
	c := s.cluster("db", 3)
	s.operate()
	s.born(c)
	s.ready(c)
	s.denyImage(etcd37)
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	var mu sync.Mutex
	out := 0
	s.eachPod(func(_ context.Context, pod *corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		if pod.Labels[api.LabelClients] == api.ClientsOut {
			out++
		}
	})
	s.change(c, func() { c.Spec.Version = etcd37 })
	told := func() bool {
		live := &api.EtcdCluster{}
		s.must(s.Get(s.Context(), client.ObjectKeyFromObject(c), live))
		for _, condition := range live.Status.Conditions {
			if condition.Type == api.ConditionStalled && condition.ObservedGeneration == live.Generation && condition.Reason == api.ReasonRefused {
				return strings.Contains(condition.Message, "not signed")
			}
		}
		return false
	}
	for !told() {
		<-pace.C
	}
	for watched := time.Now(); time.Since(watched) < 12*time.Second; <-pace.C { // the next look of a cluster that is stalled comes after ten
		if !told() {
			t.Fatal("the status tells no more that the change is refused")
		}
	}
	for _, claim := range s.claims(c) {
		if next := claim.Annotations[api.AnnotationNext]; next != "" {
			t.Errorf("claim %s announces %s", claim.Name, next)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if out > 0 {
		t.Errorf("Pods that serve were out of the Service for clients in %d looks", out)
	}
}

// denyImage has the API server refuse Pods with the image of that version.
func (s *stage) denyImage(version string) {
	s.Helper()
	s.deny([]string{"pods"}, onBoth, `!object.spec.containers.exists(c, c.image.endsWith("v`+version+`"))`, unsigned, func() error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Namespace: s.ns}}
		pod.Spec.Containers = []corev1.Container{{Name: "etcd", Image: "gcr.io/etcd-development/etcd:v" + version}}
		return s.Create(s.Context(), pod, client.DryRunAll)
	})
}

const unsigned = "this image is not signed"

// deny has the API server refuse what the expression does not hold of, and waits until it says so
// of the try.
func (s *stage) deny(resources []string, on []admissionregistrationv1.OperationType, holds, message string, try func() error) {
	s.Helper()
	s.create(&admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: on, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: holds, Message: message}},
		},
	})
	s.create(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: s.ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	late := time.After(patience)
	for { // no watch tells when it is in force
		err := try()
		if err != nil && strings.Contains(err.Error(), message) {
			return
		}
		select {
		case <-pace.C:
		case <-late:
			s.Fatalf("the policy has no effect; what is tried gives %v", err)
		}
	}
}
