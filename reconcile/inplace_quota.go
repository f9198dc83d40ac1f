package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// A dry run asks for one object at a time, and the API server does not add them up: a quota may
// admit the first new member, and not all of them. That must be told before any member is stopped.

// tryQuotas finds out why the ResourceQuotas of the namespace do not admit all new members of a
// restore in place. Where the operator may not read them, nothing is known.
func (r *Reconciler) tryQuotas(c *api.EtcdCluster, seen observed) try {
	over := ""
	ask := func(ctx context.Context) error {
		quotas := &corev1.ResourceQuotaList{}
		err := r.Reader.List(ctx, quotas, client.InNamespace(c.Namespace))
		if apierrors.IsForbidden(err) { // the installation is of an earlier release
			return nil
		}
		if err != nil {
			return fmt.Errorf("list ResourceQuotas: %w", err)
		}
		over = overQuota(quotas.Items, newMembersNeed(c, len(seen.pods)))
		return nil
	}
	learn := func(seen *observed, answer error) error {
		if over != "" {
			seen.holdUp(over, false)
		}
		return neededByMembers(seen, answer)
	}
	return try{"the list of ResourceQuotas", ask, learn}
}

// newMembersNeed is what those need that start first, beside the volumes of the former members,
// whose Pods are gone by then.
func newMembersNeed(c *api.EtcdCluster, formerPods int) corev1.ResourceList {
	n := int64(firstSize(c))
	claims := *resource.NewQuantity(n, resource.DecimalSI)
	storage := c.Spec.Storage.Size.DeepCopy()
	storage.Mul(n)
	need := corev1.ResourceList{
		corev1.ResourcePersistentVolumeClaims: claims, "count/persistentvolumeclaims": claims, corev1.ResourceRequestsStorage: storage,
	}
	if class := c.Spec.Storage.StorageClassName; class != nil && *class != "" {
		of := corev1.ResourceName(*class + ".storageclass.storage.k8s.io/")
		need[of+corev1.ResourcePersistentVolumeClaims], need[of+corev1.ResourceRequestsStorage] = claims, storage
	}
	if more := n - int64(formerPods); more > 0 {
		pods := *resource.NewQuantity(more, resource.DecimalSI)
		need[corev1.ResourcePods], need["count/pods"] = pods, pods
	}
	return need
}

// overQuota is the first quota that leaves less than is needed, in words that a person can act on.
// One with scopes is for Pods of some kind, or for some volumes: the dry run of one tells enough.
func overQuota(quotas []corev1.ResourceQuota, need corev1.ResourceList) string {
	slices.SortFunc(quotas, func(a, b corev1.ResourceQuota) int { return strings.Compare(a.Name, b.Name) })
	for _, q := range quotas {
		if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(need)) {
			left, limited := q.Status.Hard[name]
			left = left.DeepCopy()
			left.Sub(q.Status.Used[name])
			if wants := need[name]; limited && left.Cmp(wants) < 0 {
				return fmt.Sprintf("ResourceQuota %s leaves %s of %s, and the new members need %s beside the volumes of the former ones: raise it", q.Name, left.String(), name, wants.String())
			}
		}
	}
	return ""
}
