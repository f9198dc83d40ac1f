package hostlet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// run is one life of the container.
type run struct {
	*process
	started  time.Time
	logged   int64  // bytes in the log before it
	init     string // the init container that it is of; empty for the main one
	stopping bool
	starved  bool            // it was killed for want of memory
	probes   context.Context // ends with the run
	end      context.CancelFunc
}

// configError is the reason of a container that cannot be made of what the Pod says.
const configError = "CreateContainerConfigError"

// start the container once more, from a fresh read of the Pod. (kubelet knows
// it by watch, too; reading makes "annotate, then kill" repeatable in tests.)
func (w *worker) start() {
	pod := &corev1.Pod{}
	err := w.host.reader.Get(w.ctx, client.ObjectKeyFromObject(w.pod), pod)
	if apierrors.IsNotFound(err) || (err == nil && (pod.UID != w.uid || pod.DeletionTimestamp != nil)) {
		return // the watch is about to tell
	}
	if err != nil {
		w.retry("ContainerCreating", fmt.Errorf("get Pod %s: %w", w.pod.Name, err))
		return
	}
	w.pod = pod
	c := mainContainer(pod)
	if c.Image != w.image {
		w.turnTo(c.Image)
	}
	dir, err := w.host.pull(w.ctx, c.Image)
	if err != nil {
		w.retry("ErrImagePull", err)
		return
	}
	cmd, err := w.host.command(w.ctx, w, c, dir)
	if err != nil {
		w.retry(configError, err)
		return
	}
	w.launch(c, cmd)
}

// retry a start that failed before there was a process.
func (w *worker) retry(reason string, err error) {
	if s := w.status.State.Waiting; s != nil && reason == "ErrImagePull" && (s.Reason == reason || s.Reason == "ImagePullBackOff") {
		reason = "ImagePullBackOff"
	}
	if t := w.status.State.Terminated; t != nil {
		w.status.LastTerminationState = corev1.ContainerState{Terminated: t}
	}
	w.status.State = waiting(reason, err.Error())
	w.wait()
}

// pastBackoff is that of an image that ran here before.
type pastBackoff struct {
	wait time.Duration
	ends time.Time
}

// turnTo another image. As in kubelet, the back-off is that of a container as it is specified: one
// that comes back to an image soon waits as if it had failed.
func (w *worker) turnTo(image string) {
	const forgotten = 10 * time.Minute // kubelet's longest back-off twice
	w.others[w.image] = pastBackoff{w.backoff, time.Now().Add(forgotten)}
	w.image, w.backoff = image, 0
	if past := w.others[image]; time.Now().Before(past.ends) {
		w.backoff = past.wait
	}
}

// wait out the back-off, and double the next one.
func (w *worker) wait() {
	w.backoff = min(max(2*w.backoff, w.host.opts.BackoffBase), w.host.opts.BackoffMax)
	w.notBefore = time.Now().Add(w.backoff)
	w.wakeAfter(w.backoff)
}

func (w *worker) launch(c *corev1.Container, cmd *exec.Cmd) {
	s := &w.status
	if t := s.State.Terminated; t != nil {
		s.LastTerminationState = corev1.ContainerState{Terminated: t}
	}
	if s.ContainerID != "" {
		s.RestartCount++
	}
	s.Image = c.Image
	s.ImageID = fmt.Sprintf("%s@sha256:%x", c.Image, sha256.Sum256([]byte(c.Image)))
	s.ContainerID = fmt.Sprintf("hostlet://%s-%d", w.uid, s.RestartCount)
	s.Resources = c.Resources.DeepCopy()
	s.AllocatedResources = c.Resources.Requests.DeepCopy()

	now := metav1.Now()
	logged, _ := w.log.Seek(0, io.SeekEnd) // without it, earlier runs' words are in the message, too
	p, err := startProcess(cmd)
	if errors.Is(err, syscall.ENOEXEC) {
		// For another architecture. runc has made the container by then, and
		// what it can only say in its log.
		_, _ = fmt.Fprintf(w.log, "exec %s: exec format error\n", cmd.Args[0]) // a reader will miss it
		const code = 255
		w.ended(corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: w.lastWords(&run{logged: logged}, code), StartedAt: now, ContainerID: s.ContainerID})
		w.wakeAfter(0)
		return
	}
	if err != nil {
		w.ended(corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: now})
		return
	}
	w.host.logf("%s: started %s, process %d on %s", w.pod.Name, cmd.Path, cmd.Process.Pid, w.addr)
	r := &run{process: p, started: now.Time, logged: logged}
	r.probes, r.end = context.WithCancel(w.ctx)
	w.run = r
	if w.dies(c.Name, false) {
		r.signal(syscall.SIGKILL)
	}
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	go w.await(r)
	if c.StartupProbe == nil {
		w.passedStartup(r, c)
		return
	}
	starting, started := context.WithCancel(r.probes)
	w.probe(starting, r, c.StartupProbe, c, func(ok bool) {
		started()
		if !ok {
			w.stop(w.probeGrace(c.StartupProbe), "startup probe failed")
			return
		}
		w.passedStartup(r, c)
	})
}

