package backup

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
	"quorate.dev/render"
)

// Result is what came of the Pod of a Job, as far as it has got.
type Result struct {
	// Manifest is of the snapshot that was stored; nil while none is.
	Manifest *manifest
	// Verified is when what is stored was found to be good; zero while it was not.
	Verified time.Time
	// Failure is why the Pod has failed; nil where it has not.
	Failure *api.BackupFailure
	// Pending is why the Pod cannot start, or go on; empty where it can.
	Pending string
	// Runs is whether it has not ended yet.
	Runs bool
}

// document is what an agent leaves in its container's status.
type document struct {
	Manifest     *manifest     `json:"manifest"`
	Verification *verification `json:"verification"`
	Error        *agentError   `json:"error"`
}

// manifest is what is taken into the status of a snapshot's manifest.
type manifest struct {
	Name        string    `json:"name"`
	ClusterID   string    `json:"clusterID"`
	Member      string    `json:"member"`
	EtcdVersion string    `json:"etcdVersion"`
	Revision    int64     `json:"revision"`
	Object      string    `json:"object"`
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	StoredSize  int64     `json:"storedSize"`
	StartedAt   time.Time `json:"startedAt"`
	TakenAt     time.Time `json:"takenAt"`
}

type verification struct {
	At time.Time `json:"at"`
}

type agentError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// result reads the status of a Pod.
func result(pod *corev1.Pod) Result {
	r := Result{Runs: pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		ended := status.State.Terminated
		if ended == nil || status.Name == render.Container { // the etcd ends when the Pod does
			continue
		}
		said := document{}
		if json.Unmarshal([]byte(ended.Message), &said) != nil {
			said = document{}
		}
		if ended.ExitCode != 0 {
			if r.Failure == nil {
				r.Failure = failure(status.Name, ended, said.Error)
			}
			continue
		}
		if status.Name == render.ContainerSave {
			r.Manifest = said.Manifest
		}
		if said.Verification != nil && isLast(pod, status.Name) {
			r.Verified = said.Verification.At
		}
	}
	switch {
	case r.Runs:
		r.Pending = pending(pod)
	case pod.Status.Phase == corev1.PodFailed && r.Failure == nil:
		r.Failure = &api.BackupFailure{
			Reason:  word(pod.Status.Reason),
			Message: clause("the Pod has failed", pod.Status.Message),
		}
	}
	return r
}

// isLast: all that was to be done is done when this container has.
func isLast(pod *corev1.Pod, name string) bool {
	return len(pod.Spec.Containers) == 1 && pod.Spec.Containers[0].Name == name
}

// failure of a container: what its agent says or, where that was killed, what the kubelet knows.
func failure(container string, ended *corev1.ContainerStateTerminated, said *agentError) *api.BackupFailure {
	switch {
	case said != nil && said.Message != "":
		return &api.BackupFailure{Reason: word(said.Reason), Message: firstLine(said.Message)}
	case ended.Reason == "OOMKilled":
		return &api.BackupFailure{Reason: ended.Reason, Message: fmt.Sprintf("container %s was killed for using more memory than it may", container)}
	default:
		return &api.BackupFailure{
			Reason:  api.ReasonAgentFailed,
			Message: clause(fmt.Sprintf("container %s exited with code %d", container, ended.ExitCode), lastLine(ended.Message)),
		}
	}
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// word is a reason that a condition may have.
func word(reason string) string {
	if reasonForm.MatchString(reason) {
		return reason
	}
	return api.ReasonAgentFailed
}

// pending is why a Pod cannot start, or its next container: the scheduler's word, or the kubelet's.
func pending(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			reason, _, _ := strings.Cut(c.Message, " preemption:")
			return clause("cannot be scheduled", strings.TrimSuffix(reason, "."))
		}
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable":
			return "cannot pull the image " + status.Image
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return clause("cannot start container "+status.Name, waiting.Message)
		}
	}
	return notStarted(pod)
}

// notStarted is what is known of a Pod in which no container has run yet; empty where one has. A volume that cannot be mounted, or a
// Secret that it needs, is told by the kubelet in events alone.
func notStarted(pod *corev1.Pod) string {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, status := range statuses {
		if status.State.Waiting == nil || status.LastTerminationState.Terminated != nil {
			return ""
		}
	}
	what := "no container has started"
	if len(statuses) > 0 {
		first := statuses[0]
		why := strings.TrimPrefix(clause(first.State.Waiting.Reason, cmp.Or(first.State.Waiting.Message, notReady(pod), pod.Status.Message)), ": ")
		what = fmt.Sprintf("container %s has not started (%s)", first.Name, why)
	}
	return what + ": kubectl describe pod " + pod.Name + " says why, such as a Secret, key, ConfigMap or volume that is missing, or a volume that is attached to another node"
}

// notReady is what the kubelet says of a Pod whose network and volumes are not ready.
func notReady(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

func clause(what, why string) string {
	if why == "" {
		return firstLine(what)
	}
	return firstLine(what + ": " + why)
}

// firstLine of a text, cut to a length that suits a condition.
func firstLine(text string) string {
	const most = 1024
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// record takes what came of an attempt into the status. What another snapshot's agent says is not taken.
func record(s *api.EtcdBackupStatus, r Result) {
	if m := r.Manifest; m != nil && m.Name == s.Name && s.SHA256 == "" {
		s.Location = render.Location(s.Store, m.Object)
		s.ClusterID = cmp.Or(m.ClusterID, s.ClusterID)
		s.Member, s.EtcdVersion, s.Revision = m.Member, m.EtcdVersion, m.Revision
		s.Size, s.StoredSize, s.SHA256 = m.Size, m.StoredSize, m.SHA256
		s.StartedAt, s.TakenAt = instant(m.StartedAt), instant(m.TakenAt)
	}
	if !r.Verified.IsZero() && s.SHA256 != "" && s.VerifiedAt == nil {
		s.VerifiedAt = instant(r.Verified)
	}
}
