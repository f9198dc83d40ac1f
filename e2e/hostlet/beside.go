package hostlet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mainContainer is the one that runs as a process: the one called etcd,
// wherever others were put, and else the first.
func mainContainer(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == "etcd" {
			return &pod.Spec.Containers[i]
		}
	}
	return &pod.Spec.Containers[0]
}

// others are said to run, and to be ready. There is no process of them.
func others(pod *corev1.Pod, since metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c != mainContainer(pod) {
			statuses = append(statuses, running(c, since))
		}
	}
	return statuses
}

// initialized are the init containers: said to be done, or, those that are
// sidecars, to run.
func initialized(pod *corev1.Pod, since metav1.Time) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(pod.Spec.InitContainers))
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		s := running(c, since)
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			s.Started = new(false)
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: since, FinishedAt: since}}
		}
		statuses = append(statuses, s)
	}
	return statuses
}

func running(c *corev1.Container, since metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
	}
}

// gatesOpen reports whether every condition is set that the Pod's
// readiness waits for.
func gatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
}
