// Package apply has what the controllers of EtcdClusters, EtcdBackups and their schedules share of
// writing: a status, an object that is to be created, and the error where the facts have changed.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// OnlyIfAbsent makes an apply create an object, and fail with a conflict where there is one: no
// object has the resource version 1, and one that is not there is not compared. A Pod that is there
// may be a voter's by now, and must not be told again that it may start empty.
const OnlyIfAbsent = "1"

// ErrChanged says that what was decided is not what would be decided now. The next pass looks
// again.
var ErrChanged = errors.New("the facts have changed since the step was decided")

// Status applies a whole status to the object that with adds it to. The caller gives that object
// the resource version with which it was read: a status made of an old look must not take back what
// a newer one has written. The error is NotFound where the object is gone.
func Status[S any, A runtime.ApplyConfiguration](ctx context.Context, c client.Client, status any, with func(*S) A) error {
	raw, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	configuration := new(S)
	if err := json.Unmarshal(raw, configuration); err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	if err := c.Status().Apply(ctx, with(configuration), client.FieldOwner(api.Manager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status: %w", err)
	}
	return nil
}

// OfEarlier reports whether an object belongs to an earlier object of this kind and of the name of
// owner, which was deleted. The garbage collector is about to delete what belongs to it.
func OfEarlier(o metav1.Object, kind string, owner metav1.Object) bool {
	by := metav1.GetControllerOf(o)
	return by != nil && by.UID != owner.GetUID() && by.Kind == kind && by.APIVersion == api.SchemeGroupVersion.String() && by.Name == owner.GetName()
}
