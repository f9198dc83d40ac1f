package render

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// The containers of the Jobs of an EtcdBackup.
const (
	ContainerSave       = "save"
	ContainerFetch      = "fetch"
	ContainerRestore    = "restore"
	ContainerVerify     = "verify"
	ContainerVerifyHash = "verify-hash"
	ContainerDelete     = "delete"
)

// Where a snapshot is restored to be verified. The etcd that serves it is for its own Pod alone.
const (
	scratchVolume = "scratch"
	scratchMount  = "/scratch"
	scratchData   = scratchMount + "/data"
	scratchClient = "http://127.0.0.1:2379"
	scratchPeer   = "http://127.0.0.1:2380"
	scratchName   = "verify"
	scratchToken  = "verify"

	// scratchQuota is more than any database: a snapshot beyond etcd's default of 2 GiB is served
	// like any other.
	scratchQuota = 1 << 40
)

// What the etcd gets that serves a snapshot to be verified. It keeps the index of all keys in
// memory, which may be as much as a member needs: its limit is that of the members, where they have
// one.
var (
	etcdCPU    = resource.MustParse("100m")
	etcdMemory = resource.MustParse("256Mi")
	// scratchSpare is for the write-ahead log, of which etcd allocates two files at once.
	scratchSpare = resource.MustParse("256Mi")
)

// BackupJob is the Job of the attempt that the status of an EtcdBackup names: it saves a snapshot
// and verifies it. Where an earlier attempt has stored one, that one is verified.
//
// Every container but the last is an init container, so that they run one after the other, the etcd
// beside the last one:
//
//	Restore:            save, fetch, restore, etcd, verify
//	Restore, encrypted: save (which keeps a plain copy), verify-hash, restore, etcd, verify
//	Hash:               save, verify-hash
func BackupJob(b *api.EtcdBackup, c *api.EtcdCluster, image string) (*batchv1ac.JobApplyConfiguration, error) {
	store := b.Status.Store
	config, err := storeConfig(store)
	if err != nil {
		return nil, fmt.Errorf("EtcdBackup %s: %w", b.Name, err)
	}
	spec, err := agentPod(c, store)
	if err != nil {
		return nil, err
	}
	stored := []string{"--store=" + config, "--name=" + b.Status.Name}
	var steps []*corev1ac.ContainerApplyConfiguration
	add := func(name, command string, args ...[]string) *corev1ac.ContainerApplyConfiguration {
		step := ofDatabase(c, agent(image, name, command, slices.Concat(args...)...))
		steps = append(steps, step)
		return step
	}
	restores := b.Verification() == api.VerifyRestore
	if b.Status.SHA256 == "" {
		save := reaches(add(ContainerSave, "save", stored, saveArgs(b, c)), store).
			WithEnv(corev1ac.EnvVar().WithName("TMPDIR").WithValue(scratchMount)). // a plain copy is there until it has ended
			WithVolumeMounts(scratch())
		connects(spec, save, c)
		(*save.Resources.Requests)[corev1.ResourceEphemeralStorage] = scratchSize(c, 1)
	}
	switch {
	case !restores:
		reaches(add(ContainerVerifyHash, "verify-hash", stored), store)
	case keeps(b):
		reaches(add(ContainerVerifyHash, "verify-hash", stored, []string{"--record=false"}), store)
	default:
		reaches(add(ContainerFetch, "fetch", stored, []string{"--file=" + scratchFile(b)}), store).WithVolumeMounts(scratch())
	}
	if restores {
		v, err := newestVersion(c)
		if err != nil {
			return nil, err
		}
		add(ContainerRestore, "restore", restoreArgs(b, v)).WithVolumeMounts(scratch())
		steps = append(steps, scratchEtcd(c, v))
		verify := add(ContainerVerify, "verify-served", stored, []string{"--file=" + scratchFile(b), "--endpoint=" + scratchClient})
		reaches(verify, store).WithVolumeMounts(scratch())
	}
	spec.WithVolumes(corev1ac.Volume().WithName(scratchVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	last := len(steps) - 1
	spec.WithInitContainers(steps[:last]...).WithContainers(steps[last])
	return agentJob(b, c, store, b.JobName(b.Status.Attempt), spec), nil
}

// keeps: the plain copy that a save leaves is what is restored, because the Job has no key to
// decrypt what was stored.
func keeps(b *api.EtcdBackup) bool {
	return b.Encryption() != nil && b.Verification() == api.VerifyRestore
}

func scratch() *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(scratchVolume).WithMountPath(scratchMount)
}

func scratchFile(b *api.EtcdBackup) string { return scratchMount + "/" + b.Status.Name + ".db" }

func saveArgs(b *api.EtcdBackup, c *api.EtcdCluster) []string {
	args := []string{
		"--endpoints=" + strings.Join(endpoints(c), ","),
		"--cluster=" + c.Namespace + "/" + c.Name,
		"--cluster-id=" + b.Status.ClusterID,
	}
	if encryption := b.Encryption(); encryption != nil {
		for _, recipient := range encryption.Recipients {
			args = append(args, "--recipient="+string(recipient))
		}
	}
	if keeps(b) {
		args = append(args, "--keep="+scratchMount)
	}
	return args
}

// endpoints are those of all members, so that the one with the newest data can be chosen: the
// Service leads to any of them.
func endpoints(c *api.EtcdCluster) []string {
	var urls []string
	for _, m := range c.Status.Members {
		if m.ID != "" && m.Role != api.RoleLearner {
			urls = append(urls, c.ClientURL(m.Name))
		}
	}
	if len(urls) == 0 {
		urls = append(urls, c.ClientServiceURL(c.ClientTLS()))
	}
	return urls
}

// restoreArgs leave the revisions as they are: what is served is compared at the revision of the
// snapshot.
func restoreArgs(b *api.EtcdBackup, version string) []string {
	return []string{
		"--file=" + scratchFile(b),
		"--data-dir=" + scratchData,
		"--name=" + scratchName,
		"--initial-cluster=" + scratchName + "=" + scratchPeer,
		"--initial-cluster-token=" + scratchToken,
		"--initial-advertise-peer-urls=" + scratchPeer,
		"--etcd-version=" + version,
		"--bump-revision=0",
		"--mark-compacted=false",
	}
}

// scratchResources are those of an etcd that serves a copy of the data, to be read once.
func scratchResources(c *api.EtcdCluster) *corev1ac.ResourceRequirementsApplyConfiguration {
	resources := corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
		corev1.ResourceCPU:    etcdCPU.DeepCopy(),
		corev1.ResourceMemory: etcdMemory.DeepCopy(),
	})
	if r := c.Spec.Resources; r != nil {
		if limit, ok := r.Limits[corev1.ResourceMemory]; ok && limit.Cmp(etcdMemory) >= 0 {
			resources.WithLimits(corev1.ResourceList{corev1.ResourceMemory: limit.DeepCopy()})
		}
	}
	return resources
}

