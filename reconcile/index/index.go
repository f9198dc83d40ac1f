// Package index defines cache indexes of objects by the name of their EtcdCluster. Without an
// index, each List by namespace and label would go over the objects of all clusters in the
// namespace.
package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// OfCluster is the index field: the name of the EtcdCluster that an object belongs to.
const OfCluster = "quorate.cluster"

// Kinds are the kinds with the index OfCluster: those that are listed in each pass, or at each
// change of an EtcdCluster.
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
		&api.EtcdRole{}: func(o client.Object) []string {
			r, _ := o.(*api.EtcdRole)
			return nameOf(r.Spec.ClusterRef.Name)
		},
		&api.EtcdUser{}: func(o client.Object) []string {
			u, _ := o.(*api.EtcdUser)
			return nameOf(u.Spec.ClusterRef.Name)
		},
	}
}

func nameOf(cluster string) []string {
	if cluster == "" {
		return nil
	}
	return []string{cluster}
}

// Add adds the indexes to a cache before it starts. Call it once for a manager: its reconcilers
// share the indexes.
func Add(ctx context.Context, cache client.FieldIndexer) error {
	for o, by := range Kinds() {
		if err := cache.IndexField(ctx, o, OfCluster, by); err != nil {
			return fmt.Errorf("index %T by cluster: %w", o, err)
		}
	}
	return nil
}
