package history

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods are where the members of a cluster run, which may come and go.
type Pods struct {
	Client client.WithWatch
	Select []client.ListOption
	// Endpoint is how a client reaches the member in a Pod.
	Endpoint func(*corev1.Pod) string
}

// staying are the Pods that are not terminating: one that is may be on a lost node.
func (p Pods) staying(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := p.Client.List(ctx, pods, p.Select...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() }), nil
}

// serving are the endpoints of the members that the Service for clients leads to now.
func (p Pods) serving(ctx context.Context) ([]string, error) {
	pods, err := p.staying(ctx)
	if err != nil {
		return nil, err
	}
	var endpoints []string
	for i := range pods {
		if Ready(&pods[i]) {
			endpoints = append(endpoints, p.Endpoint(&pods[i]))
		}
	}
	return endpoints, nil
}

// follow calls told whenever serving may have changed, until the context ends.
func (p Pods) follow(ctx context.Context, told func()) {
	for ctx.Err() == nil {
		w, err := p.Client.Watch(ctx, &corev1.PodList{}, p.Select...)
		if err != nil {
			continue
		}
		for range w.ResultChan() {
			told()
		}
		w.Stop()
	}
}

// Ready reports whether the kubelet says that the Pod is.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
