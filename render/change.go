package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// Change is what it takes to make a live Pod what the spec asks for, from nothing to everything.
type Change string

// The changes. A Pod is almost immutable: its image can be changed, which restarts its container
// where it is, on the same volume and with the same address, and so can cpu and memory, which
// restarts nothing.
const (
	ChangeNone      Change = ""
	ChangeResources Change = "Resources"
	ChangeImage     Change = "Image"
	ChangePod       Change = "Pod" // the Pod is recreated
)

// Needs is the change that a live Pod needs to be the one of this member, the largest where there
// are several, and the names of the parts of the spec that lead to it; "version" is one of them.
func Needs(live *corev1.Pod, c *api.EtcdCluster, m Member) (Change, []string, error) {
	want, err := Pod(c, m)
	if err != nil {
		return ChangeNone, nil, err
	}
	etcd := etcdOf(live)
	if etcd == nil {
		return ChangePod, []string{"image"}, nil
	}
	parts := differing(live, etcd, c, m, want)
	change := ChangeNone
	for _, part := range parts {
		switch part {
		case "resources":
			if !resizable(live, etcd, want.Spec.Containers[0].Resources, inMemory(c)) {
				return ChangePod, parts, nil
			}
			if change == ChangeNone {
				change = ChangeResources
			}
		case "image", "version":
			if !sameAround(live, etcd, want) {
				return ChangePod, parts, nil
			}
			change = ChangeImage
		default:
			return ChangePod, parts, nil
		}
	}
	return change, parts, nil
}

// quotaOf is the limit of the database's size in etcd's arguments, which grows with a small volume.
func quotaOf(args []string) string {
	n := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, quotaFlag) })
	if n < 0 {
		return ""
	}
	return args[n]
}

const quotaFlag = "--quota-backend-bytes="

// Quota is the limit of the database's size that a live Pod's etcd was started with, in bytes.
func Quota(live *corev1.Pod) int64 {
	if etcd := etcdOf(live); etcd != nil {
		return quotaIn(etcd.Args)
	}
	return 0
}

// QuotaOf is the limit that the Pod of a member has when it is made of the spec.
func QuotaOf(c *api.EtcdCluster, m Member) int64 {
	return quotaIn(append(smallVolumeArgs(c, m), optionArgs(c.Spec.Options, newest)...))
}

func quotaIn(args []string) int64 {
	limit, err := strconv.ParseInt(strings.TrimPrefix(quotaOf(args), quotaFlag), 10, 64)
	if err != nil || limit == 0 {
		return defaultQuota
	}
	return limit
}

// differing are the parts of the spec in which a live Pod differs from the wanted one, "version"
// among them.
func differing(live *corev1.Pod, etcd *corev1.Container, c *api.EtcdCluster, m Member, want *corev1ac.PodApplyConfiguration) []string {
	parts := Outdated(c, live)
	if Infeasible(live) && !slices.Contains(parts, "resources") {
		parts = append(parts, "resources")
	}
	wanted := want.Spec.Containers[0]
	image := AppliedImage(c, live)
	runs, _ := ImageVersion(image)
	if !sameVersion(runs, m.Version) {
		parts = append(parts, "version")
	} else if image != *wanted.Image && !slices.Contains(parts, "image") {
		parts = append([]string{"image"}, parts...)
	}
	if !inMemory(c) && !recordedAround(live, want) && quotaOf(etcd.Args) != quotaOf(wanted.Args) && !slices.Contains(parts, "options") {
		parts = append(parts, "storage.size")
	}
	return parts
}

// InPlace are the changes toward the wanted Pod of this member that need no new Pod,
// ChangeResources and ChangeImage, also where another part of the spec needs one.
func InPlace(live *corev1.Pod, c *api.EtcdCluster, m Member) ([]Change, error) {
	want, err := Pod(c, m)
	etcd := etcdOf(live)
	if err != nil || etcd == nil {
		return nil, err
	}
	var changes []Change
	parts := differing(live, etcd, c, m, want)
	if slices.Contains(parts, "resources") && resizable(live, etcd, want.Spec.Containers[0].Resources, inMemory(c)) {
		changes = append(changes, ChangeResources)
	}
	if (slices.Contains(parts, "image") || slices.Contains(parts, "version")) && sameAround(live, etcd, want) {
		changes = append(changes, ChangeImage)
	}
	return changes, nil
}

