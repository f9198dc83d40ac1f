package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// podProblem is why the Pod does not run etcd, in words that stay the same while the facts do: the kubelet alternates
// between several of its own while it tries the same thing again.
func podProblem(pod *corev1.Pod) string {
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Message != "" {
		return clause("cannot be scheduled", unschedulable(pod, scheduled.Message))
	}
	if ended(pod) {
		return clause("has ended ("+cmp.Or(pod.Status.Reason, string(pod.Status.Phase))+")", pod.Status.Message)
	}
	if problem := restoreProblem(pod); problem != "" {
		return problem
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
	exit := lastExit(s)
	switch limit := memoryLimit(pod); {
	case exit == nil:
		return ""
	case exit.Reason == reasonStarved && !limit.IsZero():
		return "was killed for using more memory than its limit of " + limit.String() + " (OOMKilled): raise spec.resources.limits.memory"
	default:
		return exitProblem(exit)
	}
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
	case reasonStarved:
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
