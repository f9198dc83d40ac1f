package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// tryImage finds out which images cannot be changed under their Pods. A policy that has rewritten the image of a Pod may act when Pods
// are created alone. It would not see a change in place, which then writes the very name that the policy keeps Pods from. So the API
// server is asked what it would make of the change, and does nothing (dry run). Where it would leave the image as it is asked for, the
// Pod is recreated, unless it has that image already.
func (r *Reconciler) tryImage(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	if givenUp(c) != "" { // it is not asked for again
		return nil
	}
	var rewritten []int
	for n, i := range seen.Instances {
		if i.Pod.Change == membership.ChangeImage && render.Rewritten(c, seen.pods[i.Name]) {
			rewritten = append(rewritten, n)
		}
	}
	return each(rewritten, func(n int) error {
		i := &seen.Instances[n]
		pod, m := seen.pods[i.Name], member(c, seen, i.Name)
		m.Version = membership.Hop(desired(c), seen.Observed).String()
		asked := render.Image(c, m.Version)
		changed, err := render.PodImage(pod, c, m, asked)
		if err != nil {
			return &invalidError{err}
		}
		err = r.Client.Apply(ctx, changed.WithUID(pod.UID), client.FieldOwner(api.Manager), client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return inconclusive(err)
		}
		if asked != etcdImage(pod) && render.Asks(changed, asked) { // an apply leaves the answer in what was applied
			i.Pod.Change = membership.ChangePod
		}
		return nil
	})
}
