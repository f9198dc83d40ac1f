// Package contract checks that a status of an EtcdCluster says the same to kstatus, which Flux,
// Helm and others wait by, as it says to people.
package contract

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "quorate.dev/api/v1alpha1"
)

// Check returns what kstatus makes of the EtcdCluster, and where its status breaks the contract:
// Ready, Available and Degraded always; Reconciling or Stalled only while True and never both;
// every condition with a message and its generation; Current exactly when Ready, Failed exactly
// when Stalled.
func Check(c *api.EtcdCluster) (computed status.Status, breaches []string) {
	breach := func(format string, args ...any) { breaches = append(breaches, fmt.Sprintf(format, args...)) }
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return "", []string{err.Error()}
	}
	u := &unstructured.Unstructured{Object: raw}
	u.SetGroupVersionKind(api.EtcdClusterKind)
	result, err := status.Compute(u)
	if err != nil {
		return "", []string{err.Error()}
	}
	if c.Status.ObservedGeneration < 0 {
		if result.Status != status.InProgressStatus {
			breach("a fresh EtcdCluster is %s to kstatus, want InProgress", result.Status)
		}
		return result.Status, breaches
	}

	breaches = append(breaches, conditions(c)...)
	holds := func(kind string) bool {
		return c.Status.ObservedGeneration == c.Generation && meta.IsStatusConditionTrue(c.Status.Conditions, kind)
	}
	if holds(api.ConditionReady) != (result.Status == status.CurrentStatus) || holds(api.ConditionStalled) != (result.Status == status.FailedStatus) {
		breach("kstatus says %s (%s)", result.Status, result.Message)
	}
	return result.Status, breaches
}

// conditions says what is wrong with the conditions, whatever kstatus makes of them.
func conditions(c *api.EtcdCluster) (breaches []string) {
	breach := func(format string, args ...any) { breaches = append(breaches, fmt.Sprintf(format, args...)) }
	has := map[string]metav1.ConditionStatus{}
	for _, condition := range c.Status.Conditions {
		has[condition.Type] = condition.Status
		if condition.ObservedGeneration != c.Status.ObservedGeneration {
			breach("condition %s is of generation %d, the status of %d", condition.Type, condition.ObservedGeneration, c.Status.ObservedGeneration)
		}
		if strings.Contains(condition.Message, "\n") || condition.Message == "" {
			breach("condition %s has the message %q", condition.Type, condition.Message)
		}
	}
	for _, always := range []string{api.ConditionReady, api.ConditionAvailable, api.ConditionDegraded} {
		if has[always] == "" {
			breach("condition %s is missing", always)
		}
	}
	for _, only := range []string{api.ConditionReconciling, api.ConditionStalled} {
		if has[only] != "" && has[only] != metav1.ConditionTrue {
			breach("condition %s is %s, and is to be there only while True", only, has[only])
		}
	}
	if has[api.ConditionReconciling] != "" && has[api.ConditionStalled] != "" {
		breach("reconciling and stalled at once")
	}
	return breaches
}