// resizable reports whether a running container can be given the wanted resources: requests and
// limits of the same kinds, which make the same class of Pod, of cpu and memory, and no lower limit
// of memory, which its processes may be above. Where the node has found that it cannot, it never
// will, and the Pod is recreated. A Pod that stays, because its data is in memory, may be asked to
// take less than that, and no less than it has.
func resizable(live *corev1.Pod, etcd *corev1.Container, want *corev1ac.ResourceRequirementsApplyConfiguration, stays bool) bool {
	var requests, limits corev1.ResourceList
	if want != nil {
		requests, limits = ptr.Deref(want.Requests, nil), ptr.Deref(want.Limits, nil)
	}
	sameKinds := func(a, b corev1.ResourceList) bool {
		return len(a) == len(b) && !slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(name corev1.ResourceName) bool {
			other, ok := b[name]
			mine := a[name]
			return !ok || name == corev1.ResourceEphemeralStorage && mine.Cmp(other) != 0
		})
	}
	guaranteed := func(requests, limits corev1.ResourceList) bool { return equality.Semantic.DeepEqual(requests, limits) }
	least, infeasible := etcd.Resources.Limits.Memory(), Infeasible(live)
	if has := statusResources(live); stays && has != nil && !has.Limits.Memory().IsZero() {
		asked := equality.Semantic.DeepEqual(requests, etcd.Resources.Requests) && equality.Semantic.DeepEqual(limits, etcd.Resources.Limits)
		least, infeasible = has.Limits.Memory(), infeasible && asked
	}
	lower := limits.Memory().Cmp(*least) < 0
	return sameKinds(requests, etcd.Resources.Requests) && sameKinds(limits, etcd.Resources.Limits) && !lower &&
		guaranteed(requests, limits) == guaranteed(etcd.Resources.Requests, etcd.Resources.Limits) && !infeasible
}

// statusResources are the cpu and memory that the kubelet has given etcd; nil where it says none.
func statusResources(pod *corev1.Pod) *corev1.ResourceRequirements {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == Container {
			return s.Resources
		}
	}
	return nil
}

// Infeasible reports whether the node has found that it cannot give a Pod the resources that it
// asks for now.
func Infeasible(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible && c.Status == corev1.ConditionTrue
	})
}

// sameAround reports whether all that depends on the version or comes with the image, and cannot be
// changed, is as wanted: it was asked for, or the Pod has it.
func sameAround(live *corev1.Pod, etcd *corev1.Container, want *corev1ac.PodApplyConfiguration) bool {
	if recordedAround(live, want) {
		return true
	}
	wanted := want.Spec.Containers[0]
	secrets := make([]string, 0, len(live.Spec.ImagePullSecrets))
	for _, s := range live.Spec.ImagePullSecrets {
		secrets = append(secrets, s.Name)
	}
	wantedSecrets := make([]string, 0, len(want.Spec.ImagePullSecrets))
	for _, s := range want.Spec.ImagePullSecrets {
		wantedSecrets = append(wantedSecrets, *s.Name)
	}
	return slices.Equal(etcd.Args, wanted.Args) && slices.Equal(secrets, wantedSecrets) && etcd.ImagePullPolicy == *wanted.ImagePullPolicy
}

// recordedAround reports whether that was asked for in the live Pod.
func recordedAround(live *corev1.Pod, want *corev1ac.PodApplyConfiguration) bool {
	_, around := record(live)
	_, wanted, _ := strings.Cut(want.Annotations[api.AnnotationApplied], " ")
	return around == wanted
}

// PodImage is a live Pod that runs another image, with the annotations that go with its version;
// everything else is as it was applied last. Where Needs says ChangeImage, that is allowed.
func PodImage(live *corev1.Pod, c *api.EtcdCluster, m Member, image string) (*corev1ac.PodApplyConfiguration, error) {
	pod, etcd, err := appliedPod(live)
	if err != nil {
		return nil, err
	}
	made := revisionOf(live)
	if image == Image(c, m.Version) {
		made = made.with(revision(c), "image")
	} else { // it is put back to what it had
		made = made.with(parts{{"image", "previous"}}, "image")
	}
	v, err := parseVersion(m.Version)
	if err != nil {
		return nil, fmt.Errorf("version of member %s: %w", m.Name, err)
	}
	annotations, err := podAnnotations(c, m, made.String(), applied(c, m, v, image))
	if err != nil {
		return nil, err
	}
	pod.Labels, pod.Annotations = podLabels(c, m), annotations
	etcd.WithImage(image)
	return pod, nil
}

