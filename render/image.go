package render

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// repository is where the etcd project publishes its image.
const repository = "gcr.io/etcd-development/etcd"

// defaultTag is the default of spec.image.tag, and versionInTag what stands there for the version.
const (
	defaultTag   = "v" + versionInTag
	versionInTag = "{version}"
)

// Image is the image of an etcd version: repository:vMAJOR.MINOR.PATCH, or what spec.image.tag
// makes of the version, pinned to the digest of that version where there is one. The digest decides
// what runs, whatever the tag says.
func Image(c *api.EtcdCluster, version string) string {
	ref := imageRepository(c) + ":" + strings.ReplaceAll(imageTag(c), versionInTag, strings.TrimPrefix(version, "v"))
	if digest := imageDigest(c, version); digest != "" {
		return ref + "@" + digest
	}
	return ref
}

// imageDigest is what the image of a version is pinned to; empty for nothing.
func imageDigest(c *api.EtcdCluster, version string) string {
	if c.Spec.Image == nil {
		return ""
	}
	for _, d := range c.Spec.Image.Digests {
		if sameVersion(d.Version, version) {
			return d.Digest
		}
	}
	return ""
}

func imageTag(c *api.EtcdCluster) string {
	if c.Spec.Image == nil {
		return defaultTag
	}
	return cmp.Or(c.Spec.Image.Tag, defaultTag)
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
