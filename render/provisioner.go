package render

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// Provisioner is the Pod that has the volume of a member to come made, and the image pulled, on a node where that member can
// run: the member's Pod in all that decides about its place, but that it runs "etcd --version" and is done.
//
// Most storage classes make a volume only when a Pod needs it, which takes longer than all that etcd does. Starting the
// member itself does not help: etcd exits when it is no member yet, and the kubelet's back-off then costs more. Only a
// startup probe is left, which never succeeds, so that no Service counts it as ready.
func Provisioner(c *api.EtcdCluster, m Member) (*corev1ac.PodApplyConfiguration, error) {
	pod, err := Pod(c, m)
	if err != nil {
		return nil, err
	}
	delete(pod.Annotations, api.AnnotationInitialCluster)
	delete(pod.Annotations, api.AnnotationInitialClusterState)
	delete(pod.Annotations, api.AnnotationInitialCorruptCheck)
	pod.Annotations[api.AnnotationProvisions] = "true"
	pod.Spec.WithRestartPolicy(corev1.RestartPolicyOnFailure)
	etcd := &pod.Spec.Containers[0]
	etcd.Args, etcd.Env, etcd.LivenessProbe, etcd.ReadinessProbe = []string{"--version"}, nil, nil, nil
	return pod, nil
}
