package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// errNoAgentImage: there is nothing to run the agent of.
var errNoAgentImage = errors.New("the operator does not know its own image, with which snapshots are found and restored: start it with --agent-image")

// agentDocument is what an agent leaves as the last words of its container.
type agentDocument struct {
	Manifest     *manifest     `json:"manifest"`
	Verification *verification `json:"verification"`
	Error        *agentError   `json:"error"`
}

// manifest is what is taken of that of a snapshot.
type manifest struct {
	Name        string    `json:"name"`
	ClusterID   string    `json:"clusterID"`
	EtcdVersion string    `json:"etcdVersion"`
	Revision    int64     `json:"revision"`
	Object      string    `json:"object"`
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	Encrypted   bool      `json:"encrypted"`
	TakenAt     time.Time `json:"takenAt"`
}

type verification struct {
	At time.Time `json:"at"`
}

type agentError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// agentResult is what the agent in a container has said last. One that was killed has said nothing, and the kubelet knows why.
func agentResult(pod *corev1.Pod, container string) agentDocument {
	s := statusOf(pod, container)
	if s == nil {
		return agentDocument{}
	}
	exit := lastExit(s)
	if exit == nil {
		return agentDocument{}
	}
	var said agentDocument
	if json.Unmarshal([]byte(exit.Message), &said) != nil {
		said = agentDocument{}
	}
	if exit.ExitCode == 0 {
		said.Error = nil
	} else if said.Error == nil {
		said.Error = &agentError{Reason: exit.Reason, Message: agentEnded(container, exit)}
	}
	return said
}

func agentEnded(container string, exit *corev1.ContainerStateTerminated) string {
	if exit.Reason == "OOMKilled" {
		return fmt.Sprintf("container %s was killed for using more memory than it may (OOMKilled)", container)
	}
	text := strings.TrimSpace(exit.Message)
	return clause(fmt.Sprintf("container %s exited with code %d", container, exit.ExitCode), text[strings.LastIndex(text, "\n")+1:])
}

// statusOf a container or init container; nil where the kubelet has none yet.
func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for n := range statuses {
			if statuses[n].Name == container {
				return &statuses[n]
			}
		}
	}
	return nil
}

// restores reports whether the Pod of a first member has an init container that has yet to restore it.
func restores(pod *corev1.Pod) bool {
	if pod.Annotations[api.AnnotationRestore] == "" {
		return false
	}
	s := statusOf(pod, render.ContainerRestore)
	return s == nil || s.State.Terminated == nil || s.State.Terminated.ExitCode != 0
}

// restoreProblem is why the init container that restores a member does not come to its end; empty while it may.
func restoreProblem(pod *corev1.Pod) string {
	if !restores(pod) {
		return ""
	}
	if problem := containerProblem(statusOf(pod, render.ContainerRestore)); problem != "" {
		return problem
	}
	if e := agentResult(pod, render.ContainerRestore).Error; e != nil {
		return clause("cannot be restored", e.Message)
	}
	return ""
}

// waitingProblem is why a Pod that runs an agent does not start.
func waitingProblem(pod *corev1.Pod) string {
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Message != "" {
		return clause("cannot be scheduled", unschedulable(pod, scheduled.Message))
	}
	s := statusOf(pod, render.ContainerFind)
	if problem := containerProblem(s); problem != "" {
		return problem
	}
	if s == nil || s.State.Waiting != nil && s.LastTerminationState.Terminated == nil {
		return notStarted(pod, render.ContainerFind, s)
	}
	return ""
}

// notStarted is what is told of a container that should have run by now, and for which the kubelet has no word: a Secret or a volume
// that cannot be mounted is in its events alone.
func notStarted(pod *corev1.Pod, container string, s *corev1.ContainerStatus) string {
	what := "has not started its container " + container
	if s != nil && s.State.Waiting.Reason != "" {
		what += " (" + s.State.Waiting.Reason + ")"
	}
	return what + ": kubectl describe pod " + pod.Name + " says why, such as a Secret, key, ConfigMap or volume that is missing, or a volume that is attached to another node"
}

// restoreWaits is why the container that restores a member has not started by now, where the kubelet has no word for it.
func restoreWaits(pod *corev1.Pod) string {
	s := statusOf(pod, render.ContainerRestore)
	if !restores(pod) || s == nil || s.State.Waiting == nil || s.LastTerminationState.Terminated != nil {
		return ""
	}
	return notStarted(pod, render.ContainerRestore, s)
}

// containerProblem is why the kubelet cannot start a container that is no etcd; empty where it can.
func containerProblem(s *corev1.ContainerStatus) string {
	if s == nil || s.State.Waiting == nil {
		return ""
	}
	switch s.State.Waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed", "InvalidImageName", "ErrImageNeverPull":
		return "cannot pull the image " + s.Image
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return clause("cannot start its container "+s.Name, s.State.Waiting.Message)
	}
	return ""
}
