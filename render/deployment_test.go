package render

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// TestDeploymentPatches renders the sample of docs/install.md, which changes each setting of the
// operator's Deployment that the table above it has.
func TestDeploymentPatches(t *testing.T) {
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### The operator's Deployment\n")
	_, sample, fenced := strings.Cut(section, "\n```yaml\n")
	sample, _, ends := strings.Cut(sample, "\n```\n")
	if !found || !fenced || !ends {
		t.Fatal("docs/install.md has no sample for the operator's Deployment")
	}
	var patched types.Kustomization
	if err := yaml.UnmarshalStrict([]byte(sample), &patched); err != nil {
		t.Fatal(err)
	}
	before, budget := deployed(t, types.Kustomization{Resources: []string{"install"}})
	after, patchedBudget := deployed(t, patched)

	if diff := cmp.Diff(intstr.FromInt32(1), *budget.Spec.MaxUnavailable); diff != "" {
		t.Errorf("one of two may go, and so may a single one: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(before.Spec.Template.Labels, budget.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("the budget is for other Pods: -want, +got:\n%s", diff)
	}
	if *patchedBudget.Spec.UnhealthyPodEvictionPolicy == *budget.Spec.UnhealthyPodEvictionPolicy {
		t.Errorf("the budget is as before: %v", patchedBudget.Spec)
	}
	was, is := before.Spec.Template.Spec, after.Spec.Template.Spec
	if *after.Spec.Replicas == *before.Spec.Replicas || is.PriorityClassName == was.PriorityClassName {
		t.Errorf("replicas or priority are as before: %d, %s", *after.Spec.Replicas, is.PriorityClassName)
	}
	changed := map[string]string{
		"nodeSelector":              cmp.Diff(was.NodeSelector, is.NodeSelector),
		"tolerations":               cmp.Diff(was.Tolerations, is.Tolerations),
		"topologySpreadConstraints": cmp.Diff(was.TopologySpreadConstraints, is.TopologySpreadConstraints),
		"resources":                 cmp.Diff(was.Containers[0].Resources, is.Containers[0].Resources),
		"livenessProbe":             cmp.Diff(was.Containers[0].LivenessProbe, is.Containers[0].LivenessProbe),
	}
	for field, diff := range changed {
		if diff == "" {
			t.Errorf("%s: as before", field)
		}
	}
	if is.NodeSelector[corev1.LabelOSStable] != "linux" || is.Containers[0].LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("a patch takes away what it does not name: %v, %v", is.NodeSelector, is.Containers[0].LivenessProbe)
	}
	rest := cmpopts.IgnoreFields(corev1.PodSpec{}, "NodeSelector", "Tolerations", "TopologySpreadConstraints", "PriorityClassName", "Containers")
	if diff := cmp.Diff(was, is, rest); diff != "" {
		t.Errorf("it changes more than it says: -before, +after:\n%s", diff)
	}
}

// deployed are the operator's Deployment and its budget, as a kustomization renders them.
func deployed(t *testing.T, k types.Kustomization) (*appsv1.Deployment, *policyv1.PodDisruptionBudget) {
	t.Helper()
	manifests, err := build(map[string]types.Kustomization{".": k}, "")
	if err != nil {
		t.Fatal(err)
	}
	var deployment *appsv1.Deployment
	var budget *policyv1.PodDisruptionBudget
	for _, o := range decode(t, manifests) {
		switch o := o.(type) {
		case *appsv1.Deployment:
			deployment = o
		case *policyv1.PodDisruptionBudget:
			budget = o
		}
	}
	if deployment == nil || budget == nil {
		t.Fatal("the installation has no Deployment, or no budget for it")
	}
	return deployment, budget
}
