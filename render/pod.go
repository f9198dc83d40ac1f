package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// Container is the name of the container that runs etcd.
const Container = "etcd"

// user runs etcd by default: the one called nonroot in the distroless base of the official image,
// which by itself would run as root. It owns the data on every volume, so it never changes.
const user = 65532

// terminationGrace lets etcd hand over its leadership, which it does by itself on SIGTERM, and
// close its database; both take a few seconds at most on a healthy cluster, more when the disk or
// the other members are slow.
const terminationGrace = 30

// Pod is the Pod of one member. The spec is one that the schema takes (package crd), or that has
// served (Member.Proved).
func Pod(c *api.EtcdCluster, m Member) (*corev1ac.PodApplyConfiguration, error) {
	v, err := versionOf(m)
	if err != nil {
		return nil, err
	}
	if !m.Proved {
		if err := validateFlagsFor(c, v); err != nil {
			return nil, err
		}
	}
	etcd := container(c, m, v)
	spec := corev1ac.PodSpec().
		WithHostname(m.Name).
		WithSubdomain(c.Name).
		WithTerminationGracePeriodSeconds(terminationGrace).
		WithAutomountServiceAccountToken(false).
		// A Service called etcd would put ETCD_PORT and the like into the environment, and etcd
		// reads ETCD_*.
		WithEnableServiceLinks(false).
		WithSecurityContext(podSecurity(c)).
		WithVolumes(volume(c, m)).
		WithImagePullSecrets(pullSecrets(c)...)
	if name := serviceAccount(c); name != "" {
		spec.WithServiceAccountName(name)
	}
	secured(spec, etcd, c, m)
	spec.WithContainers(etcd)
	if err := schedule(spec, c); err != nil {
		return nil, err
	}
	annotations, err := podAnnotations(c, m, append(revision(c), part{partMetadata, hash(askedMetadata(c))}).String(), applied(c, m, v, Image(c, m.Version)))
	if err != nil {
		return nil, err
	}
	pod := corev1ac.Pod(m.Name, c.Namespace).
		WithLabels(podLabels(c, m)).
		WithAnnotations(annotations).
		WithOwnerReferences(owner(c)...).
		WithSpec(spec)
	if m.Restore != "" {
		if err := restoring(pod, c, m); err != nil {
			return nil, err
		}
	}
	clearing(pod, c, m)
	return pod, nil
}

// PodMetadata is a live Pod with the labels and annotations that Pod would give it and everything
// else as it was applied last, so that metadata and what etcd is told at its next start can change
// under a running container. The revision and what was asked for stay: they tell what the spec of
// this Pod was made of (revisionNow). The result is nil where nothing differs.
func PodMetadata(live *corev1.Pod, c *api.EtcdCluster, m Member) (*corev1ac.PodApplyConfiguration, error) {
	own, err := ownedOf(live)
	if err != nil {
		return nil, err
	}
	labels := podLabels(c, m)
	annotations, err := podAnnotations(c, m, revisionNow(c, live), live.Annotations[api.AnnotationApplied])
	if err != nil {
		return nil, err
	}
	if reads(live, "INITIAL_CORRUPT_CHECK") {
		annotations[api.AnnotationInitialCorruptCheck] = strconv.FormatBool(m.InitialCorruptCheck)
	}
	if maps.Equal(own.labels, labels) && maps.Equal(own.annotations, annotations) {
		return nil, nil
	}
	pod, err := corev1ac.ExtractPod(live, api.Manager)
	if err != nil {
		return nil, fmt.Errorf("extract Pod %s: %w", live.Name, err)
	}
	pod.Labels, pod.Annotations = labels, annotations
	return pod, nil
}

// reads reports whether the container of a Pod takes a variable from an annotation.
func reads(pod *corev1.Pod, variable string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
	})
}