// scratchEtcd serves what was restored, beside the container that looks at it, and ends with that.
func scratchEtcd(c *api.EtcdCluster, version string) *corev1ac.ContainerApplyConfiguration {
	resources := scratchResources(c)
	(*resources.Requests)[corev1.ResourceEphemeralStorage] = scratchSize(c, 2) // the copy, and what is restored from it
	return corev1ac.Container().
		WithName(Container).
		WithImage(Image(c, version)).
		WithImagePullPolicy(pullPolicy(c)).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithCommand(etcdProgram).
		WithArgs(
			"--name="+scratchName,
			"--data-dir="+scratchData,
			"--listen-client-urls="+scratchClient,
			"--advertise-client-urls="+scratchClient,
			"--listen-peer-urls="+scratchPeer,
			"--initial-advertise-peer-urls="+scratchPeer,
			"--initial-cluster="+scratchName+"="+scratchPeer,
			"--initial-cluster-token="+scratchToken,
			fmt.Sprintf("--quota-backend-bytes=%d", int64(scratchQuota)),
		).
		WithResources(resources).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(confined()).
		WithVolumeMounts(scratch())
}

// scratchSize is what so many copies of the database take. A snapshot is no larger.
func scratchSize(c *api.EtcdCluster, copies int) resource.Quantity {
	size := scratchSpare.DeepCopy()
	if c.Status.DBSize != nil {
		for range copies {
			size.Add(*c.Status.DBSize)
		}
	}
	return size
}

// newestVersion is the highest that a member runs: the snapshot may be that member's, and no older
// etcd would serve it.
func newestVersion(c *api.EtcdCluster) (string, error) {
	var newest *version.Version
	for _, m := range slices.Concat(c.Status.Members, []api.MemberStatus{{Version: c.Status.Version}}) {
		if v, err := version.ParseSemantic(m.Version); err == nil && (newest == nil || newest.LessThan(v)) {
			newest = v
		}
	}
	if newest == nil {
		return "", fmt.Errorf("no member of EtcdCluster %s has said which version it runs", c.Name)
	}
	return newest.String(), nil
}

// DeletionJob deletes what the attempts of an EtcdBackup have stored, and may have stored, and
// nothing of a cluster with another ID than the EtcdBackup's. The cluster may be gone (nil).
func DeletionJob(b *api.EtcdBackup, c *api.EtcdCluster, image string) (*batchv1ac.JobApplyConfiguration, error) {
	store := b.Status.Store
	config, err := storeConfig(store)
	if err != nil {
		return nil, fmt.Errorf("EtcdBackup %s: %w", b.Name, err)
	}
	spec, err := agentPod(c, store)
	if err != nil {
		return nil, err
	}
	names := []string{b.Status.Name} // the last: when it is gone, all are
	for attempt := int32(1); attempt <= b.Status.Attempt; attempt++ {
		if name := b.SnapshotName(attempt); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	var steps []*corev1ac.ContainerApplyConfiguration
	for n, name := range names {
		container := ContainerDelete
		if n < len(names)-1 {
			container = fmt.Sprintf("%s-%d", ContainerDelete, n+1)
		}
		args := []string{"--store=" + config, "--name=" + name, "--cluster-id=" + b.Status.ClusterID}
		steps = append(steps, reaches(agent(image, container, "delete", args...), store))
	}
	last := len(steps) - 1
	spec.WithInitContainers(steps[:last]...).WithContainers(steps[last])
	return agentJob(b, c, store, b.DeletionJobName(), spec), nil
}
