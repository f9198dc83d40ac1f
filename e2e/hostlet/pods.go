package hostlet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// nodeName is the node that all Pods are bound to.
const nodeName = "hostlet"

// Cores is how much cpu the node has as far as the API server knows. Pods are bound to it whatever
// they ask for, as to another node that has room; only those that run there are not given more.
const Cores = 64

// CPU is so many cores, as Pods ask for them.
func CPU(cores int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI)}
}

// nodeLabels are those of the node. A Pod that selects another value of one of them has no place;
// nodes with any other label are there, as far as a Pod asks for them.
var nodeLabels = map[string]string{corev1.LabelOSStable: "linux"}

// selected reports whether the node is one that the Pod selects.
func selected(pod *corev1.Pod) bool {
	for label, value := range nodeLabels {
		if wants, ok := pod.Spec.NodeSelector[label]; ok && wants != value {
			return false
		}
	}
	return true
}

// createNode registers the node, with what it has.
func (h *Hostlet) createNode(ctx context.Context) error {
	has := CPU(Cores)
	has[corev1.ResourceMemory], has[corev1.ResourcePods] = resource.MustParse("256Gi"), resource.MustParse("10000")
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: nodeLabels},
		Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
	if err := h.client.Create(ctx, node); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Node: %w", err)
	}
	return nil
}

// setupPods schedules Pods and gives each one that is scheduled a worker.
// Workers live until ctx ends.
func (h *Hostlet) setupPods(ctx context.Context, mgr ctrl.Manager) error {
	// What a Pod waits for before it can be scheduled.
	waitedFor := handler.EnqueueRequestsFromMapFunc(h.unscheduled)
	return ctrl.NewControllerManagedBy(mgr).
		Named("pods").
		For(&corev1.Pod{}).
		Watches(&corev1.PersistentVolumeClaim{}, waitedFor).
		Watches(&storagev1.StorageClass{}, waitedFor).
		Complete(reconcile.Func(func(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, h.syncPod(ctx, req.NamespacedName)
		}))
}

func (h *Hostlet) unscheduled(ctx context.Context, _ client.Object) []ctrl.Request {
	pods := &corev1.PodList{}
	if err := h.client.List(ctx, pods); err != nil {
		h.logf("list Pods: %v", err)
	}
	var requests []ctrl.Request
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
		}
	}
	return requests
}

func (h *Hostlet) syncPod(ctx context.Context, key types.NamespacedName) error {
	pod := &corev1.Pod{}
	if err := client.IgnoreNotFound(h.client.Get(ctx, key, pod)); err != nil {
		return fmt.Errorf("get Pod %s: %w", key, err)
	}
	// A Pod that does not exist has no UID.
	if w := h.worker(key); w != nil && w.uid != pod.UID {
		if pod.UID == "" && w.away() {
			return nil // nothing on its node hears that the Pod is gone
		}
		w.vanish()
		h.forget(key)
	}
	switch {
	case pod.UID == "":
		return nil
	case pod.Spec.NodeName == "":
		return h.schedule(ctx, pod)
	case pod.Spec.NodeName != nodeName:
		return nil // another kubelet's node
	}
	w, err := h.workerFor(ctx, pod)
	if err != nil {
		return err
	}
	w.update(pod)
	return nil
}

func (h *Hostlet) worker(key types.NamespacedName) *worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.workers[key]
}

func (h *Hostlet) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.workers, key)
}

func (h *Hostlet) workerFor(ctx context.Context, pod *corev1.Pod) (*worker, error) {
	key := client.ObjectKeyFromObject(pod)
	hostname := pod.Spec.Hostname
	if hostname == "" {
		hostname = pod.Name
	}
	addr, err := h.names.address(podName{hostname: hostname, subdomain: pod.Spec.Subdomain, namespace: pod.Namespace})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.workers[key] == nil {
		if h.workers[key], err = newWorker(ctx, h, pod, addr); err != nil {
			delete(h.workers, key)
			return nil, err
		}
	}
	return h.workers[key], nil
}

// schedule binds the Pod to the node once its claims are bound, or says in its
// PodScheduled condition what it waits for.
func (h *Hostlet) schedule(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	h.mu.Lock()
	cordoned := h.cordoned
	h.mu.Unlock()
	obstacle, err := "1 node(s) were unschedulable", error(nil)
	switch {
	case cordoned:
	case !selected(pod):
		obstacle = "1 node(s) didn't match Pod's node affinity/selector"
	default:
		obstacle, err = h.bindClaims(ctx, pod)
	}
	if err != nil {
		return err
	}
	if obstacle != "" {
		status := pod.Status.DeepCopy()
		setCondition(status, corev1.PodScheduled, false, corev1.PodReasonUnschedulable, "0/1 nodes are available: "+obstacle)
		waits := pod.DeepCopy()
		waits.Status = *status
		return client.IgnoreNotFound(h.client.Status().Patch(ctx, waits, client.StrategicMergeFrom(pod)))
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
	}
	err = h.client.SubResource("binding").Create(ctx, pod, binding)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // bound or deleted already: the watch is about to tell
	}
	return err
}
