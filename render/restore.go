package render

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// ContainerFind looks for the snapshot. In the Pod of a first member the init container
// ContainerRestore makes its data of that.
const (
	ContainerFind = "find"

	envRestore = "RESTORE"

	// scratchDir is where the snapshot is until the data is made of it: on the member's own volume,
	// which has room for it.
	scratchDir = dataMount + "/restore"

	identityVolume = "identity"
	identityMount  = "/etc/quorate/identity"
	identityFile   = "identity.txt"
)

// defaultBump is the default of spec.bootstrap.restore.revisionBump.
const defaultBump = 1_000_000_000

// FindJob looks for the snapshot from which a cluster is to start, new or in place. A
// failed look is repeated by the kubelet, with its back-off, so that what is mended in the store or
// in a Secret needs no other help.
func FindJob(c *api.EtcdCluster, image string) (*batchv1ac.JobApplyConfiguration, error) {
	restore, store, err := restoreOf(c)
	if err != nil {
		return nil, err
	}
	config, err := storeConfig(store)
	if err != nil {
		return nil, fmt.Errorf("the store of the snapshot: %w", err)
	}
	args := []string{"--store=" + config}
	for _, arg := range []struct{ name, value string }{
		{"name", restore.Snapshot}, {"before", instant(restore)}, {"cluster", restore.Cluster}, {"cluster-id", restore.ClusterID},
	} {
		if arg.value != "" {
			args = append(args, "--"+arg.name+"="+arg.value)
		}
	}
	if restore.Unverified != api.UnverifiedAllow {
		args = append(args, "--verified")
	}
	spec, err := agentPod(c, store)
	if err != nil {
		return nil, err
	}
	search := []any{args, store, image}
	find := readsFrom(agent(image, ContainerFind, "find", args...), store)
	if identity := c.RestoreIdentity(); identity != nil {
		decrypts(spec, find, identity)
		search = append(search, identity)
	}
	spec.WithRestartPolicy(corev1.RestartPolicyOnFailure).WithContainers(find)
	podLabels := agentLabels(c, "etcd-restore", c.Name)
	if store.Azure != nil && store.ServiceAccountName != "" {
		podLabels[azureIdentity] = "true"
	}
	if r := c.Status.Restore; r != nil && restore == &r.Source {
		search = append(search, r.UID) // what another EtcdRestore has found may not be the newest any more
	}
	return persistentJob(c, c.FindJobName(), spec, podLabels, search), nil
}

// persistentJob is a Job of a restore that goes on until it has succeeded, or is not asked for any
// more. What it is made of tells it from one of another restore. It has no deadline: its agent
// gives up what makes no progress (docs/stores.md), and is run again.
func persistentJob(c *api.EtcdCluster, name string, spec *corev1ac.PodSpecApplyConfiguration, podLabels map[string]string, of []any) *batchv1ac.JobApplyConfiguration {
	own := annotations(c, map[string]string{api.AnnotationRevision: hash(of)})
	job := batchv1ac.Job(name, c.Namespace).
		WithLabels(agentLabels(c, "etcd-restore", c.Name)).
		WithAnnotations(own).
		WithOwnerReferences(owner(c)...).
		WithSpec(batchv1ac.JobSpec().
			WithBackoffLimit(mostAttempts).
			WithTTLSecondsAfterFinished(keepFound).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(podLabels).WithSpec(spec)))
	if c.Spec.AdditionalMetadata != nil && len(c.Spec.AdditionalMetadata.Annotations) > 0 {
		job.Spec.Template.WithAnnotations(c.Spec.AdditionalMetadata.Annotations)
	}
	return job
}

// A search goes on until it has found something, or is not asked for any more. What it has found is
// written down at once; the Job stays for a while, for people.
const (
	mostAttempts = 1 << 30
	keepFound    = 600 // seconds
)

// restoreOf is what a cluster is to start from, and where that is stored.
func restoreOf(c *api.EtcdCluster) (*api.BootstrapRestore, *api.BackupStore, error) {
	restore, store := c.RestoreSource(), c.RestoreStore()
	if restore == nil {
		return nil, nil, errors.New("spec.bootstrap.restore does not say where the snapshot is: revert it")
	}
	if store == nil {
		return nil, nil, errors.New("there is no store of snapshots: set spec.backup.store of the EtcdCluster, or the store of what it is restored from")
	}
	return restore, store, nil
}

func instant(r *api.BootstrapRestore) string {
	if r.Before == nil {
		return ""
	}
	return r.Before.UTC().Format(time.RFC3339)
}

