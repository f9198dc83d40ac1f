package hostlet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Init containers of an image that is a program of this machine run as its
// processes, one after the other, before the main container starts for the
// first time on its node, and again after [Hostlet.Reboot]. All others are
// said to be done.

// runsInits reports whether any init container of the Pod is to run.
func (h *Hostlet) runsInits(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return h.program(c.Image) != "" })
}

// program that an image has as its entry point; empty for one of etcd.
func (h *Hostlet) program(image string) string {
	if h.opts.Program == nil {
		return ""
	}
	return h.opts.Program(image)
}

// rewind has the init containers yet to run.
func (w *worker) rewind() {
	w.inits, w.initBackoff, w.initNotBefore = nil, 0, time.Time{}
	if !w.host.runsInits(w.pod) {
		return
	}
	w.inits = initialized(w.pod, metav1.Now())
	for n := range w.inits {
		if c := &w.pod.Spec.InitContainers[n]; w.host.program(c.Image) != "" {
			w.inits[n] = corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(false), State: waiting("PodInitializing", "")}
		}
	}
}

// initialize runs the next init container, if it is time, and reports whether all are done.
func (w *worker) initialize() (done bool) {
	for n := range w.inits {
		c, s := &w.pod.Spec.InitContainers[n], &w.inits[n]
		if ended := s.State.Terminated; ended != nil && ended.ExitCode == 0 || w.host.program(c.Image) == "" {
			continue
		}
		if time.Now().Before(w.initNotBefore) {
			return false
		}
		cmd, err := w.host.command(w.ctx, w, c, "")
		if err != nil {
			s.State = waiting(configError, err.Error())
			w.initAgain()
			return false
		}
		if ended := s.State.Terminated; ended != nil || s.LastTerminationState.Terminated != nil {
			s.RestartCount++
		}
		logged, _ := w.log.Seek(0, io.SeekEnd) // without it, earlier runs' words are in the message, too
		p, err := startProcess(cmd)
		if err != nil {
			s.State = waiting("RunContainerError", err.Error())
			w.initAgain()
			return false
		}
		now := metav1.Now()
		w.run = &run{process: p, started: now.Time, logged: logged, init: s.Name}
		if w.dies(s.Name, false) {
			w.run.signal(syscall.SIGKILL)
		}
		s.ContainerID = fmt.Sprintf("hostlet://%s-%s-%d", w.uid, s.Name, s.RestartCount)
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		go w.awaitInit(w.run, s)
		return false
	}
	return true
}

func (w *worker) initAgain() {
	w.initBackoff = min(max(2*w.initBackoff, w.host.opts.BackoffBase), w.host.opts.BackoffMax)
	w.initNotBefore = time.Now().Add(w.initBackoff)
	w.wakeAfter(w.initBackoff)
}

func (w *worker) awaitInit(r *run, s *corev1.ContainerStatus) {
	<-r.done
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone || w.run != r {
		return
	}
	w.run = nil
	code := w.exitCode(r, s.Name)
	w.host.logf("%s: init container %s ended with %d", w.pod.Name, s.Name, code)
	ended := corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Completed", Message: w.result(s.Name), ContainerID: s.ContainerID,
		StartedAt: metav1.NewTime(r.started), FinishedAt: metav1.Now(),
	}
	s.State = corev1.ContainerState{Terminated: &ended}
	s.Ready = code == 0
	if !s.Ready {
		ended.Reason = "Error"
	}
	if !s.Ready && !w.failed() {
		w.initAgain()
		s.LastTerminationState = s.State
		s.State = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s", w.initBackoff, s.Name))
	}
	w.sync()
}

// failed reports whether an init container has, of a Pod that does not start it again: so has the
// Pod.
func (w *worker) failed() bool {
	return w.pod.Spec.RestartPolicy == corev1.RestartPolicyNever && slices.ContainsFunc(w.inits, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
	})
}

// resultFile is where a program leaves its last words, as in /dev/termination-log: it is told by
// --result.
func (h *Hostlet) resultFile(pod *corev1.Pod, container string) string {
	return filepath.Join(h.podDir(pod.UID), container+".result")
}

// result is what the program in a container has left, which is then gone.
func (w *worker) result(container string) string {
	file := w.host.resultFile(w.pod, container)
	said, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	_ = os.Remove(file) // else it is written over
	return string(said)
}

// Reboot ends all processes of the Pod at once, and starts it again on its
// node, as after a power failure: init containers run once more.
func (h *Hostlet) Reboot(namespace, pod string) error {
	return h.with(namespace, pod, func(w *worker) error {
		if w.run == nil {
			return errors.New("pod " + namespace + "/" + pod + " has no process")
		}
		w.rewind()
		w.run.kill()
		return nil
	})
}
