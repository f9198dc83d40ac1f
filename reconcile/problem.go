package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// podProblem is why the Pod does not run etcd, in words that stay the same while the facts do: the
// kubelet alternates between several of its own while it tries the same thing again.
func podProblem(pod *corev1.Pod) string {
	if problem := podstatus.Unschedulable(pod); problem != "" {
		return problem
	}
	if outOfOwnStorage(pod) {
		limit := etcdContainer(pod).Resources.Limits[corev1.ResourceEphemeralStorage]
		return "was evicted, as it seems for more local data than its limit of " + limit.String() + ": raise spec.resources.limits.ephemeral-storage"
	}
	if ended(pod) {
		return podstatus.Clause("has ended ("+cmp.Or(pod.Status.Reason, string(pod.Status.Phase))+")", pod.Status.Message)
	}
	if problem := restoreProblem(pod); problem != "" {
		return problem
	}
	if problem := clearProblem(pod); problem != "" {
		return problem
	}
	s := containerStatus(pod)
	if s == nil || s.Ready {
		return ""
	}
	if problem := podstatus.Obstacle(s, cmp.Or(etcdImage(pod), s.Image)); problem != "" && !atGate(s) { // its image may be what ran before
		return problem
	}
	if putOff(pod) {
		return "is started later by its kubelet, since the same image ran in its Pod lately (CrashLoopBackOff)"
	}
	exit := podstatus.LastExit(s)
	switch limit := memoryLimit(pod); {
	case exit == nil || s.State.Running != nil && exit.ExitCode == 0: // it was asked to end, and runs again
		return ""
	case exit.Reason == podstatus.OOMKilled && !limit.IsZero():
		killed := "was killed for using more memory than its limit of " + limit.String() + " (OOMKilled)"
		limits := etcdContainer(pod).Resources.Limits
		if asked := limits.Memory(); limit.Cmp(*asked) < 0 {
			return killed + ", and its node has not given it the " + asked.String() + " that its Pod asks for" + pendingResize(pod)
		}
		return killed + ": raise spec.resources.limits.memory"
	default:
		return exitProblem(exit)
	}
}

// pendingResize is why the kubelet has not given a Pod the cpu and memory that it asks for, and
// what to do; empty where it does not say.
func pendingResize(pod *corev1.Pod) string {
	pending := podstatus.Condition(pod, corev1.PodResizePending)
	if pending == nil || pending.Status != corev1.ConditionTrue {
		return ""
	}
	why := " (" + podstatus.Clause(pending.Reason, podstatus.FirstLine(pending.Message)) + "): "
	if pending.Reason == corev1.PodReasonDeferred {
		return why + "move other Pods away from node " + pod.Spec.NodeName + ", or set spec.resources.limits.memory to what it has room for"
	}
	return why + "set spec.resources.limits.memory to what node " + pod.Spec.NodeName + " can give"
}

// neverStarted is why the kubelet of a Pod may have started no etcd, where that has lasted for long
// and the kubelet has no word for it: its sandbox cannot be made, or a volume is not attached.
// Empty where an init container runs: what that does may take long.
func neverStarted(pod *corev1.Pod) string {
	for _, c := range pod.Spec.InitContainers {
		s := podstatus.Container(pod, c.Name)
		if s == nil || sidecar(c) {
			continue
		}
		exit := podstatus.LastExit(s)
		switch {
		case s.State.Running != nil:
			return ""
		case exit != nil && exit.ExitCode != 0:
			return "waits for its init container " + s.Name + ", which " + exitProblem(exit)
		}
	}
	s := containerStatus(pod)
	if s == nil || atGate(s) || putOff(pod) || failing(pod) {
		return ""
	}
	return podstatus.NotStarted(pod, s)
}

func exitProblem(exit *corev1.ContainerStateTerminated) string {
	switch exit.Reason {
	case podstatus.OOMKilled:
		return "was killed for using more memory than it may (OOMKilled): raise spec.resources.limits.memory"
	case "StartError", "ContainerCannotRun": // what was RunContainerError a moment ago
		return podstatus.CannotStart(render.Container, exit.Message)
	}
	return podstatus.Clause(fmt.Sprintf("exited with code %d", exit.ExitCode), lastWords(exit.Message))
}

// lastWords is why etcd exited, out of the end of its log, of which the kubelet keeps 2 KiB. The
// very last line seldom tells: a fatal error may be followed by a stack trace, and one about a flag
// by how etcd is used.
func lastWords(log string) string {
	log, _, _ = strings.Cut(log, "\nUsage:")
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if e := parseEntry(line); e.Level == "fatal" || e.Level == "panic" {
			return podstatus.Clause(e.Msg, e.Error)
		}
	}
	for _, line := range lines { // a panic of Go itself
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return podstatus.FirstLine(line)
		}
	}
	last := lines[len(lines)-1]
	if e := parseEntry(last); e.Msg != "" {
		return podstatus.Clause(e.Msg, e.Error)
	}
	if strings.HasPrefix(last, "\t") { // a stack trace, longer than what the kubelet keeps
		return ""
	}
	return podstatus.FirstLine(last)
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
