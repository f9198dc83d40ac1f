//go:build env

package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// Look at a cluster past the cache, as before a change of its members.
func (r *Reconciler) Look(ctx context.Context, key client.ObjectKey) (membership.Desired, membership.Observed, error) {
	c := &api.EtcdCluster{}
	if err := r.Reader.Get(ctx, key, c); err != nil {
		return membership.Desired{}, membership.Observed{}, err
	}
	seen, err := r.observe(ctx, c, r.Reader)
	return desired(c), seen.Observed, err
}
