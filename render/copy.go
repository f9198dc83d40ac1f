package render

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// ContainerCopy makes the data of the first member of what a former member has, and
// ContainerInstall puts the agent's program where that finds it.
const (
	ContainerCopy    = "copy"
	ContainerInstall = "install"

	programVolume = "program"
	programMount  = "/run/quorate/program"
	programFile   = programMount + "/quorate"

	formerVolume = "former"
	formerMount  = "/former"
)

// CopyJob makes the data of the first member m of what a former member has on its volume, which
// stays as it is: an etcd of the version that ran there reads a copy. The claims of both are
// mounted in one Pod, so the new volume is made where the former one is. A failed attempt is
// repeated by the kubelet, with its back-off.
func CopyJob(c *api.EtcdCluster, m Member, ran string) (*batchv1ac.JobApplyConfiguration, error) {
	origin, name, _ := strings.Cut(m.Snapshot, " ")
	former := c.Status.Restored
	args := append(memberFlags(c, m),
		"--from="+path.Join(formerMount, path.Base(dataDir)),
		"--origin="+origin,
		"--cluster="+c.Namespace+"/"+c.Name,
		"--cluster-id="+former.ClusterID,
		"--etcd="+etcdProgram,
		"--scratch="+scratchDir,
	)
	copies := corev1ac.Container().
		WithName(ContainerCopy).
		WithImage(Image(c, ran)).
		WithImagePullPolicy(pullPolicy(c)).
		WithCommand(programFile).
		WithArgs(append([]string{"agent", "copy-member"}, args...)...).
		WithEnv(corev1ac.EnvVar().WithName("TMPDIR").WithValue(dataMount)).
		WithResources(scratchResources(c)).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(confined()).
		WithVolumeMounts(
			readOnly(programVolume, programMount),
			readOnly(formerVolume, formerMount),
			corev1ac.VolumeMount().WithName(dataVolume).WithMountPath(dataMount),
		)
	spec, err := agentPod(c, &api.BackupStore{})
	if err != nil {
		return nil, err
	}
	spec.WithRestartPolicy(corev1.RestartPolicyOnFailure).
		WithInitContainers(agent(m.AgentImage, ContainerInstall, "install", "--to="+programFile).
			WithVolumeMounts(corev1ac.VolumeMount().WithName(programVolume).WithMountPath(programMount))).
		WithContainers(copies).
		WithVolumes(
			corev1ac.Volume().WithName(programVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
			claimed(formerVolume, api.MemberOf(name)),
			claimed(dataVolume, m.Name),
		)
	return persistentJob(c, c.CopyJobName(), spec, agentLabels(c, "etcd-restore", c.Name), []any{args, ran, m.AgentImage, m.VolumeUID, c.Status.Restore.UID}), nil
}

func claimed(volume, claim string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(volume).
		WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(claim))
}
