package render

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// repository is where the etcd project publishes its image.
const repository = "gcr.io/etcd-development/etcd"

// Image is the image of an etcd version: repository:vMAJOR.MINOR.PATCH, pinned to the digest where
// there is one. The digest decides what runs, whatever the tag says, and it is that of
// spec.version: a member that still runs another version must not get it.
func Image(c *api.EtcdCluster, version string) string {
	ref := imageRepository(c) + ":v" + strings.TrimPrefix(version, "v")
	if c.Spec.Image == nil || c.Spec.Image.Digest == "" || !sameVersion(version, c.Spec.Version) {
		return ref
	}
	return ref + "@" + c.Spec.Image.Digest
}

func sameVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

func imageRepository(c *api.EtcdCluster) string {
	if c.Spec.Image == nil || c.Spec.Image.Repository == "" {
		return repository
	}
	return c.Spec.Image.Repository
}

// pullPolicy is never left to Kubernetes, whose default depends on the tag.
func pullPolicy(c *api.EtcdCluster) corev1.PullPolicy {
	if c.Spec.Image == nil || c.Spec.Image.PullPolicy == "" {
		return corev1.PullIfNotPresent
	}
	return c.Spec.Image.PullPolicy
}
