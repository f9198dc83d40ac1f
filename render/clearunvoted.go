package render

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// ContainerClearUnvoted is the init container of a first member whose Pod is recreated before the
// cluster has formed. An etcd that ended before it wrote a vote or a commit index to its log has
// left a data directory with which it never elects a leader. The agent removes that, and nothing
// else (snapshot.ClearUnvoted).
const ContainerClearUnvoted = "clear-unvoted"

// clearing adds it. Without an image of the agent the Pod starts without it.
func clearing(pod *corev1ac.PodApplyConfiguration, c *api.EtcdCluster, m Member) {
	if !m.Again || m.AgentImage == "" || m.Restore != "" || m.InitialClusterState != StateNew {
		return
	}
	container := agent(m.AgentImage, ContainerClearUnvoted, "clear-unvoted", "--data-dir="+dataDir, "--initial-cluster-state=$("+EnvInitialClusterState+")").
		WithEnv(fromAnnotation(EnvInitialClusterState, api.AnnotationInitialClusterState)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(dataVolume).WithMountPath(dataMount))
	if r := c.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		container.WithResources(resources(r)) // the Pod keeps its class
		if limit, ok := r.Limits[corev1.ResourceMemory]; ok && limit.Cmp(agentMemoryLimit) < 0 {
			(*container.Resources.Limits)[corev1.ResourceMemory] = agentMemoryLimit.DeepCopy()
		}
	}
	pod.Spec.WithInitContainers(container)
}
