package hostlet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podStatus is the status of the Pod that kubelet would report while the
// container that runs is in state c. What prev already says keeps its times.
func podStatus(pod *corev1.Pod, prev *corev1.PodStatus, c *corev1.ContainerStatus, addr string) corev1.PodStatus {
	status := *prev.DeepCopy()
	status.ObservedGeneration = pod.Generation
	status.Phase = phase(pod, c)
	status.HostIP = "127.0.0.1"
	status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
	status.PodIP = addr
	status.PodIPs = []corev1.PodIP{{IP: addr}}
	if status.StartTime == nil {
		now := metav1.Now()
		status.StartTime = &now
	}
	container := c.DeepCopy()
	if c.State.Running != nil { // it has what it asks for at once
		container.Resources = mainContainer(pod).Resources.DeepCopy()
	}
	status.ContainerStatuses = append([]corev1.ContainerStatus{*container}, others(pod, *status.StartTime)...)
	status.InitContainerStatuses = initialized(pod, *status.StartTime)

	ready := c.Ready && gatesOpen(pod)
	reason, message := "", ""
	switch {
	case status.Phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		reason = "PodFailed"
	case !c.Ready:
		reason, message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", c.Name)
	case !ready:
		reason, message = "ReadinessGatesNotReady", "not all readiness gates are True"
	}
	setCondition(&status, corev1.PodInitialized, true, "", "")
	setCondition(&status, corev1.ContainersReady, c.Ready, reason, message)
	setCondition(&status, corev1.PodReady, ready, reason, message)
	return status
}

func phase(pod *corev1.Pod, c *corev1.ContainerStatus) corev1.PodPhase {
	ended := c.State.Terminated
	switch {
	case ended != nil && !restarts(pod, c) && ended.ExitCode == 0:
		return corev1.PodSucceeded
	case ended != nil && !restarts(pod, c):
		return corev1.PodFailed
	case c.State.Waiting != nil && c.LastTerminationState.Terminated == nil:
		return corev1.PodPending
	default:
		return corev1.PodRunning
	}
}

// restarts reports whether the container is to run, again or for the first time.
func restarts(pod *corev1.Pod, c *corev1.ContainerStatus) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	switch {
	case ended == nil || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		return true
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	default:
		return ended.ExitCode != 0
	}
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, is bool, reason, message string) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if is {
		want = corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
	}
	want.LastTransitionTime = metav1.Now()
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status == want.Status {
			want.LastTransitionTime = c.LastTransitionTime
		}
		*c = want
		return
	}
	status.Conditions = append(status.Conditions, want)
}
