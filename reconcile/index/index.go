// Package index has the cache find the objects of a cluster. With namespace and label alone it
// would go through those of all clusters of the namespace, in each pass over each of them.
package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// OfCluster is the field by which objects are found: the name of their cluster.
const OfCluster = "quorate.cluster"

// Kinds are indexed by OfCluster: every kind that is listed at each look, or at each change of a
// cluster.
func Kinds() map[client.Object]client.IndexerFunc {
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

// Add the indexes to a cache, before it starts. The reconcilers of one manager share them: it is
// done once for all.
func Add(ctx context.Context, cache client.FieldIndexer) error {
	for o, by := range Kinds() {
		if err := cache.IndexField(ctx, o, OfCluster, by); err != nil {
			return fmt.Errorf("index %T by cluster: %w", o, err)
		}
	}
	return nil
}
