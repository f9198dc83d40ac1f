//go:build env

package reconcile_test

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile"
)

// held is a cache that can be held back: what a cluster and its members consist of is then as it
// was at that moment.
type held struct {
	client.Client
	stage *stage
	looks chan struct{}

	mu    sync.Mutex
	world *world // nil while it is not held back
}

type world struct {
	clusters api.EtcdClusterList
	pods     corev1.PodList
	claims   corev1.PersistentVolumeClaimList
}

func (h *held) between(r *reconcile.Reconciler) {
	h.Client = r.Client
	r.Client = h
}

func (h *held) hold() { h.show(h.look()) }

// look at the world as it is.
func (h *held) look() *world {
	w := &world{}
	for _, list := range []client.ObjectList{&w.clusters, &w.pods, &w.claims} {
		if err := h.stage.List(h.stage.Context(), list, client.InNamespace(h.stage.ns)); err != nil {
			h.stage.Error(err)
		}
	}
	return w
}

// show the world as it was once.
func (h *held) show(w *world) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.world = w
}

func (h *held) release() { h.show(nil) }

func (h *held) seen() *world {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.world
}

// looked waits until the operator has looked so often from now on, at what is held.
func (h *held) looked(times int) {
	h.stage.Helper()
	select {
	case <-h.looks: // an earlier one
	default:
	}
	late := time.After(patience)
	for n := range times {
		select {
		case <-h.looks:
		case <-late:
			h.stage.Fatalf("waited %s for the operator to look %d times; it has looked %d times", patience, times, n)
		}
	}
}

func (h *held) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	w := h.seen()
	if w == nil {
		return h.Client.Get(ctx, key, o, opts...)
	}
	found := false
	switch o := o.(type) {
	case *api.EtcdCluster:
		select {
		case h.looks <- struct{}{}:
		default: // none counts
		}
		if n := slices.IndexFunc(w.clusters.Items, func(c api.EtcdCluster) bool { return c.Name == key.Name }); n >= 0 {
			w.clusters.Items[n].DeepCopyInto(o)
			found = true
		}
	case *corev1.Pod:
		if n := slices.IndexFunc(w.pods.Items, func(p corev1.Pod) bool { return p.Name == key.Name }); n >= 0 {
			w.pods.Items[n].DeepCopyInto(o)
			found = true
		}
	case *corev1.PersistentVolumeClaim:
		if n := slices.IndexFunc(w.claims.Items, func(p corev1.PersistentVolumeClaim) bool { return p.Name == key.Name }); n >= 0 {
			w.claims.Items[n].DeepCopyInto(o)
			found = true
		}
	default:
		return h.Client.Get(ctx, key, o, opts...)
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (h *held) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if w := h.seen(); w != nil {
		switch list := list.(type) {
		case *corev1.PodList:
			w.pods.DeepCopyInto(list)
			return nil
		case *corev1.PersistentVolumeClaimList:
			w.claims.DeepCopyInto(list)
			return nil
		}
	}
	return h.Client.List(ctx, list, opts...)
}
