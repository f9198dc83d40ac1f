package hostlet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kill the Pod's process (SIGKILL) and wait for its end. As on a node, the
// container is then restarted.
func (h *Hostlet) Kill(namespace, pod string) error {
	return h.withRun(namespace, pod, func(r *run) { r.kill() })
}

// Starve kills the Pod's process as the kernel does that finds no memory for
// it, and waits for its end.
func (h *Hostlet) Starve(namespace, pod string) error {
	return h.withRun(namespace, pod, func(r *run) {
		r.starved = true
		r.kill()
	})
}

// Terminate asks the Pod's process to end (SIGTERM).
func (h *Hostlet) Terminate(namespace, pod string) error {
	return h.withRun(namespace, pod, func(r *run) { r.signal(syscall.SIGTERM) })
}

// Pause the Pod's process (SIGSTOP): it holds its connections and says nothing.
func (h *Hostlet) Pause(namespace, pod string) error {
	return h.withRun(namespace, pod, func(r *run) { r.signal(syscall.SIGSTOP) })
}

// Resume a paused process (SIGCONT).
func (h *Hostlet) Resume(namespace, pod string) error {
	return h.withRun(namespace, pod, func(r *run) { r.signal(syscall.SIGCONT) })
}

func (h *Hostlet) withRun(namespace, pod string, do func(*run)) error {
	return h.with(namespace, pod, func(w *worker) error {
		if w.run == nil {
			return fmt.Errorf("pod %s/%s has no process", namespace, pod)
		}
		do(w.run)
		return nil
	})
}

// with the lock of the Pod's worker.
func (h *Hostlet) with(namespace, pod string, do func(*worker) error) error {
	w := h.worker(types.NamespacedName{Namespace: namespace, Name: pod})
	if w == nil {
		return fmt.Errorf("pod %s/%s is not known", namespace, pod)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return do(w)
}

// Wipe empties the volume of a claim, as a replaced disk would. The process
// that uses it is killed first and finds it empty at its restart.
func (h *Hostlet) Wipe(ctx context.Context, namespace, claim string) error {
	return h.Spoil(ctx, namespace, claim, os.RemoveAll)
}

// Spoil hands the directory of a claim's volume to do, which may write there
// what it likes. The process that uses it is killed first, and restarted when
// do is done.
func (h *Hostlet) Spoil(ctx context.Context, namespace, claim string, do func(dir string) error) error {
	pvc := &corev1.PersistentVolumeClaim{}
	if err := h.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: claim}, pvc); err != nil {
		return fmt.Errorf("get claim %s/%s: %w", namespace, claim, err)
	}
	for _, w := range h.users(namespace, claim) {
		// While the lock is held nothing starts.
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.run != nil {
			w.run.kill()
		}
	}
	return do(h.volumeDir(pvc.UID))
}

// users are the workers of the Pods that mount the claim.
func (h *Hostlet) users(namespace, claim string) []*worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	var users []*worker
	for key, w := range h.workers {
		if key.Namespace == namespace && slices.Contains(w.claims, claim) {
			users = append(users, w)
		}
	}
	return users
}

// Cordon keeps new Pods from being scheduled, until Uncordon.
func (h *Hostlet) Cordon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cordoned = true
}

// Uncordon lets Pods be scheduled again, and those that wait at once.
func (h *Hostlet) Uncordon(ctx context.Context) error {
	h.mu.Lock()
	h.cordoned = false
	h.mu.Unlock()
	pods := &corev1.PodList{}
	if err := h.reader.List(ctx, pods, client.InNamespace(h.opts.Namespace)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	var failures []error
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			failures = append(failures, retry.RetryOnConflict(retry.DefaultBackoff, func() error { return h.schedule(ctx, &pods.Items[i]) }))
		}
	}
	return errors.Join(failures...)
}

// Deafen the node of the Pod: what changes in the API server from now on it does
// not hear, and says nothing. LoseNode is what others notice of that later.
func (h *Hostlet) Deafen(namespace, pod string) error {
	return h.with(namespace, pod, func(w *worker) error {
		w.lost = true
		return nil
	})
}

// LoseNode takes the Pod's node off the network, as if no other Pod were on it: the process says
// nothing any more, nothing reports on it, and its deletion is not confirmed. That the Pod is not
// ready is then the word of the node controller, which gives no reason for it; giving it up, by
// deletion, is left to the caller. A Pod that is deleted by force leaves its process behind: Resume
// has that go on before anything on the node hears of the deletion.
func (h *Hostlet) LoseNode(namespace, pod string) error {
	return h.with(namespace, pod, func(w *worker) error {
		if w.run != nil {
			w.run.signal(syscall.SIGSTOP)
		}
		w.lost = true
		status := *w.published.DeepCopy()
		setCondition(&status, corev1.PodReady, false, "", "")
		w.patch(status)
		return nil
	})
}

// ReturnNode ends what LoseNode began: the process goes on where it was, until
// its kubelet hears what has become of the Pod. A kubelet that is back lists its
// Pods: it acts on what the Pod is now, not on what a watch told it while it was away.
func (h *Hostlet) ReturnNode(namespace, pod string) error {
	key, live := types.NamespacedName{Namespace: namespace, Name: pod}, &corev1.Pod{}
	w := h.worker(key)
	if w == nil {
		return fmt.Errorf("pod %s is not known", key)
	}
	if err := h.reader.Get(w.ctx, key, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Pod %s: %w", key, err)
	}
	w.comeBack(live)
	if live.UID != w.uid { // it was deleted by force, and the watch has told of that before
		w.vanish()
		h.forget(key)
	}
	return nil
}
