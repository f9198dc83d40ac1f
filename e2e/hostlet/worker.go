package hostlet

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// worker is kubelet for one Pod. Whatever happens to the Pod (a new spec, the
// end of the process, a probe's verdict, the end of a wait) takes the lock,
// notes the fact and calls sync, which does what the facts ask for and
// publishes the status.
type worker struct {
	host   *Hostlet
	ctx    context.Context // the life of the Hostlet: most of what happens has no caller
	uid    types.UID
	addr   netip.Addr
	claims []string
	log    *os.File // of all runs

	mu            sync.Mutex
	pod           *corev1.Pod
	status        corev1.ContainerStatus
	published     corev1.PodStatus
	run           *run          // nil while there is no process
	image         string        // of the last start, successful or not
	backoff       time.Duration // of the next restart of that image
	others        map[string]pastBackoff
	notBefore     time.Time                // of the next start
	inits         []corev1.ContainerStatus // nil where none is to run
	initBackoff   time.Duration
	initNotBefore time.Time
	gone          bool // the Pod object no longer exists, or the Hostlet stops
	lost          bool // its node is off the network
}

// LeastMemory is what etcd does not start with less than.
var LeastMemory = resource.MustParse("8Mi")

func newWorker(ctx context.Context, h *Hostlet, pod *corev1.Pod, addr netip.Addr) (*worker, error) {
	logFile := h.logFile(pod.Namespace, pod.Name)
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c := mainContainer(pod)
	w := &worker{
		host: h, ctx: ctx, uid: pod.UID, addr: addr, claims: claimNames(pod), log: log,
		pod: pod, published: pod.Status, others: map[string]pastBackoff{},
		status: corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: new(false),
			State: waiting("ContainerCreating", ""),
		},
	}
	w.rewind()
	return w, nil
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// update takes a Pod from the watch. The watch may be behind what the last
// start read, and a step back would undo an image change.
func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pod.Generation < w.pod.Generation {
		return
	}
	w.pod = pod
	if s := w.status.State.Waiting; s != nil && s.Reason == configError { // with another Pod it may work at once
		w.notBefore = time.Time{}
	}
	w.sync()
}

// comeBack to the network, where the Pod is live by now; a Pod that was deleted by force has no
// UID there, or another one.
func (w *worker) comeBack(live *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if live.UID == w.uid && live.Generation > w.pod.Generation {
		w.pod = live
	}
	if w.run != nil {
		w.run.signal(syscall.SIGCONT)
	}
	w.lost = false
	w.sync()
}

// vanish kills the process of a Pod that no longer exists and returns once it
// is dead: a new Pod of that name gets the same address, and maybe the volume.
func (w *worker) vanish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	if w.run != nil {
		if w.run.end != nil {
			w.run.end()
		}
		w.run.kill()
		w.host.logf("%s: process killed", w.pod.Name)
	}
	_ = w.log.Close() // nothing is buffered
	if err := os.RemoveAll(w.host.podDir(w.uid)); err != nil {
		w.host.logf("remove directory of Pod %s: %v", w.pod.Name, err)
	}
}

// away reports whether the node of the Pod is off the network.
func (w *worker) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (w *worker) wakeAfter(d time.Duration) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sync()
	})
}

// sync acts on what is known; the caller holds the lock.
func (w *worker) sync() {
	if w.gone || w.lost || w.ctx.Err() != nil {
		return
	}
	deleted := w.pod.DeletionTimestamp != nil
	changed := mainContainer(w.pod).Image != w.image
	switch {
	case w.run != nil && deleted:
		w.stop(w.grace(), "deleted")
	case w.run != nil && changed && w.run.init == "":
		w.stop(w.grace(), "image changed")
	case w.run != nil && w.starves():
		w.run.starved = true
		w.run.signal(syscall.SIGKILL)
	case w.run != nil:
	case deleted:
		w.publish()
		w.remove()
		return
	case w.failed():
	case restarts(w.pod, &w.status) && (changed || !time.Now().Before(w.notBefore)):
		w.publish() // that it is waiting, should the start take a while
		if w.initialize() {
			w.start()
		}
	}
	w.publish()
}

// starves reports whether the process has less memory than any etcd starts with.
func (w *worker) starves() bool {
	limit := mainContainer(w.pod).Resources.Limits.Memory()
	return w.run.init == "" && !limit.IsZero() && limit.Cmp(LeastMemory) < 0
}

// grace the API server granted at deletion, or the Pod's own.
func (w *worker) grace() time.Duration {
	for _, s := range []*int64{w.pod.DeletionGracePeriodSeconds, w.pod.Spec.TerminationGracePeriodSeconds} {
		if s != nil {
			return time.Duration(*s) * time.Second
		}
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// stop asks the process to end and kills it after the grace period. Asked
// again, it only ever brings the kill forward.
func (w *worker) stop(grace time.Duration, why string) {
	r := w.run
	if grace == 0 {
		r.stopping = true
		r.signal(syscall.SIGKILL)
		return
	}
	if !r.stopping {
		r.stopping = true
		w.host.logf("%s: stopping: %s", w.pod.Name, why)
		r.signal(syscall.SIGTERM)
	}
	time.AfterFunc(grace, func() { r.signal(syscall.SIGKILL) })
}

// publish the status if it is news.
func (w *worker) publish() {
	status := podStatus(w.pod, &w.published, &w.status, w.addr.String())
	if w.inits != nil {
		status.InitContainerStatuses = slices.Clone(w.inits)
		done := !slices.ContainsFunc(w.inits, func(s corev1.ContainerStatus) bool { return !s.Ready })
		setCondition(&status, corev1.PodInitialized, done, "ContainersNotInitialized", "")
		if w.failed() {
			status.Phase = corev1.PodFailed
		}
	}
	if w.gone || w.ctx.Err() != nil || equality.Semantic.DeepEqual(status, w.published) {
		return
	}
	w.patch(status)
}

func (w *worker) patch(status corev1.PodStatus) {
	// A patch from what was last published to what is now, as kubelet sends it:
	// conditions of others stay. The UID keeps it off a namesake.
	named := metav1.ObjectMeta{Namespace: w.pod.Namespace, Name: w.pod.Name}
	from := &corev1.Pod{ObjectMeta: named, Status: w.published}
	to := &corev1.Pod{ObjectMeta: named, Status: status}
	to.UID = w.uid
	err := w.host.client.Status().Patch(w.ctx, to, client.StrategicMergeFrom(from))
	switch {
	case err == nil:
		w.published = status
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), w.ctx.Err() != nil:
		// The Pod is gone: the watch is about to tell.
	default:
		w.host.logf("patch status of Pod %s: %v", w.pod.Name, err)
		w.wakeAfter(w.host.opts.BackoffBase)
	}
}

// remove the object of a Pod that has been deleted and has ended.
func (w *worker) remove() {
	err := w.host.client.Delete(w.ctx, w.pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &w.uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && w.ctx.Err() == nil {
		w.host.logf("delete Pod %s: %v", w.pod.Name, err)
		w.wakeAfter(w.host.opts.BackoffBase)
	}
}
