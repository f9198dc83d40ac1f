// Package await waits for objects by watch, never for time.
package await

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Change calls done at every change of an object, which is read afresh before and has no UID while
// it does not exist. It returns true once done does, and false without an error when the watch
// ends, as servers end it every now and then.
func Change(ctx context.Context, c client.WithWatch, o client.Object, done func() bool) (bool, error) {
	kind, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return false, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	// First watch, then read: no change falls in between.
	w, err := c.Watch(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			o.SetUID("")
			err = nil
		}
		if err != nil {
			return false, err
		}
		if done() {
			return true, nil
		}
		if _, open := <-w.ResultChan(); !open {
			return false, nil
		}
	}
}
