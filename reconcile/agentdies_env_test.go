//go:build env

package reconcile_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/render"
)

// agentContainers are the containers in which agents run. Some of them are in the Pods of Jobs, and
// some in those of members.
var agentContainers = []string{
	render.ContainerFind, render.ContainerRestore, render.ContainerInstall, render.ContainerCopy,
	render.ContainerSave, render.ContainerVerifyHash, render.ContainerDelete,
}

// disturb has the agents of the stage die as the fault has it.
func (s *stage) disturb(f *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dies = f.dies
}

// agentDies is asked by the hostlet.
func (s *stage) agentDies(pod *corev1.Pod, container string, ended bool) bool {
	s.mu.Lock()
	dies := s.dies
	s.mu.Unlock()
	if dies == nil || !slices.Contains(agentContainers, container) {
		return false
	}
	of := pod.Name
	if job := metav1.GetControllerOf(pod); job != nil && job.Kind == "Job" {
		of = job.Name // that of its Pod is another one in every run
	}
	return dies(agentVerb+"."+container+"."+of, ended)
}

// dies has an agent die where that is the effect to disturb: before it has done anything, or when
// it has done all that it is for, and nothing has heard of it.
func (f *fault) dies(what string, ended bool) bool {
	if f.next != nil && f.next.dies(what, ended) {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := f.nth(what)
	if f.armed && ended {
		f.times[what]++
		f.made = append(f.made, name)
	}
	if !f.armed || f.met() || name != f.effect || ended == (f.mode == before) {
		return false
	}
	f.meet()
	return true
}