// passedStartup opens the gate that a startup probe holds closed.
func (w *worker) passedStartup(r *run, c *corev1.Container) {
	w.status.Started = new(true)
	if c.ReadinessProbe == nil {
		w.status.Ready = true
	} else {
		w.probe(r.probes, r, c.ReadinessProbe, c, func(ok bool) { w.status.Ready = ok })
	}
	if c.LivenessProbe != nil {
		w.probe(r.probes, r, c.LivenessProbe, c, func(ok bool) {
			if !ok {
				w.stop(w.probeGrace(c.LivenessProbe), "liveness probe failed")
			}
		})
	}
}

// probe until ctx ends, and hear only verdicts on a run that is still wanted.
func (w *worker) probe(ctx context.Context, r *run, p *corev1.Probe, c *corev1.Container, verdict func(ok bool)) {
	go probe(ctx, p, c, w.addr.String(), r.started, func(ok bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.run == r && !r.stopping && !w.gone && !w.lost {
			verdict(ok)
			w.sync()
		}
	})
}

func (w *worker) probeGrace(p *corev1.Probe) time.Duration {
	if p.TerminationGracePeriodSeconds != nil {
		return time.Duration(*p.TerminationGracePeriodSeconds) * time.Second
	}
	return w.grace()
}

func (w *worker) await(r *run) {
	<-r.done
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return
	}
	r.end()
	w.run = nil
	code := w.exitCode(r, mainContainer(w.pod).Name)
	reason := "Error"
	switch {
	case code == 0:
		reason = "Completed"
	case r.starved:
		reason = "OOMKilled"
	}
	w.host.logf("%s: process ended with %d", w.pod.Name, code)
	// As in kubelet, the first restart is immediate, and a run that outlived
	// the longest back-off twice has proved itself.
	if time.Since(r.started) > 2*w.host.opts.BackoffMax {
		w.backoff = 0
	}
	w.ended(corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: w.lastWords(r, code), StartedAt: metav1.NewTime(r.started), ContainerID: w.status.ContainerID,
	})
	w.sync()
}

// killedCode is how container runtimes report a process that was killed.
const killedCode = 128 + int32(syscall.SIGKILL)

// dies reports whether a container is to be killed when it is about to run, or has ended well.
func (w *worker) dies(container string, ended bool) bool {
	return w.host.opts.Dies != nil && w.host.opts.Dies(w.pod, container, ended)
}

// exitCode of a run. One that dies at its very end has left no words.
func (w *worker) exitCode(r *run, container string) int32 {
	code := r.exitCode()
	if code == 0 && w.dies(container, true) {
		w.result(container)
		return killedCode
	}
	return code
}

// lastWords are what the status of a failed container has of its log, if the
// Pod asks for it.
func (w *worker) lastWords(r *run, code int32) string {
	if said := w.result(mainContainer(w.pod).Name); said != "" {
		return said
	}
	const most = 2 << 10 // as kubelet has it
	if code == 0 || mainContainer(w.pod).TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	data, err := os.ReadFile(w.log.Name())
	if err != nil {
		return err.Error()
	}
	said := data[min(r.logged, int64(len(data))):]
	return strings.ToValidUTF8(string(said[max(0, len(said)-most):]), "")
}

// ended records the end of a run and what comes next.
func (w *worker) ended(t corev1.ContainerStateTerminated) {
	t.FinishedAt = metav1.Now()
	w.status.State = corev1.ContainerState{Terminated: &t}
	w.status.Ready, w.status.Started = false, new(false)
	if !restarts(w.pod, &w.status) {
		return
	}
	image := mainContainer(w.pod).Image
	failed := t.Reason == "StartError" && image == w.image
	if image != w.image {
		w.turnTo(image)
	}
	if w.backoff == 0 && !failed {
		w.backoff = w.host.opts.BackoffBase / 2 // the next one waits the base
		w.notBefore = time.Time{}
		return
	}
	w.wait()
	w.status.LastTerminationState = w.status.State
	w.status.State = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		w.backoff, w.status.Name, w.pod.Name, w.pod.Namespace, w.uid))
}
