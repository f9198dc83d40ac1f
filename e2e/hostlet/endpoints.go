package hostlet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// LagEndpoints lets every EndpointSlice follow its Pods so much later from now on; with a negative
// lag none follows any more.
func (h *Hostlet) LagEndpoints(lag time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endpointLag = lag
}

// setupEndpoints keeps one EndpointSlice for each Service that selects Pods.
func (h *Hostlet) setupEndpoints(mgr ctrl.Manager) error {
	if h.opts.NoEndpoints {
		return nil
	}
	services := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, pod client.Object) []ctrl.Request {
		list := &corev1.ServiceList{}
		if err := h.client.List(ctx, list, client.InNamespace(pod.GetNamespace())); err != nil {
			h.logf("list Services: %v", err)
		}
		requests := make([]ctrl.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("endpoints").
		For(&corev1.Service{}).
		Watches(&corev1.Pod{}, services).
		Complete(reconcile.Func(h.syncEndpoints))
}

func (h *Hostlet) syncEndpoints(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	h.mu.Lock()
	lag := h.endpointLag
	h.mu.Unlock()
	switch {
	case lag < 0:
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case lag > 0:
		select {
		case <-time.After(lag):
		case <-ctx.Done():
			return ctrl.Result{}, ctx.Err()
		}
	}
	live := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name + "-" + nodeName}}
	service := &corev1.Service{}
	err := h.client.Get(ctx, request.NamespacedName, service)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, client.IgnoreNotFound(h.client.Delete(ctx, live))
	}
	if err != nil || len(service.Spec.Selector) == 0 {
		return ctrl.Result{}, err
	}
	pods := &corev1.PodList{}
	if err := h.client.List(ctx, pods, client.InNamespace(request.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list Pods: %w", err)
	}
	err = h.reader.Get(ctx, client.ObjectKeyFromObject(live), live)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	labels, endpoints := maps.Clone(service.Labels), endpointsOf(service, pods.Items)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = service.Name, nodeName
	switch {
	case err != nil:
		live.Labels, live.AddressType, live.Endpoints = labels, discoveryv1.AddressTypeIPv4, endpoints
		live.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))}
		return ctrl.Result{}, client.IgnoreAlreadyExists(h.client.Create(ctx, live))
	case maps.Equal(live.Labels, labels) && equality.Semantic.DeepEqual(live.Endpoints, endpoints):
		return ctrl.Result{}, nil
	default:
		live.Labels, live.Endpoints = labels, endpoints
		return ctrl.Result{}, client.IgnoreNotFound(h.client.Update(ctx, live))
	}
}

// endpointsOf a Service are its Pods with an address that have not ended, in the order of their
// names.
func endpointsOf(service *corev1.Service, pods []corev1.Pod) []discoveryv1.Endpoint {
	var endpoints []discoveryv1.Endpoint
	for _, pod := range pods {
		if pod.Status.PodIP == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		serving := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		going := pod.DeletionTimestamp != nil
		ready := serving && !going || service.Spec.PublishNotReadyAddresses
		endpoints = append(endpoints, discoveryv1.Endpoint{
			Addresses:  []string{strings.Replace(pod.Status.PodIP, "127.", "10.", 1)}, // an API server takes no loopback address
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &going},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	slices.SortFunc(endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.TargetRef.Name, b.TargetRef.Name) })
	return endpoints
}