// appliedPod is a live Pod as it was applied last, and its container in that. Where what the API
// server remembers of it (metadata.managedFields) was cleared, nothing was: what is applied then is
// taken over, and the rest stays as it is.
func appliedPod(live *corev1.Pod) (*corev1ac.PodApplyConfiguration, *corev1ac.ContainerApplyConfiguration, error) {
	pod, err := corev1ac.ExtractPod(live, api.Manager)
	if err != nil {
		return nil, nil, fmt.Errorf("extract Pod %s: %w", live.Name, err)
	}
	if pod.Spec == nil {
		pod.WithSpec(corev1ac.PodSpec())
	}
	isEtcd := func(c corev1ac.ContainerApplyConfiguration) bool { return ptr.Deref(c.Name, "") == Container }
	n := slices.IndexFunc(pod.Spec.Containers, isEtcd)
	if n < 0 {
		n = len(pod.Spec.Containers)
		pod.Spec.WithContainers(corev1ac.Container().WithName(Container))
	}
	return pod, &pod.Spec.Containers[n], nil
}

// PodResources is a live Pod with other cpu and memory, to be applied to its subresource resize,
// and then as a whole.
func PodResources(live *corev1.Pod, c *api.EtcdCluster) (*corev1ac.PodApplyConfiguration, error) {
	pod, etcd, err := appliedPod(live)
	if err != nil {
		return nil, err
	}
	pod.WithAnnotations(map[string]string{api.AnnotationRevision: revisionOf(live).with(revision(c), "resources").String()})
	etcd.Resources = nil
	if r := c.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		etcd.WithResources(resources(r))
	}
	return pod, nil
}

// Resourced reports whether the kubelet has given a Pod the cpu and memory that its spec asks for,
// or never will.
func Resourced(pod *corev1.Pod) bool {
	if Infeasible(pod) {
		return true
	}
	has, etcd := statusResources(pod), etcdOf(pod)
	return has == nil || etcd == nil || equality.Semantic.DeepEqual(etcd.Resources.Requests, has.Requests) &&
		equality.Semantic.DeepEqual(etcd.Resources.Limits, has.Limits)
}

// revisionOf is what a live Pod was made of.
func revisionOf(live *corev1.Pod) parts {
	var made parts
	for field := range strings.SplitSeq(live.Annotations[api.AnnotationRevision], ",") {
		name, hash, _ := strings.Cut(field, "=")
		made = append(made, part{name, hash})
	}
	return made
}

// hashOf is that of one part; empty where it is not named.
func (ps parts) hashOf(name string) string {
	for _, p := range ps {
		if p.name == name {
			return p.hash
		}
	}
	return ""
}

// with takes over one part of another revision.
func (ps parts) with(other parts, name string) parts {
	changed := slices.Clone(ps)
	for n := range changed {
		for _, p := range other {
			if changed[n].name == name && p.name == name {
				changed[n].hash = p.hash
			}
		}
	}
	return changed
}

func etcdOf(pod *corev1.Pod) *corev1.Container {
	for n := range pod.Spec.Containers {
		if pod.Spec.Containers[n].Name == Container {
			return &pod.Spec.Containers[n]
		}
	}
	return nil
}

// ImageVersion is the version that Image has put into the tag of an image, whatever spec.image.tag
// was then; false where the tag has none. What really runs only the member itself can tell.
func ImageVersion(image string) (string, bool) {
	name, _, _ := strings.Cut(image, "@")
	tag := name[strings.LastIndex(name, ":")+1:]
	if tag == name {
		return "", false
	}
	v := versionInName.FindString(tag)
	_, err := parseVersion(v)
	return v, err == nil
}

// versionInName is the one version that a tag has in it.
var versionInName = regexp.MustCompile(`(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)`)
