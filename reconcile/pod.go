package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// podFacts reads from a Pod what the planner may know of it.
func podFacts(c *api.EtcdCluster, pod *corev1.Pod, l limits) membership.Pod {
	p := membership.Pod{UID: string(pod.UID), NeverRan: true}
	p.Foreign, p.Terminating = belongs(c, pod)
	if s := containerStatus(pod); s != nil {
		p.NeverRan = s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil && s.RestartCount == 0
	}
	p.Ended = ended(pod)
	p.Problem, p.Failing, p.PutOff = podProblem(pod), failing(pod), putOff(pod)
	if v, ok := render.ImageVersion(etcdImage(pod)); ok {
		p.Version, _ = membership.ParseVersion(v) // the zero Version where the name says none
	}
	if p.Provisions = pod.Annotations[api.AnnotationProvisions] != ""; p.Provisions {
		p.Provisioned = atGate(containerStatus(pod)) && pod.Status.PodIP != "" && !p.Ended
	} else {
		p.Unfenced = pod.Annotations[api.AnnotationInitialCluster] != render.Resume(c, pod.Name) ||
			pod.Annotations[api.AnnotationInitialClusterState] != render.StateExisting
	}
	if p.Problem == "" && nodeGone(pod, l.now) {
		p.Problem, p.Damaged = "is on a node that does not answer ("+pod.Spec.NodeName+")", true
	}
	p.Damaged = p.Damaged || damaged(pod)
	p.Overdue = p.Problem != "" && notReadySince(pod).Before(l.overdue)
	p.Forsaken = p.Problem != "" && p.Damaged && notReadySince(pod).Before(l.forsaken)
	return p
}

// limits of patience: a Pod that has not been ready since before overdue has had time enough to start, and one since before
// forsaken is given up.
type limits struct{ now, overdue, forsaken time.Time }

// replaceAfter is spec.recovery.replaceAfter, by default the five minutes after which Kubernetes itself gives up the Pods of
// a node that does not answer (the tolerations that DefaultTolerationSeconds adds).
func replaceAfter(c *api.EtcdCluster) time.Duration {
	d, err := time.ParseDuration(patience(c))
	if err != nil { // the schema refuses it
		return 5 * time.Minute
	}
	return d
}

// patience is replaceAfter as people write it.
func patience(c *api.EtcdCluster) string {
	if r := c.Spec.Recovery; r != nil && r.ReplaceAfter != nil {
		return string(*r.ReplaceAfter)
	}
	return "5m"
}

// nodeGone reports whether the Pod runs as far as its kubelet has last said, and nothing has been heard of that since: the
// node controller then takes back its readiness alone. Or it was deleted, its grace is over, and no kubelet confirms it.
func nodeGone(pod *corev1.Pod, now time.Time) bool {
	if !pod.DeletionTimestamp.IsZero() {
		const margin = 10 * time.Second // for the kubelet to confirm that it has killed what did not end by itself
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp.Add(margin).Before(now)
	}
	s, ready := containerStatus(pod), podCondition(pod, corev1.PodReady)
	return len(pod.Spec.ReadinessGates) == 0 && s != nil && s.Ready && s.State.Running != nil &&
		ready != nil && ready.Status != corev1.ConditionTrue
}

// damaged reports whether it is the member's data, or the node that has it, which keeps it down. An image, also one for another
// architecture, a quota, a place to run, memory or a flag that etcd does not know are not: for a new member they would be the
// same.
func damaged(pod *corev1.Pod) bool {
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return volumeOnLostNode(scheduled.Message)
	}
	s := containerStatus(pod)
	if s == nil || s.Ready || pod.Annotations[api.AnnotationProvisions] != "" || putOff(pod) {
		return false
	}
	exit := lastExit(s)
	if exit == nil {
		return false
	}
	switch exit.Reason {
	case "OOMKilled", "StartError", "ContainerCannotRun":
		return false
	}
	notItsData := []string{"flag", "unrecognized level", "exec format error"}
	return exit.ExitCode != 0 && !slices.ContainsFunc(notItsData, func(said string) bool { return strings.Contains(exit.Message, said) })
}

// How the scheduler says that nodes are not those of the volume, today and in earlier releases, and that there is no volume
// behind the claim any more. Taints it counts apart: those of a control plane, and of nodes that do not answer.
var (
	elsewhere = regexp.MustCompile(`^0/\d+ nodes are available: (?:\d+ node\(s\) (?:had untolerated taint(?:\(s\)| \{[^}]*\})|had volume node affinity conflict|didn't match PersistentVolume's node affinity)(?:, |\.|$))+`)
	affinity  = regexp.MustCompile(`volume node affinity conflict|didn't match PersistentVolume's node affinity`)
	noVolume  = regexp.MustCompile(`(?i)bound to non-existent (?:pv\(s\)|persistentvolume)`)
)

// volumeOnLostNode reports whether the volume is on none of the nodes that answer, or is no more. Where its node is only
// cordoned or full, the scheduler counts it apart, and it may come back.
func volumeOnLostNode(reason string) bool {
	if noVolume.MatchString(reason) {
		return true
	}
	reasons := elsewhere.FindString(reason)
	rest := strings.TrimPrefix(reason, reasons)
	return affinity.MatchString(reasons) && (rest == "" || strings.HasPrefix(rest, " "))
}

