//go:build e2e

package e2e

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/render"
)

// TestNamespaced: an operator for named namespaces needs no right in the whole cluster, works there
// and nowhere else. It runs before the parallel tests, while the operator for all namespaces rests.
func TestNamespaced(t *testing.T) {
	const team = "quorate-team" // the audit policy has it too
	var elsewhere *stage
	var other *api.EtcdCluster
	testenv.Test(t, features.New("an operator for one namespace").
		Setup(step(func(s *stage) {
			s.scaleOperator(0)
			elsewhere = newStage(s.T)
			other = elsewhere.cluster("db", 1)
			elsewhere.create(other)
			options := render.InstallOptions{Namespace: team, WatchNamespaces: []string{s.ns}}
			if err := installOperator(s.Context(), options); err != nil {
				s.Fatal(err)
			}
			s.Cleanup(func() { s.uninstall(options) })
		})).
		Assess("has no right outside its namespaces", step(func(s *stage) {
			objects, err := manifests(render.InstallOptions{Namespace: team, WatchNamespaces: []string{s.ns}})
			if err != nil {
				s.Fatal(err)
			}
			for _, o := range objects {
				forPeople := o.GetLabels()["rbac.authorization.k8s.io/aggregate-to-admin"] == "true" // of which nothing is the operator's
				if kind := o.GetKind(); kind == "ClusterRole" && !forPeople || kind == "ClusterRoleBinding" {
					s.Errorf("the installation has a %s %s", kind, o.GetName())
				}
				if ns := o.GetNamespace(); ns != "" && !slices.Contains([]string{team, s.ns}, ns) {
					s.Errorf("the installation has a %s in namespace %s", o.GetKind(), ns)
				}
			}
		})).
		Assess("looks after its namespace", step(func(s *stage) {
			c := s.cluster("db", 1)
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			cli := s.etcd(c)
			s.put(cli, "key", "value")
			s.want(cli, "key", "value")
		})).
		Assess("does nothing in another, which is the older one", step(func(s *stage) {
			s.await(other, "there", func() bool { return other.UID != "" })
			if other.Status.ObservedGeneration != -1 || len(other.Status.Conditions) != 0 {
				s.Errorf("an operator has looked at it: %s", contract.Describe(other))
			}
			if pods := elsewhere.pods(other); len(pods) != 0 {
				s.Errorf("it has %d Pods", len(pods))
			}
		})).
		Assess("the operator for all namespaces takes over", step(func(s *stage) {
			s.scaleOperator(1)
			elsewhere.ready(other)
		})).
		Feature())
}

// scaleOperator stops the operator for all namespaces, or starts it again.
func (s *stage) scaleOperator(replicas int32) {
	s.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: render.InstallNamespace, Name: "quorate"}}
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		s.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := s.List(s.Context(), pods, client.InNamespace(render.InstallNamespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		s.Fatal(err)
	}
	s.change(d, func() { d.Spec.Replicas = &replicas })
	for i := range pods.Items {
		if replicas == 0 { // the Deployment does not count those that are still at work before they go
			s.gone(&pods.Items[i])
		}
	}
	if err := awaitOperator(s.Context(), render.InstallNamespace); err != nil {
		s.Fatal(err)
	}
}

// uninstall removes all of an installation but what others need too.
func (s *stage) uninstall(options render.InstallOptions) {
	ctx := context.WithoutCancel(s.Context())
	objects, err := manifests(options)
	if err != nil {
		s.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := s.List(ctx, pods, client.InNamespace(options.Namespace)); err != nil {
		s.Fatal(err)
	}
	remove := func(o client.Object) {
		if err := s.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			s.Error(err)
		}
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			remove(o)
		}
	}
	for i := range pods.Items { // its Pod goes before its rights
		pod := &pods.Items[i]
		if err := await(ctx, pod, "gone", func() bool { return pod.UID == "" }); err != nil {
			s.Fatal(err)
		}
	}
	shared := []string{"CustomResourceDefinition", "ClusterRole", "PriorityClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for _, o := range slices.Backward(objects) {
		if o.GetKind() != "Deployment" && !slices.Contains(shared, o.GetKind()) {
			remove(o)
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: options.Namespace}}
	if err := await(ctx, ns, "gone", func() bool { return ns.UID == "" }); err != nil {
		s.Error(err)
	}
}
