package render

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// What a policy of the API server makes of a Pod, in the very request that applies it, is nothing
// that the spec has asked for. If the spec were compared with that, the cluster would never be what
// it is to be, and its Pods would be changed again and again. So a Pod says what was asked for in
// it (AnnotationApplied), and that is compared.

// applied is what AnnotationApplied says of the Pod of a member with this image. Arguments that
// name the member, and the token of its first start, are left out: they are its own for ever.
func applied(c *api.EtcdCluster, m Member, v *version.Version, image string) string {
	m.Token = ""
	flags := slices.DeleteFunc(args(c, m, v), func(arg string) bool { return strings.Contains(arg, m.Name) })
	return image + " " + hash([]any{flags, pullPolicy(c), pullSecrets(c)})
}

// record is what a live Pod says of that; empty where it is of an earlier release.
func record(live *corev1.Pod) (image, around string) {
	image, around, _ = strings.Cut(live.Annotations[api.AnnotationApplied], " ")
	return image, around
}

// AppliedImage is the image that Quorate has asked for in a live Pod. Where another manager has set
// it since, or the Pod does not say what was asked for, it is the one that the Pod has.
func AppliedImage(c *api.EtcdCluster, live *corev1.Pod) string {
	etcd := etcdOf(live)
	if etcd == nil {
		return ""
	}
	if !Rewritten(c, live) {
		return etcd.Image
	}
	// The image is no field of Quorate's any more once another manager has set it. It stays one
	// where a policy has rewritten it: that is done to the request after the API server has noted
	// which fields it sets.
	if _, ours, err := appliedPod(live); err != nil || ours.Image == nil {
		return etcd.Image
	}
	return askedImage(c, live, etcd.Image)
}

// Rewritten reports whether a live Pod has another image than Quorate has asked for in it last: a
// policy has made that of it, or a person.
func Rewritten(c *api.EtcdCluster, live *corev1.Pod) bool {
	etcd := etcdOf(live)
	return etcd != nil && askedImage(c, live, etcd.Image) != etcd.Image
}

// askedImage is what Quorate has asked for last in a Pod that has an image. Where the Pod does not
// say, that is the image of spec.image at the version that it has, if the Pod was made of this
// spec.image and has its image from elsewhere.
func askedImage(c *api.EtcdCluster, live *corev1.Pod, has string) string {
	if image, _ := record(live); image != "" {
		return image
	}
	ran, ok := ImageVersion(has)
	if !ok || strings.HasPrefix(has, imageRepository(c)+":") || slices.Contains(Outdated(c, live), "image") {
		return has
	}
	return Image(c, ran)
}

// Asks reports whether what is to be applied to a Pod, or came of it, has that image.
func Asks(pod *corev1ac.PodApplyConfiguration, image string) bool {
	return pod.Spec != nil && slices.ContainsFunc(pod.Spec.Containers, func(c corev1ac.ContainerApplyConfiguration) bool {
		return ptr.Deref(c.Name, "") == Container && ptr.Deref(c.Image, "") == image
	})
}
