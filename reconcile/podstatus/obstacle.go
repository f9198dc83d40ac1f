package podstatus

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Condition of that type; nil where the Pod has none.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	n := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if n < 0 {
		return nil
	}
	return &pod.Status.Conditions[n]
}

// Container is the status of a container or init container; nil where the kubelet has given none.
func Container(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for n := range statuses {
			if statuses[n].Name == name {
				return &statuses[n]
			}
		}
	}
	return nil
}

// LastExit is how the container ended last; nil where it never has.
func LastExit(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// Pending is why a Pod of agents, or its next container, has not started; empty where nothing is
// known to be in the way.
func Pending(pod *corev1.Pod) string {
	if problem := Unschedulable(pod); problem != "" {
		return problem
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for n := range statuses {
		if problem := Obstacle(&statuses[n], statuses[n].Image); problem != "" {
			return problem
		}
	}
	if slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !unstarted(&s) }) {
		return ""
	}
	if len(statuses) == 0 {
		return notStarted(pod, "has started no container")
	}
	return NotStarted(pod, &statuses[0])
}

// Unschedulable is the scheduler's reason, without its remark that preemption would not help
// either, and with the names of what a person has to look at where the scheduler has none; empty
// where the Pod is scheduled, or the scheduler has not tried.
func Unschedulable(pod *corev1.Pod) string {
	scheduled := Condition(pod, corev1.PodScheduled)
	if scheduled == nil || scheduled.Status != corev1.ConditionFalse || scheduled.Message == "" {
		return ""
	}
	reason, _, _ := strings.Cut(scheduled.Message, " preemption:")
	if strings.Contains(reason, "unbound immediate PersistentVolumeClaims") {
		reason = "its PersistentVolumeClaim " + strings.Join(claims(pod), " or ") +
			" is not bound: the storage class that it asks for must exist, and its provisioner must run"
	}
	return Clause("cannot be scheduled", strings.TrimSuffix(reason, "."))
}

// claims that the Pod mounts.
func claims(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// Obstacle is why the kubelet cannot start a container that is to run an image; empty where it can.
// An image that cannot be pulled has no reason in it: the kubelet alternates between several of its
// own while it tries the same thing again.
func Obstacle(s *corev1.ContainerStatus, image string) string {
	if s == nil || s.State.Waiting == nil {
		return ""
	}
	switch s.State.Waiting.Reason {
	case errImagePull, imagePullBackOff, registryUnavailable, signatureInvalid:
		return "cannot pull the image " + image
	case "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
		"PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return CannotStart(s.Name, s.State.Waiting.Message)
	}
	return ""
}

// Why a kubelet waits that cannot pull an image (pkg/kubelet/images/types.go).
const (
	errImagePull        = "ErrImagePull"
	imagePullBackOff    = "ImagePullBackOff"
	registryUnavailable = "RegistryUnavailable"
	signatureInvalid    = "SignatureValidationFailed"
)

// ImageUnavailable reports whether the kubelet cannot have the image that a container is to run: it
// pulls it in vain, or may not pull it and has none.
func ImageUnavailable(s *corev1.ContainerStatus) bool {
	if s == nil || s.State.Waiting == nil {
		return false
	}
	switch s.State.Waiting.Reason {
	case errImagePull, imagePullBackOff, registryUnavailable, signatureInvalid, "ErrImageNeverPull":
		return true
	default:
		return false
	}
}

// CannotStart is what is said of a container that the kubelet cannot start, and why.
func CannotStart(container, why string) string {
	return Clause("cannot start its container "+container, why)
}

// NotStarted is what is said of a container that should have run by now, and for which the kubelet
// has no word; empty where it has run. A Secret or a volume that cannot be mounted is in the events
// alone.
func NotStarted(pod *corev1.Pod, s *corev1.ContainerStatus) string {
	if s == nil || !unstarted(s) {
		return ""
	}
	what := "has not started its container " + s.Name
	if reason := s.State.Waiting.Reason; reason != "" {
		what += " (" + Clause(reason, cmp.Or(s.State.Waiting.Message, notReady(pod), pod.Status.Message)) + ")"
	}
	return notStarted(pod, what)
}

// NoPod is how to find out why a Job has no Pod, in words that follow "has no Pod".
func NoPod(job, namespace string) string {
	return ": kubectl describe job " + job + " -n " + namespace + " says why (a quota, a policy, a ServiceAccount that does not exist)"
}

func notStarted(pod *corev1.Pod, what string) string {
	return what + ": kubectl describe pod " + pod.Name + " -n " + pod.Namespace + " says why, such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled"
}

func unstarted(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.LastTerminationState.Terminated == nil
}

// notReady is what the kubelet says of a Pod whose network and volumes are not ready.
func notReady(pod *corev1.Pod) string {
	if c := Condition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}
