package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/reconcile/index"
)

// cached is a cache with the indexes of package index, as one look at a cluster reads it: what it
// lists is of that cluster.
type cached struct {
	client.Reader
	cluster string
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Reader.List(ctx, list, append(opts, client.MatchingFields{index.OfCluster: c.cluster})...)
}
