//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile"
)

// deafening is a client under which the node of the first member that gets an image falls silent,
// just before it would hear of it.
type deafening struct {
	client.Client
	version string
	once    sync.Once
	before  func(pod string) error
	after   func(pod string)
}

func (d *deafening) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	pod, ok := o.(*corev1ac.PodApplyConfiguration)
	tries := len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0
	if !ok || tries || pod.Spec == nil || len(pod.Spec.Containers) == 0 || !strings.Contains(*pod.Spec.Containers[0].Image, d.version) {
		return d.Client.Apply(ctx, o, opts...)
	}
	name := ""
	var err error
	d.once.Do(func() {
		name = *pod.Name
		err = d.before(name)
	})
	if err = errors.Join(err, d.Client.Apply(ctx, o, opts...)); err == nil && name != "" {
		d.after(name)
	}
	return err
}

// TestArmedTakenBack: a node falls silent just before it hears of a new image, and etcd there goes
// on. Where the spec is set back, so is the Pod: the node finds nothing to do when it is back.
func TestArmedTakenBack(t *testing.T) {
	s := newStage(t)
	armed := make(chan string, 1)
	s.operate(func(r *reconcile.Reconciler) {
		r.Client = &deafening{
			Client: r.Client, version: etcd37,
			before: func(pod string) error { return s.hostlet.Deafen(s.ns, pod) },
			after:  func(pod string) { armed <- pod },
		}
	})
	c := s.cluster("db", 3)
	load := s.laden(c)
	before, restarts := s.lives(c)
	s.change(c, func() { c.Spec.Version = etcd37 })
	victim := <-armed
	s.must(errors.Join(s.hostlet.LoseNode(s.ns, victim), s.hostlet.Resume(s.ns, victim))) // etcd is not away, its kubelet is
	s.change(c, func() { c.Spec.Version = etcd36 })
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = victim, s.ns
	s.awaitPod(pod, "set back", func() bool {
		return !strings.Contains(pod.Spec.Containers[0].Image, etcd37) && pod.Annotations[api.AnnotationPrevious] == ""
	})
	s.must(s.hostlet.ReturnNode(s.ns, victim))
	s.runs(c, etcd36)
	after, now := s.lives(c)
	for member, uid := range before {
		if after[member] != uid || now[member] != restarts[member] {
			t.Errorf("%s was started again, %d times, or recreated", member, now[member]-restarts[member])
		}
	}
	load.check()
}
