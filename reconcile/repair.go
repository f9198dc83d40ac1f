package reconcile

import (
	"context"
	"time"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// repair changes the Pod of a member in place, after a look past the cache: the Pod does not come
// up, and the data of the member, which is in memory, would go with it. What has run on that data
// is written on the Pod, by the same write as its image.
func (r *Reconciler) repair(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.refused.pending(c, step, time.Now()); err != nil {
		return err
	}
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
		i, _ := seen.Instance(name)
		m := member(c, seen, name)
		m.Version, m.Ran = step.Version.String(), step.Version.String()
		if i.Volume.Version.Minor == 5 && step.Version.Minor > 5 { // as where it answers
			m.Replays = membership.ReplaysAny
		}
		err = r.changeImage(ctx, c, pod, m, render.Image(c, m.Version), "")
	}
	if err != nil {
		return err
	}
	r.event(c, step, step.Message)
	return nil
}
