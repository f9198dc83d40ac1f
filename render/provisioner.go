package render

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// The gate is a mount that the kubelet can make only once EnvInitialClusterState has a value, and
// so only once the Pod has the annotation of that name.
const (
	gateVolume = "start"
	gateMount  = "/run/quorate/start"
)

// Provisioner is the Pod of a member to come, with a gate before etcd: all that takes time is done
// before etcd hears of the member. The volume is made (most storage classes do it only when a Pod
// needs it), the image is pulled, the Pod has its address, and its name can be resolved. Then the
// member is added, and PodMetadata opens the gate.
//
// Without a gate etcd would find that it is no member yet, and exit, and the kubelet's back-off
// then costs more than was won. Without the Pod the others would look for a name that is not there
// yet: a resolver remembers for up to 30 seconds that there is no such name. And a member that
// publishes itself before the leader can reach it is not heard, tries again after seven seconds
// (publishV3 in server/etcdserver/server.go), and does not serve until then.
//
// The gate is Kubernetes' own rule that a container is not created while a variable in the
// subPathExpr of a mount has no value. It says so as CreateContainerConfigError, and tries again as
// soon as the Pod changes. What is mounted is a file that stays the same: one that changes with the
// Pod may be replaced while the container is being made, which then fails.
func Provisioner(c *api.EtcdCluster, m Member) (*corev1ac.PodApplyConfiguration, error) {
	pod, err := Pod(c, m)
	if err != nil {
		return nil, err
	}
	delete(pod.Annotations, api.AnnotationInitialCluster)
	delete(pod.Annotations, api.AnnotationInitialClusterState)
	pod.Annotations[api.AnnotationProvisions] = "true"
	constant := corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.name")
	pod.Spec.WithVolumes(corev1ac.Volume().WithName(gateVolume).WithDownwardAPI(corev1ac.DownwardAPIVolumeSource().
		WithItems(corev1ac.DownwardAPIVolumeFile().WithPath(StateExisting).WithFieldRef(constant))))
	pod.Spec.Containers[0].WithVolumeMounts(corev1ac.VolumeMount().
		WithName(gateVolume).WithMountPath(gateMount).WithSubPathExpr("$(" + EnvInitialClusterState + ")").WithReadOnly(true))
	return pod, nil
}
