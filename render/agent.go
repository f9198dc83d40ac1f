package render

import (
	"cmp"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// What an agent gets. It streams: its memory does not depend on the size of the database.
var (
	agentCPU         = resource.MustParse("100m")
	agentMemory      = resource.MustParse("64Mi")
	agentMemoryLimit = resource.MustParse("256Mi")
)

// agent is a container of the operator's own image that runs "quorate agent". It says what came of
// it in the Pod's status.
func agent(image, name, command string, args ...string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(name).
		WithImage(image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(append([]string{"agent", command}, args...)...).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: agentCPU.DeepCopy(), corev1.ResourceMemory: agentMemory.DeepCopy()}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: agentMemoryLimit.DeepCopy()})).
		// One that was killed has written no result; the end of its log then tells why.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(confined())
}

// ofDatabase has a container read and write databases. The system's own copy of a file counts as
// memory of the container, and an etcd's database is mapped as a whole, again and again, while it
// is restored: with less than that it is read from the disk each time. So there is no limit, unless
// members have one. What an agent itself needs does not depend on it.
func ofDatabase(c *api.EtcdCluster, container *corev1ac.ContainerApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	container.Resources.Limits = nil
	if r := c.Spec.Resources; r != nil {
		if limit, ok := r.Limits[corev1.ResourceMemory]; ok {
			if limit.Cmp(agentMemoryLimit) < 0 {
				limit = agentMemoryLimit
			}
			container.Resources.WithLimits(corev1.ResourceList{corev1.ResourceMemory: limit.DeepCopy()})
		}
	}
	return container
}

// agentPod is the spec of a Pod in which agents use a store. It runs on the nodes that members may
// run on. The cluster may be gone (nil).
func agentPod(c *api.EtcdCluster, s *api.BackupStore) (*corev1ac.PodSpecApplyConfiguration, error) {
	spec := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(podSecurity(c)).
		WithVolumes(storeVolumes(s)...)
	if name := cmp.Or(s.ServiceAccountName, serviceAccount(c)); name != "" {
		spec.WithServiceAccountName(name)
	}
	if c == nil {
		return spec, nil
	}
	spec.WithImagePullSecrets(pullSecrets(c)...)
	if c.Spec.Scheduling == nil {
		return spec, nil
	}
	return spec, nodes(spec, c.Spec.Scheduling)
}

// JobDeadline is how long an attempt of an EtcdBackup may take, the wait for its Pod to start
// included: without an end, one that hangs would keep its schedule from ever making another. etcd
// suggests databases of at most 8 GiB; at 1 MiB/s one takes 2.3 hours to be stored, and as long to
// be read again.
const JobDeadline = 6 * time.Hour

// agentJob runs a Pod once, for an EtcdBackup. The operator reads what came of it, and decides
// whether there is another attempt.
func agentJob(b *api.EtcdBackup, c *api.EtcdCluster, s *api.BackupStore, name string, spec *corev1ac.PodSpecApplyConfiguration) *batchv1ac.JobApplyConfiguration {
	podLabels := backupLabels(b, c)
	if s.Azure != nil && s.ServiceAccountName != "" {
		podLabels[azureIdentity] = "true"
	}
	template := corev1ac.PodTemplateSpec().WithLabels(podLabels).WithSpec(spec)
	job := batchv1ac.Job(name, b.Namespace).WithLabels(backupLabels(b, c))
	if c != nil && c.Spec.AdditionalMetadata != nil && len(c.Spec.AdditionalMetadata.Annotations) > 0 {
		job.WithAnnotations(c.Spec.AdditionalMetadata.Annotations)
		template.WithAnnotations(c.Spec.AdditionalMetadata.Annotations)
	}
	return job.WithOwnerReferences(ownedBy(api.EtcdBackupKind.Kind, b, true)...).WithSpec(batchv1ac.JobSpec().
		WithActiveDeadlineSeconds(int64(JobDeadline.Seconds())).
		WithBackoffLimit(0).
		WithTemplate(template))
}

// agentLabels have nothing by which a Service or a budget of the cluster selects. The cluster may
// be gone (nil).
func agentLabels(c *api.EtcdCluster, name, instance string) map[string]string {
	labels := map[string]string{}
	if c != nil && c.Spec.AdditionalMetadata != nil {
		maps.Copy(labels, c.Spec.AdditionalMetadata.Labels)
	}
	labels["app.kubernetes.io/name"] = name
	labels[labelInstance] = instance
	labels["app.kubernetes.io/managed-by"] = api.Manager
	return labels
}

// backupLabels are the labels of a Job of an EtcdBackup, and of its Pod.
func backupLabels(b *api.EtcdBackup, c *api.EtcdCluster) map[string]string {
	labels := agentLabels(c, "etcd-backup", b.Name)
	labels[api.LabelBackup] = b.Name
	return labels
}
