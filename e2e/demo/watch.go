package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// watchUntilReady prints what happens to the cluster and its Pods, as it happens, until the cluster
// is ready.
func watchUntilReady(ctx context.Context, kubeconfig string, c *api.EtcdCluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not ready within %s", patience))
	defer cancel()
	kube, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	changes := newChanges(c.Name)
	for {
		ended, err := follow(ctx, kube, c, changes)
		if ended || err != nil {
			return err
		}
	}
}

func connect(kubeconfig string) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{clientgoscheme.AddToScheme, api.AddToScheme}
	if err := kinds.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// follow returns false when a watch has ended before the cluster was ready, as servers end them
// every now and then. A watch begins with all there is.
func follow(ctx context.Context, kube client.WithWatch, c *api.EtcdCluster, changes *changes) (ready bool, err error) {
	clusters, err := kube.Watch(ctx, &api.EtcdClusterList{}, client.InNamespace(c.Namespace), client.MatchingFields{"metadata.name": c.Name})
	if err != nil {
		return false, fmt.Errorf("watch EtcdCluster %s: %w", c.Name, err)
	}
	defer clusters.Stop()
	pods, err := kube.Watch(ctx, &corev1.PodList{}, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelCluster: c.Name})
	if err != nil {
		return false, fmt.Errorf("watch Pods: %w", err)
	}
	defer pods.Stop()
	for {
		var event watch.Event
		var open bool
		select {
		case event, open = <-clusters.ResultChan():
		case event, open = <-pods.ResultChan():
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		if !open {
			return false, nil
		}
		switch o := event.Object.(type) {
		case *corev1.Pod:
			changes.pod(o)
		case *api.EtcdCluster:
			if done, err := changes.cluster(o); done || err != nil {
				return done, err
			}
		}
	}
}

// changes prints a line for each change that a person cares about, and none twice in a row.
type changes struct {
	name    string
	started time.Time
	last    map[string]string // by subject
}

func newChanges(name string) *changes {
	return &changes{name: name, started: time.Now(), last: map[string]string{}}
}

func (c *changes) say(subject, text string) {
	if c.last[subject] == text {
		return
	}
	c.last[subject] = text
	fmt.Printf("     %6s  %-*s  %s\n", seconds(time.Since(c.started)), len(c.name)+2, subject, text)
}

// cluster reports whether it is ready; a stalled one is an error, because waiting does not help it.
func (c *changes) cluster(o *api.EtcdCluster) (ready bool, err error) {
	current := func(kind string) *metav1.Condition {
		if found := meta.FindStatusCondition(o.Status.Conditions, kind); found != nil && found.ObservedGeneration == o.Generation {
			return found
		}
		return nil
	}
	condition := current(api.ConditionReady)
	if condition == nil {
		return false, nil
	}
	c.say(c.name, condition.Reason+": "+condition.Message)
	if stalled := current(api.ConditionStalled); stalled != nil {
		return false, errors.New(stalled.Message)
	}
	if o.Spec.Replicas != nil && *o.Spec.Replicas == 0 {
		return false, fmt.Errorf("%s is hibernated: kubectl scale etcdcluster %s --replicas=3 wakes it up", o.Name, o.Name)
	}
	return condition.Status == metav1.ConditionTrue, nil
}

func (c *changes) pod(o *corev1.Pod) {
	c.say(o.Name, podState(o))
}

// podState is the last stage that a Pod has reached.
func podState(pod *corev1.Pod) string {
	if !pod.DeletionTimestamp.IsZero() {
		return "ending"
	}
	is := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	switch {
	case is[corev1.PodReady]:
		return "ready"
	case is[corev1.ContainersReady], pod.Status.Phase == corev1.PodRunning:
		return "running"
	case is[corev1.PodScheduled]:
		return "scheduled"
	default:
		return "created"
	}
}