func podAnnotations(c *api.EtcdCluster, m Member, revision, applied string) (map[string]string, error) {
	v, err := versionOf(m)
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	if inMemory(c) { // the Pod is the volume
		own = dataAnnotations(m)
	}
	own[api.AnnotationInitialCluster] = m.InitialCluster
	own[api.AnnotationInitialClusterState] = m.InitialClusterState
	own[api.AnnotationCheckAtStart], own[api.AnnotationCheckCompacted] = integrityFlags(m.InitialCorruptCheck, v)
	own[api.AnnotationRevision] = revision
	if applied != "" {
		own[api.AnnotationApplied] = applied
	}
	if m.Restore != "" {
		own[api.AnnotationRestore] = m.Restore
	}
	if m.Previous != "" {
		own[api.AnnotationPrevious] = m.Previous
	}
	return annotations(c, own, podMetadata(c)), nil
}

// versionOf is the version that the Pod of a member is to run. One that has run on its volume may
// be none that is supported any more.
func versionOf(m Member) (*version.Version, error) {
	parse := parseVersion
	if m.Proved {
		parse = version.ParseSemantic
	}
	v, err := parse(m.Version)
	if err != nil {
		return nil, fmt.Errorf("version of member %s: %w", m.Name, err)
	}
	return v, nil
}

func container(c *api.EtcdCluster, m Member, v *version.Version) *corev1ac.ContainerApplyConfiguration {
	etcd := corev1ac.Container().
		WithName(Container).
		WithImage(Image(c, m.Version)).
		WithImagePullPolicy(pullPolicy(c)).
		WithCommand(etcdProgram).
		WithArgs(args(c, m, v)...).
		WithEnv(
			fromAnnotation(envInitialCluster, api.AnnotationInitialCluster),
			fromAnnotation(EnvInitialClusterState, api.AnnotationInitialClusterState),
			fromAnnotation(envCheckAtStart, api.AnnotationCheckAtStart),
			fromAnnotation(envCheckCompacted, api.AnnotationCheckCompacted),
		).
		WithPorts(
			containerPort("client", api.PortClient),
			containerPort("peer", api.PortPeer),
			containerPort("metrics", api.PortMetrics),
		).
		// etcd has no file for its last words; so its log's last lines tell in the Pod's status why
		// it ended.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithStartupProbe(startupProbe()).
		WithLivenessProbe(livenessProbe()).
		WithReadinessProbe(readinessProbe(c)).
		WithSecurityContext(confined()).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(dataVolume).WithMountPath(dataMount))
	if r := c.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		etcd.WithResources(resources(r))
	}
	return etcd
}

func pullSecrets(c *api.EtcdCluster) []*corev1ac.LocalObjectReferenceApplyConfiguration {
	if c.Spec.Image == nil {
		return nil
	}
	var secrets []*corev1ac.LocalObjectReferenceApplyConfiguration
	for _, s := range c.Spec.Image.PullSecrets {
		secrets = append(secrets, corev1ac.LocalObjectReference().WithName(s.Name))
	}
	return secrets
}

func resources(r *api.Resources) *corev1ac.ResourceRequirementsApplyConfiguration {
	ac := corev1ac.ResourceRequirements()
	if len(r.Requests) > 0 {
		ac.WithRequests(r.Requests.DeepCopy())
	}
	if len(r.Limits) > 0 {
		ac.WithLimits(r.Limits.DeepCopy())
	}
	return ac
}

// fromAnnotation is an environment variable that the kubelet reads from the Pod's annotations each
// time it starts the container. A Pod's arguments cannot change, but its annotations can: that is
// how a Pod of the first start is told, once the cluster has formed, that from its next start on it
// must find its data (see Resume).
func fromAnnotation(name, annotation string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(fieldRef(annotation)))
}

func fieldRef(annotation string) *corev1ac.ObjectFieldSelectorApplyConfiguration {
	return corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.annotations['" + annotation + "']")
}

func containerPort(name string, port int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)
}

// volume is the member's claim, or a tmpfs that lives as long as the Pod.
func volume(c *api.EtcdCluster, m Member) *corev1ac.VolumeApplyConfiguration {
	v := corev1ac.Volume().WithName(dataVolume)
	if inMemory(c) {
		return v.WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).
			WithSizeLimit(c.Spec.Storage.Size.DeepCopy()))
	}
	return v.WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(m.Name))
}
