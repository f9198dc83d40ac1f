package reconcile

import (
	"context"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// repair changes the Pod of a member in place, after a look past the cache: the Pod does not come
// up, and the data of the member, which is in memory, would go with it. It can be rolled back.
func (r *Reconciler) repair(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	name := step.Members[0]
	pod := seen.pods[name]
	if pod == nil {
		return apply.ErrChanged
	}
	var err error
	if step.Change == membership.ChangeResources {
		err = r.resize(ctx, c, pod)
	} else {
		m := member(c, seen, name)
		m.Version = step.Version.String()
		err = r.changeImage(ctx, c, pod, m, render.Image(c, m.Version), previous(c, pod))
	}
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}
