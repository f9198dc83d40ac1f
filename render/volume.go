package render

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// Volume is the claim of a member's volume, nil with storage.medium Memory.
//
// With retention.whenDeleted Retain (the default) it has no owner, so that the garbage collector
// can never take retained data, not even while no operator runs; with Delete the EtcdCluster owns
// it and they go together. StatefulSets do the same for their persistentVolumeClaimRetentionPolicy.
// Argo CD must not take one without an owner for its own (labelInstance).
//
// An annotation that Member does not give is removed by applying the claim: give what the live
// claim says.
func Volume(c *api.EtcdCluster, m Member) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	if inMemory(c) {
		return nil
	}
	size := c.Spec.Storage.Size
	if m.VolumeSize != nil {
		size = *m.VolumeSize
	}
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: size.DeepCopy()}))
	class := c.Spec.Storage.StorageClassName
	if m.VolumeSize != nil {
		class = m.VolumeClass
	} else {
		m.Storage = MadeOf(c)
	}
	if class != nil {
		spec.WithStorageClassName(*class)
	}
	if m.VolumeSize == nil || m.TLS != "" || c.ClientTLS() || c.PeerTLS() {
		m.TLS = tlsRecord(c)
	}
	claim := corev1ac.PersistentVolumeClaim(m.Name, c.Namespace).
		WithLabels(untracked(c, m.Name)).
		WithAnnotations(annotations(c, dataAnnotations(m))).
		WithAnnotations(map[string]string{annotationSyncOptions: keepUnpruned}).
		WithSpec(spec)
	if r := c.Spec.Storage.Retention; r != nil && r.WhenDeleted == api.RetentionDelete {
		claim.WithOwnerReferences(owner(c)...)
	}
	return claim
}

// VolumeCurrent reports whether applying the wanted claim would change nothing of the live one. A
// claim's spec stays as it was created, so only its metadata can differ.
func VolumeCurrent(live *corev1.PersistentVolumeClaim, want *corev1ac.PersistentVolumeClaimApplyConfiguration) (bool, error) {
	own, err := ownedOf(live)
	if err != nil {
		return false, err
	}
	return maps.Equal(own.labels, want.Labels) && maps.Equal(own.annotations, want.Annotations) &&
		slices.EqualFunc(own.owners, want.OwnerReferences, func(uid types.UID, o metav1ac.OwnerReferenceApplyConfiguration) bool {
			return uid == ptr.Deref(o.UID, "")
		}), nil
}

// dataAnnotations say whose data a volume holds.
func dataAnnotations(m Member) map[string]string {
	own := map[string]string{}
	if m.Token != "" {
		own[api.AnnotationBootstrap] = m.Token + "/" + strconv.Itoa(m.BootstrapSize)
		if m.BootstrapBase > 0 {
			own[api.AnnotationBootstrap] += "/" + strconv.Itoa(m.BootstrapBase)
		}
	}
	for key, value := range map[string]string{
		api.AnnotationVersion:   strings.TrimPrefix(cmp.Or(m.Ran, m.Version), "v"),
		api.AnnotationNext:      m.Next,
		api.AnnotationReplays:   m.Replays,
		api.AnnotationServed:    m.Served,
		api.AnnotationTLS:       m.TLS,
		api.AnnotationClusterID: m.ClusterID,
		api.AnnotationMemberID:  m.MemberID,
		api.AnnotationVolumeUID: m.VolumeUID,
		api.AnnotationJoin:      m.Join,
		api.AnnotationStorage:   m.Storage,
		api.AnnotationSnapshot:  m.Snapshot,
	} {
		if value != "" {
			own[key] = value
		}
	}
	if m.Next != "" && m.NextWith != "" {
		own[api.AnnotationNextWith] = m.NextWith
	}
	if m.Retired {
		own[api.AnnotationRetired] = "true"
	}
	return own
}

// MadeOf is what AnnotationStorage says on a claim that is made of the spec as it is.
func MadeOf(c *api.EtcdCluster) string {
	return strings.TrimSpace(c.Spec.Storage.Size.String() + " " + ptr.Deref(c.Spec.Storage.StorageClassName, ""))
}

func inMemory(c *api.EtcdCluster) bool { return c.Spec.Storage.Medium == api.MediumMemory }
