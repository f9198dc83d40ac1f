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
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == render.ContainerBegin })
}

// beginProblem is why that does not come to its end; empty where it does.
func beginProblem(pod *corev1.Pod) string {
	s := podstatus.Container(pod, render.ContainerBegin)
	if s == nil {
		return ""
	}
	if problem := podstatus.Obstacle(s, s.Image); problem != "" {
		return problem
	}
	if failure := agentResult(pod, render.ContainerBegin).Failure; failure != nil {
		return podstatus.Clause("cannot be started", failure.Message)
	}
	return ""
}

// restoreProblem is why the init container that restores a member does not come to its end; empty
// while it may.
func restoreProblem(pod *corev1.Pod) string {
	s := podstatus.Container(pod, render.ContainerRestore)
	if !restores(pod) || s == nil {
		return ""
	}
	if problem := podstatus.Obstacle(s, s.Image); problem != "" {
		return problem
	}
	if failure := agentResult(pod, render.ContainerRestore).Failure; failure != nil {
		return podstatus.Clause("cannot be restored", failure.Message)
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
