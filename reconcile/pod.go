package reconcile

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// podFacts reads from a Pod what the planner may know of it.
func podFacts(c *api.EtcdCluster, pod *corev1.Pod, l limits) membership.Pod {
	p := membership.Pod{UID: string(pod.UID), NeverRan: neverRan(containerStatus(pod))}
	p.Foreign, p.Terminating = belongs(c, pod)
	p.Ended = ended(pod)
	p.Problem, p.PutOff = podProblem(pod), putOff(pod)
	p.Failing = (failing(pod) || rejected(pod)) && !inconsistent(pod) // else it is started again without that check
	if v, ok := render.ImageVersion(render.AppliedImage(c, pod)); ok {
		p.Version, _ = membership.ParseVersion(v) // the zero Version where the name says none
	}
	if p.Provisions = pod.Annotations[api.AnnotationProvisions] != ""; p.Provisions {
		p.Provisioned = atGate(containerStatus(pod)) && pod.Status.PodIP != "" && !p.Ended
	} else {
		p.Unfenced = pod.Annotations[api.AnnotationInitialCluster] != render.Resume(c, pod.Name) ||
			pod.Annotations[api.AnnotationInitialClusterState] != render.StateExisting || pod.Annotations[api.AnnotationRestore] != ""
	}
	p.ImageUnavailable = podstatus.ImageUnavailable(containerStatus(pod))
	p.Restoring, p.Cleared = restores(pod), clears(pod)
	if p.Problem == "" && nodeGone(pod, l.now) {
		p.Problem, p.Damaged = "is on a node that does not answer ("+pod.Spec.NodeName+")", true
	}
	p.Damaged = p.Damaged || damaged(pod)
	p.Starved = starved(pod)
	since := downSince(c, pod, l.now)
	overdueFacts(&p, pod, since, l)
	p.Forsaken = p.Problem != "" && p.Damaged && since.Before(l.replaceBefore)
	p.Empty = cameBackEmpty(pod, p.Unfenced, l.now)
	p.EmptyLong = p.Empty && emptySince(c, pod, since, l.now).Before(l.replaceEmptyBefore)
	if p.Empty {
		p.Problem = "has a volume that came back empty: etcd was told to find its data there, and found none"
	}
	p.Ready, p.ReadyLong, p.UnreadyLong = readyFacts(pod, since, l)
	p.Away = pod.DeletionTimestamp.IsZero() && nodeGone(pod, l.now)
	p.AwayLong = forgotten(pod, l)
	p.Idle, p.IdleLong = idleFacts(pod, l)
	p.Deferred = deferredSince(pod, l.stallBefore)
	p.BackOff, p.Outgrown = backOff(pod), saysOutgrown(pod)
	p.Crashes = crashes(pod) && p.Outgrown == 0 && !p.Empty
	p.Young = p.BackOff && pod.CreationTimestamp.After(l.now.Add(-l.pause)) || p.Ended && pod.CreationTimestamp.After(l.now.Add(-betweenEnded))
	return p
}

// crashes reports whether etcd has ended again and again by itself: zap exits with 1, and Go panics
// with 2. Where its node has said why, or it has itself, it is that, and no fault of etcd.
func crashes(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	if s == nil || s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || !damaged(pod) || inconsistent(pod) {
		return false
	}
	exit := podstatus.LastExit(s)
	return exit != nil && (exit.ExitCode == 1 || exit.ExitCode == 2) && !strings.Contains(exit.Message, "no space left on device")
}

// neverRan reports whether no process of a container has ever started.
func neverRan(s *corev1.ContainerStatus) bool {
	return s == nil || s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil && s.RestartCount == 0
}

// damaged reports whether it is the member's data, or the node that has it, which keeps it down. An
// image, also one for another architecture, a quota, a place to run, memory or a flag that etcd
// does not know are not: for a new member they would be the same.
func damaged(pod *corev1.Pod) bool {
	if scheduled := podstatus.Condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return volumeOnLostNode(scheduled.Message)
	}
	s := containerStatus(pod)
	if s == nil || s.Ready || pod.Annotations[api.AnnotationProvisions] != "" || putOff(pod) {
		return false
	}
	exit := podstatus.LastExit(s)
	if exit == nil {
		return false
	}
	switch exit.Reason {
	case podstatus.OOMKilled, "StartError", "ContainerCannotRun":
		return false
	}
	notItsData := []string{"flag", "unrecognized level", "exec format error", "found data inconsistency with peers"}
	return exit.ExitCode != 0 && !slices.ContainsFunc(notItsData, func(said string) bool { return strings.Contains(exit.Message, said) })
}

// How the scheduler says that nodes are not those of the volume, today and in earlier releases, and
// that there is no volume behind the claim any more. Taints it counts apart: those of a control
// plane, and of nodes that do not answer.
var (
	elsewhere = regexp.MustCompile(`^0/\d+ nodes are available: (?:\d+ node\(s\) (?:had untolerated taint(?:\(s\)| \{[^}]*\})|had volume node affinity conflict|didn't match PersistentVolume's node affinity)(?:, |\.|$))+`)
	affinity  = regexp.MustCompile(`volume node affinity conflict|didn't match PersistentVolume's node affinity`)
	noVolume  = regexp.MustCompile(`(?i)bound to non-existent (?:pv\(s\)|persistentvolume)`)
)

// volumeOnLostNode reports whether the volume is on none of the nodes that answer, or is no more.
// Where its node is only cordoned or full, the scheduler counts it apart, and it may come back.
func volumeOnLostNode(reason string) bool {
	if noVolume.MatchString(reason) {
		return true
	}
	reasons := elsewhere.FindString(reason)
	rest := strings.TrimPrefix(reason, reasons)
	return affinity.MatchString(reasons) && (rest == "" || strings.HasPrefix(rest, " "))
}

