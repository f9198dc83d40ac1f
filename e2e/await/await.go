// Package await waits for objects by watch, never for time.
package await

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Change calls done at every change of an object, which is read afresh before and has no UID while
// it does not exist. It returns true once done does, and false without an error when the watch
// ends, as servers end it every now and then, or the connection is lost.
func Change(ctx context.Context, c client.WithWatch, o client.Object, done func() bool) (bool, error) {
	changed, err := change(ctx, c, o, done)
	if !lost(ctx, err) {
		return changed, err
	}
	return false, nil
}

// Answer makes a call until the API server answers it, and returns that answer. A call whose
// connection is lost may have been carried out: it must be one that can be made twice.
func Answer(ctx context.Context, call func() error) error {
	for {
		if err := call(); !lost(ctx, err) {
			return err
		}
	}
}

// lost reports whether an error is of the connection, after a pause in which the next one may come.
func lost(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || answered(err) {
		return false
	}
	select {
	case <-ctx.Done():
	case <-time.After(betweenConnections):
	}
	return true
}

// betweenConnections is how long after a connection was lost the next one is tried.
const betweenConnections = 100 * time.Millisecond

// answered reports whether an error is what the API server says. Any other one is of the
// connection, such as an HTTP/2 stream that was reset under load.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) || meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err)
}

func change(ctx context.Context, c client.WithWatch, o client.Object, done func() bool) (bool, error) {
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
