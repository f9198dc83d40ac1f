package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// What is not found by its label, since it was taken away or changed, is looked for by name: no
// member is down or lost by that, and the label comes back with the next apply. Whose it is shows
// all the same: a Pod has its owner, and a claim says whose data it holds. Nothing is asked for
// while all is found by label.

// unlabelledPods adds the Pods of members. In hibernation there are none to be found.
func (r *Reconciler) unlabelledPods(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	for _, m := range c.Status.Members {
		if seen.pods[m.Name] != nil || size(c) == 0 && c.Status.Replicas == 0 {
			continue
		}
		pod := &corev1.Pod{}
		lost, err := r.lostLabel(ctx, c, m.Name, pod)
		if err != nil {
			return fmt.Errorf("get Pod %s: %w", m.Name, err)
		}
		if lost && metav1.IsControlledBy(pod, c) {
			seen.pods[m.Name] = pod
		}
	}
	return nil
}

// unlabelledClaims adds the claims of members that had one before. Where the label is there the
// cache is behind, and a member that serves would get a successor as one whose claim is gone.
func (r *Reconciler) unlabelledClaims(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	for _, m := range c.Status.Members {
		if seen.claims[m.Name] != nil || m.Volume == "" {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		if _, err := r.lostLabel(ctx, c, m.Name, claim); err != nil {
			return fmt.Errorf("get PersistentVolumeClaim %s: %w", m.Name, err)
		}
		if holdsDataOf(c, claim) && claim.Annotations[api.AnnotationMemberID] == m.ID {
			seen.claims[m.Name] = claim
		}
	}
	return nil
}

// newClaims adds the claims of members to come whose Pods are seen already: the caches of Pods and
// of claims are not of the same time, after a loss of the API server by half a minute. Without its
// claim such a Pod would be what a member has left behind, and be stopped, and the next one made in
// its place under the next name.
func (r *Reconciler) newClaims(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	for name, pod := range seen.pods {
		if pod.Annotations[api.AnnotationProvisions] == "" || !pod.DeletionTimestamp.IsZero() || seen.claims[name] != nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, claim)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get PersistentVolumeClaim %s: %w", name, err)
		}
		if err == nil && claim.Labels[api.LabelCluster] == c.Name {
			seen.claims[name] = claim
		}
	}
	return nil
}

// lostLabel reads the object of that name, and reports whether there is one that has not our label.
func (r *Reconciler) lostLabel(ctx context.Context, c *api.EtcdCluster, name string, o client.Object) (bool, error) {
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return o.GetLabels()[api.LabelCluster] != c.Name, err
}

// holdsDataOf reports whether an object says that it holds data of the cluster.
func holdsDataOf(c *api.EtcdCluster, o client.Object) bool {
	return c.Status.ClusterID != "" && o.GetAnnotations()[api.AnnotationClusterID] == c.Status.ClusterID
}