// inconsistent reports whether etcd has ended since its check at the start has found another member
// with other data (InitialCheck in server/etcdserver/corrupt.go), and was not started again since.
// It says that the two differ, and not which of them is wrong.
func inconsistent(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	return s != nil && s.State.Running == nil && saysInconsistent(s)
}

func saysInconsistent(s *corev1.ContainerStatus) bool {
	exit := podstatus.LastExit(s)
	return exit != nil && strings.Contains(exit.Message, "found data inconsistency with peers")
}

// atGate reports whether the kubelet has done all that comes before the start of a member to come
// (render.Provisioner), or does not know yet that it may start.
func atGate(s *corev1.ContainerStatus) bool {
	return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerConfigError" &&
		strings.Contains(s.State.Waiting.Message, "missing value for "+render.EnvInitialClusterState)
}

// failing reports whether the kubelet has tried more than once to run etcd, and puts off the next
// try.
func failing(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	if s == nil || s.State.Waiting == nil || atGate(s) || putOff(pod) {
		return false
	}
	switch s.State.Waiting.Reason {
	case "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "CrashLoopBackOff",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
		"PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return true
	default:
		return false
	}
}

// putOff reports whether the container that the Pod was changed to has not come even once, and the
// kubelet waits before it starts it: it does so where the same image ran in this Pod lately,
// however that ended (doBackOff in pkg/kubelet/kuberuntime/kuberuntime_manager.go; the back-off is
// that of a container as it is specified).
func putOff(pod *corev1.Pod) bool {
	before, _, changed := ranBefore(pod)
	s := containerStatus(pod)
	return changed && s != nil && s.ContainerID == before && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
}

// unsettled reports whether the Pod was changed under its container, and no container that came
// after that has answered, or the one that answers has not been given its resources yet. One that
// is away gets them when it comes. Where the volume says that what the Pod is to run has run on it,
// one has answered.
func unsettled(pod *corev1.Pod, i membership.Instance) bool {
	before, image, changed := ranBefore(pod)
	if !changed {
		return i.Endpoint.Answered() && !render.Resourced(pod)
	}
	s := containerStatus(pod)
	if s == nil || s.ContainerID == before {
		return true
	}
	from, _ := render.ImageVersion(image)
	if i.Pod.Version != (membership.Version{}) && i.Volume.Version == i.Pod.Version && from != i.Pod.Version.String() {
		return false
	}
	return !i.Endpoint.Answered() || s.State.Running == nil
}

// ended reports whether the kubelet has given the Pod up: evicted it, refused it, or shut the node
// down. It stays so.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// betweenEnded is how long after a Pod was created it is recreated at the earliest when its kubelet
// has ended it. One that refuses each would otherwise be given another one every second.
const betweenEnded = 10 * time.Second

// rejected reports whether a Pod has ended because of what it asks for, so that its kubelet would
// refuse or evict any other Pod like it: its cpus do not fit the cores of the node
// (pkg/kubelet/cm/cpumanager and topologymanager), or it has used more local storage than its limit
// (pkg/kubelet/eviction/eviction_manager.go). A node that has run out of something, or shuts down,
// says nothing of the Pod.
func rejected(pod *corev1.Pod) bool {
	switch pod.Status.Reason {
	case "SMTAlignmentError", "TopologyAffinityError":
		return ended(pod)
	case "Evicted":
		return ended(pod) && ownLocalStorage.MatchString(pod.Status.Message)
	case "":
		return outOfOwnStorage(pod)
	default:
		return false
	}
}

// outOfOwnStorage reports whether a Pod was evicted for more local data than its limit, as far as
// that can be told where etcd has ended in good order: the Pod has Succeeded then, and the reason
// is gone (seen with Kubernetes 1.37.2). If its node had run out of something, or shut down, it
// would have the condition DisruptionTarget.
func outOfOwnStorage(pod *corev1.Pod) bool {
	_, limited := etcdContainer(pod).Resources.Limits[corev1.ResourceEphemeralStorage]
	return pod.Status.Phase == corev1.PodSucceeded && pod.Status.Reason == "" && limited && podstatus.Condition(pod, corev1.DisruptionTarget) == nil
}

// ownLocalStorage is how a kubelet says that a Pod or a container of it has more local data than it
// may.
var ownLocalStorage = regexp.MustCompile(`exceeds the total limit of containers|exceeded its local ephemeral storage limit`)

// containerStatus is that of etcd; nil where there is none yet.
func containerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	return podstatus.Container(pod, render.Container)
}

// etcdContainer is that of etcd in a Pod; a zero one where there is none.
func etcdContainer(pod *corev1.Pod) (etcd corev1.Container) {
	for _, container := range pod.Spec.Containers {
		if container.Name == render.Container {
			return container
		}
	}
	return etcd
}

// memoryLimit is how much memory etcd may use in a Pod; zero where nothing bounds it but its node.
func memoryLimit(pod *corev1.Pod) *resource.Quantity {
	limits := etcdContainer(pod).Resources.Limits
	if s := containerStatus(pod); s != nil && s.Resources != nil && s.Resources.Limits.Memory().Cmp(*limits.Memory()) < 0 { // its node has not given it more
		limits = s.Resources.Limits
	}
	return limits.Memory()
}

// etcdImage is the image that the Pod is to run, whatever was asked for (render.AppliedImage).
func etcdImage(pod *corev1.Pod) string { return etcdContainer(pod).Image }

// etcdArgs are the arguments of etcd in a Pod.
func etcdArgs(pod *corev1.Pod) []string { return etcdContainer(pod).Args }
