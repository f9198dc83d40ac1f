package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// ofCluster is the index by which the cache finds the objects of a cluster. With namespace and
// label alone it would go through those of all clusters of the namespace, in each pass over each of
// them.
const ofCluster = "quorate.cluster"

// indexes are what the cache indexes by ofCluster: every kind that is listed at each look.
func indexes() map[client.Object]client.IndexerFunc {
	labelled := func(o client.Object) []string { return nameOf(o.GetLabels()[api.LabelCluster]) }
	return map[client.Object]client.IndexerFunc{
		&corev1.Pod{}:                   labelled,
		&corev1.PersistentVolumeClaim{}: labelled,
		&api.EtcdBackup{}: func(o client.Object) []string {
			b, _ := o.(*api.EtcdBackup)
			return nameOf(b.Spec.ClusterRef.Name)
		},
		&api.EtcdRestore{}: func(o client.Object) []string {
			e, _ := o.(*api.EtcdRestore)
			return nameOf(e.Spec.ClusterRef.Name)
		},
	}
}

func nameOf(cluster string) []string {
	if cluster == "" {
		return nil
	}
	return []string{cluster}
}

// index has the cache find objects by cluster.
func index(ctx context.Context, cache client.FieldIndexer) error {
	for o, by := range indexes() {
		if err := cache.IndexField(ctx, o, ofCluster, by); err != nil {
			return fmt.Errorf("index %T by cluster: %w", o, err)
		}
	}
	return nil
}

// cached is a cache with the indexes of index, as one look at a cluster reads it: what it lists is
// of that cluster.
type cached struct {
	client.Reader
	cluster string
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Reader.List(ctx, list, append(opts, client.MatchingFields{ofCluster: c.cluster})...)
}