// restoring adds to the Pod of a first member what makes its data of the snapshot that was chosen,
// before etcd is started. It does nothing where that was done, and where AnnotationRestore does not
// name the snapshot: once the cluster has formed, a member that finds no data has lost what it has
// voted for, and must not come back with the data of the snapshot.
func restoring(pod *corev1ac.PodApplyConfiguration, c *api.EtcdCluster, m Member) error {
	if m.AgentImage == "" {
		return errors.New("the operator does not know its own image, with which members are restored: start it with --agent-image")
	}
	sum, name, _ := strings.Cut(m.Restore, " ")
	if api.MemberOf(name) != "" {
		args := append([]string{wanted, "--origin=" + sum}, memberFlags(c, m)...)
		pod.Spec.WithInitContainers(restorer(c, agent(m.AgentImage, ContainerRestore, "expect-member", args...)))
		return nil
	}
	_, store, err := restoreOf(c)
	if err != nil {
		return err
	}
	config, err := storeConfig(store)
	if err != nil {
		return fmt.Errorf("the store of the snapshot: %w", err)
	}
	args := append([]string{wanted, "--store=" + config, "--snapshot=" + name, "--sha256=" + sum, "--scratch=" + scratchDir}, memberFlags(c, m)...)
	container := restorer(c, readsFrom(agent(m.AgentImage, ContainerRestore, "restore-member", args...), store))
	spec := pod.Spec.WithVolumes(storeVolumes(store)...)
	if identity := c.RestoreIdentity(); identity != nil {
		decrypts(spec, container, identity)
	}
	optional(spec, container)
	if store.ServiceAccountName != "" {
		spec.WithServiceAccountName(store.ServiceAccountName)
		if store.Azure != nil {
			pod.WithLabels(map[string]string{azureIdentity: "true"})
		}
	}
	spec.WithInitContainers(container)
	return nil
}

// wanted tells the init container of a first member whether its data is still to be made, or found.
const wanted = "--wanted=$(" + envRestore + ")"

// restorer makes a container the init container of a first member, which sees to the data of that.
func restorer(c *api.EtcdCluster, container *corev1ac.ContainerApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	ofDatabase(c, container).
		WithEnv(fromAnnotation(envRestore, api.AnnotationRestore)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(dataVolume).WithMountPath(dataMount))
	if r := c.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		container.WithResources(resources(r)) // the Pod keeps its class
	}
	return container
}

// memberFlags are what the agent is told of a first member whose data it makes.
func memberFlags(c *api.EtcdCluster, m Member) []string {
	members := make([]string, m.BootstrapSize)
	for n := range members {
		members[n] = c.MemberName(m.BootstrapBase + n)
	}
	bump := int64(defaultBump)
	if restore := c.RestoreSource(); restore != nil && restore.RevisionBump != nil {
		bump = *restore.RevisionBump
	}
	return []string{
		"--data-dir=" + dataDir,
		"--name=" + m.Name,
		"--initial-cluster=" + Bootstrap(c, members),
		"--initial-cluster-token=" + m.Token,
		"--initial-advertise-peer-urls=" + c.PeerURL(m.Name),
		"--etcd-version=" + strings.TrimPrefix(m.Version, "v"),
		"--quota-backend-bytes=" + strconv.FormatInt(Room(c), 10),
		"--bump-revision=" + strconv.FormatInt(bump, 10),
		"--mark-compacted=" + strconv.FormatBool(bump > 0),
	}
}

// decrypts gives a container the identity that decrypts a snapshot. The Secret is optional, so that
// the Pod starts without it: the agent says what is missing, and a plain snapshot needs no
// identity.
func decrypts(spec *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration, identity *api.AgeIdentity) {
	container.WithArgs("--identity=" + path.Join(identityMount, identityFile)).WithVolumeMounts(readOnly(identityVolume, identityMount))
	spec.WithVolumes(corev1ac.Volume().WithName(identityVolume).WithSecret(corev1ac.SecretVolumeSource().
		WithSecretName(identity.SecretRef.Name).
		WithOptional(true).
		WithItems(corev1ac.KeyToPath().WithKey(identityFile).WithPath(identityFile))))
}

// readsFrom gives a container what its store needs to be read.
func readsFrom(container *corev1ac.ContainerApplyConfiguration, s *api.BackupStore) *corev1ac.ContainerApplyConfiguration {
	reaches(container, s)
	for n := range container.VolumeMounts {
		if mount := &container.VolumeMounts[n]; *mount.Name == storeVolume {
			mount.WithReadOnly(true)
		}
	}
	return container
}

// azureIdentity is the label without which the webhook of Azure's workload identity leaves a Pod
// alone.
const azureIdentity = "azure.workload.identity/use"

// optional lets a Pod start without what only its restore needs: it is started again long after
// that, when the credentials may be gone. A restore that lacks them fails, and says so.
func optional(spec *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration) {
	for n := range spec.Volumes {
		switch v := &spec.Volumes[n]; {
		case v.Secret != nil:
			v.Secret.WithOptional(true)
		case v.ConfigMap != nil:
			v.ConfigMap.WithOptional(true)
		}
	}
	for n := range container.EnvFrom {
		container.EnvFrom[n].SecretRef.WithOptional(true)
	}
}
