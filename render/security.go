package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// podSecurity is what Pod Security asks of a Pod at its level restricted, with the user that owns
// what is on its volumes: spec.pod.securityContext, or else ours. The cluster may be gone (nil).
func podSecurity(c *api.EtcdCluster) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	asked := asksUsers(c)
	if asked == nil {
		return security.
			WithRunAsUser(user).
			WithRunAsGroup(user).
			WithFSGroup(user).
			// The whole volume is walked only where its root has another owner, not at every start.
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	security.RunAsUser, security.RunAsGroup = clone(asked.RunAsUser), clone(asked.RunAsGroup)
	security.WithSupplementalGroups(asked.SupplementalGroups...)
	if asked.FSGroup != nil {
		// Another user may have written there with the same group, readable to itself alone.
		security.WithFSGroup(*asked.FSGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeAlways)
	}
	return security
}

// asksUsers is spec.pod.securityContext where it differs from the default; nil where it does not.
func asksUsers(c *api.EtcdCluster) *api.PodSecurityContext {
	if c == nil || c.Spec.Pod == nil || equality.Semantic.DeepEqual(c.Spec.Pod.SecurityContext, ours) {
		return nil
	}
	return c.Spec.Pod.SecurityContext
}

// ours is the default, written out.
var ours = &api.PodSecurityContext{RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), FSGroup: new(int64(user))}

// serviceAccount is spec.pod.serviceAccountName; empty where it is the default of Kubernetes. The
// cluster may be gone (nil).
func serviceAccount(c *api.EtcdCluster) string {
	if c == nil || c.Spec.Pod == nil || c.Spec.Pod.ServiceAccountName == "default" {
		return ""
	}
	return c.Spec.Pod.ServiceAccountName
}

// clone shares nothing with the spec: what is rendered is written over when it is applied.
func clone(number *int64) *int64 {
	if number == nil {
		return nil
	}
	return new(*number)
}

// confined is what Pod Security asks of a container at its level restricted.
func confined() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}
