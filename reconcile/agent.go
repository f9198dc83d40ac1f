package reconcile

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// errNoAgentImage: there is nothing to run the agent of.
var errNoAgentImage = errors.New("the operator does not know its own image, with which snapshots are found and restored: start it with --agent-image")

// agentResult is what the agent in a container has said last.
func agentResult(pod *corev1.Pod, container string) podstatus.Result {
	s := podstatus.Container(pod, container)
	if s == nil {
		return podstatus.Result{}
	}
	exit := podstatus.LastExit(s)
	if exit == nil {
		return podstatus.Result{}
	}
	return podstatus.ResultOf(container, exit)
}

// restores reports whether the Pod of a first member has an init container that has yet to restore
// it.
func restores(pod *corev1.Pod) bool {
	if pod.Annotations[api.AnnotationRestore] == "" {
		return false
	}
	s := podstatus.Container(pod, render.ContainerRestore)
	return s == nil || s.State.Terminated == nil || s.State.Terminated.ExitCode != 0
}

// clears reports whether a Pod has an init container that removes a data directory with which etcd
// would never vote.
func clears(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == render.ContainerClearUnvoted })
}

// clearProblem is why that does not come to its end; empty where it does.
func clearProblem(pod *corev1.Pod) string {
	return initProblem(pod, render.ContainerClearUnvoted, "cannot be started")
}

// restoreProblem is why the init container that restores a member does not come to its end; empty
// while it may.
func restoreProblem(pod *corev1.Pod) string {
	if !restores(pod) {
		return ""
	}
	return initProblem(pod, render.ContainerRestore, "cannot be restored")
}

// initProblem is why an agent's init container does not come to its end; empty while it may. failed
// is what its failure means for the member.
func initProblem(pod *corev1.Pod, container, failed string) string {
	s := podstatus.Container(pod, container)
	if s == nil {
		return ""
	}
	if problem := podstatus.Obstacle(s, s.Image); problem != "" {
		return problem
	}
	if failure := agentResult(pod, container).Failure; failure != nil {
		return podstatus.Clause(failed, failure.Message)
	}
	return ""
}

// restoreWaits is why the container that restores a member has not started by now, where the
// kubelet has no word for it.
func restoreWaits(pod *corev1.Pod) string {
	if !restores(pod) {
		return ""
	}
	return podstatus.NotStarted(pod, podstatus.Container(pod, render.ContainerRestore))
}