// notReadySince is when the Pod stopped being ready or, where it never was, began. A Pod of last year whose container was
// restarted a second ago has had no more time than a new one.
func notReadySince(pod *corev1.Pod) time.Time {
	if ready := podCondition(pod, corev1.PodReady); ready != nil && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// atGate reports whether the kubelet has done all that comes before the start of a member to come (render.Provisioner), or
// does not know yet that it may start.
func atGate(s *corev1.ContainerStatus) bool {
	return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerConfigError" &&
		strings.Contains(s.State.Waiting.Message, "missing value for "+render.EnvInitialClusterState)
}

// failing reports whether the kubelet has tried more than once to run etcd, and puts off the next try.
func failing(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	if s == nil || s.State.Waiting == nil || atGate(s) || putOff(pod) {
		return false
	}
	switch s.State.Waiting.Reason {
	case "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CrashLoopBackOff",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return true
	default:
		return false
	}
}

// putOff reports whether the container that the Pod was changed to has not come even once, and the kubelet waits before it starts
// it: it does so where the same image ran in this Pod lately, however that ended (doBackOff in
// pkg/kubelet/kuberuntime/kuberuntime_manager.go; the back-off is that of a container as it is specified).
func putOff(pod *corev1.Pod) bool {
	before, _, changed := ranBefore(pod)
	s := containerStatus(pod)
	return changed && s != nil && s.ContainerID == before && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
}

// unsettled reports whether the Pod was changed under its container, and no container that came after that has answered, or
// the one that answers has not been given its resources yet. One that is away gets them when it comes. Where the volume says that
// what the Pod is to run has run on it, one has answered.
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

// podCondition of that type; nil where the Pod has none.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	n := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if n < 0 {
		return nil
	}
	return &pod.Status.Conditions[n]
}

// lastExit is how the container ended last; nil where it never has.
func lastExit(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// ended reports whether the kubelet has given the Pod up: evicted it, refused it, or shut the node down. It stays so.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// podProblem is why the Pod does not run etcd, in words that stay the same while the facts do: the kubelet alternates
// between several of its own while it tries the same thing again.
func podProblem(pod *corev1.Pod) string {
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Message != "" {
		return clause("cannot be scheduled", unschedulable(pod, scheduled.Message))
	}
	if ended(pod) {
		return clause("has ended ("+cmp.Or(pod.Status.Reason, string(pod.Status.Phase))+")", pod.Status.Message)
	}
	s := containerStatus(pod)
	if s == nil || s.Ready {
		return ""
	}
	if waiting := s.State.Waiting; waiting != nil && !atGate(s) {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
			return "cannot pull the image " + cmp.Or(etcdImage(pod), s.Image) // the status may still name what ran before
		case "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
			"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return clause("cannot start its container", waiting.Message)
		}
	}
	if putOff(pod) {
		return "is started later by its kubelet, since the same image ran in its Pod lately (CrashLoopBackOff)"
	}
	if exit := lastExit(s); exit != nil {
		return exitProblem(exit)
	}
	return ""
}

// unschedulable is the scheduler's reason without its remark that preemption would not help either, and with the name of
// what a person has to look at where the scheduler has none.
func unschedulable(pod *corev1.Pod, reason string) string {
	if strings.Contains(reason, "unbound immediate PersistentVolumeClaims") {
		return "its PersistentVolumeClaim " + pod.Name + " is not bound: the storage class that it asks for must exist, and its provisioner must run"
	}
	reason, _, _ = strings.Cut(reason, " preemption:")
	return strings.TrimSuffix(reason, ".")
}

func exitProblem(exit *corev1.ContainerStateTerminated) string {
	switch exit.Reason {
	case "OOMKilled":
		return "was killed for using more memory than it may (OOMKilled): raise resources.limits.memory"
	case "StartError", "ContainerCannotRun": // what was RunContainerError a moment ago
		return clause("cannot start its container", exit.Message)
	}
	return clause(fmt.Sprintf("exited with code %d", exit.ExitCode), lastWords(exit.Message))
}

// lastWords is why etcd exited, out of the end of its log, of which the kubelet keeps 2 KiB. The very last line seldom tells:
// a fatal error may be followed by a stack trace, and one about a flag by how etcd is used.
func lastWords(log string) string {
	log, _, _ = strings.Cut(log, "\nUsage:")
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if e := parseEntry(line); e.Level == "fatal" || e.Level == "panic" {
			return clause(e.Msg, e.Error)
		}
	}
	for _, line := range lines { // a panic of Go itself
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return firstLine(line)
		}
	}
	last := lines[len(lines)-1]
	if e := parseEntry(last); e.Msg != "" {
		return clause(e.Msg, e.Error)
	}
	if strings.HasPrefix(last, "\t") { // a stack trace, longer than what the kubelet keeps
		return ""
	}
	return firstLine(last)
}

// entry is a line of etcd's log: a JSON object, with the time in it.
type entry struct{ Level, Msg, Error string }

// parseEntry is the zero entry for a line that is none.
func parseEntry(line string) entry {
	var e entry
	if json.Unmarshal([]byte(line), &e) != nil {
		return entry{}
	}
	return e
}

// clause is what happened and, where that is known, why.
func clause(what, why string) string {
	if why == "" {
		return firstLine(what)
	}
	return firstLine(what + ": " + why)
}

// firstLine of a text, cut to a length that suits a condition.
func firstLine(text string) string {
	const most = 300
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

func containerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == render.Container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// etcdImage is the image that the Pod is to run.
func etcdImage(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if container.Name == render.Container {
			return container.Image
		}
	}
	return ""
}
