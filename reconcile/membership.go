package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// changeMembership makes the one change of the step: written down first, then looked at again, and
// carried out only if what is seen now leads to the very same step. Two operators may be alive at a
// time, caches may be behind, and a reply may be lost; what is never to happen is a change that was
// decided on facts that are no longer true. The request to etcd is given up
// (membership.CallTimeout, and etcd's own of seven seconds) long before another operation may take
// its place.
func (r *Reconciler) changeMembership(pass context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.drain(pass, c, seen); err != nil {
		return err
	}
	if err := r.begin(pass, c, seen, step, volumeUID); err != nil {
		return err
	}
	if err := r.spend(pass, c, seen, step); err != nil {
		return err
	}
	ctx, cancel, err := r.inTime(pass, c)
	if err != nil {
		return err
	}
	defer cancel()
	err = r.atLeader(c, seen, func(etcd membership.Client) (err error) {
		defer func() { r.settle(c, err) }() // where no member is asked, what was asked before stays as it is
		switch step.Action {
		case membership.AddLearner:
			return etcd.AddLearner(ctx, c.PeerURL(step.Members[0]))
		case membership.Promote:
			return etcd.Promote(ctx, step.ID)
		case membership.Remove:
			return etcd.Remove(ctx, step.ID)
		case membership.MoveLeader:
			return etcd.MoveLeader(ctx, step.ID)
		default:
			return fmt.Errorf("step %s changes no membership", step.Action)
		}
	})
	if err != nil {
		return err
	}
	r.event(c, step, step.Message)
	if pod := seen.pods[step.Members[0]]; step.Action == membership.Remove && pod != nil && pod.DeletionTimestamp.IsZero() {
		return r.deletePod(pass, c, pod, step) // what the next pass would do, after asking in vain a process that is ending
	}
	return nil
}

// spend gives a learner that is about to go before it has started the volume that was made for it,
// so that the volume goes with it: what comes next has another name, and an operator with an old
// view does not take the one for the other. A volume that is being deleted is none that comes next,
// and is not written to.
func (r *Reconciler) spend(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	i, _ := seen.Instance(step.Members[0])
	claim := seen.claims[i.Name]
	if step.Action != membership.Remove || !i.Volume.Spare || i.Volume.Terminating || claim == nil {
		return nil
	}
	m := member(c, seen, i.Name)
	m.Join = step.ID.String()
	return r.writeVolume(ctx, c, claim, m)
}

// adjust tells etcd something that changes no membership, and that may be said twice: to take back
// an alarm, which is seen again where it is raised again, and to prepare a downgrade, or not. What
// a member is being changed to may not start after the latter: it is written down and looked at
// again like every other change.
func (r *Reconciler) adjust(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if step.Action == membership.Disarm {
		return r.tell(c, seen, step, func(etcd membership.Client) error { return etcd.Disarm(ctx, step.Alarm, step.ID) })
	}
	all := step
	for _, i := range seen.Instances {
		if seen.Member(i.ID) != nil {
			all.Members = append(all.Members, i.Name)
		}
	}
	if err := r.intend(ctx, c, seen, all, podUID); err != nil {
		return err
	}
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	ctx, cancel, err := r.inTime(ctx, c)
	if err != nil {
		return err
	}
	defer cancel()
	return r.tell(c, seen, step, func(etcd membership.Client) (err error) {
		defer func() { r.settle(c, err) }()
		if step.Action == membership.Downgrade {
			return etcd.Downgrade(ctx, step.Version)
		}
		return etcd.CancelDowngrade(ctx)
	})
}

// tell asks the leader for the step, and writes an event where it was done.
func (r *Reconciler) tell(c *api.EtcdCluster, seen observed, step membership.Step, ask func(membership.Client) error) error {
	err := r.atLeader(c, seen, ask)
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}

// begin writes a step down, and looks again whether it is still to be done.
func (r *Reconciler) begin(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step, uid func(membership.Instance) string) error {
	if err := r.intend(ctx, c, seen, step, uid); err != nil {
		return err
	}
	return r.confirm(ctx, c, step)
}

// confirm looks again, past the cache, and reports apply.ErrChanged where that leads to another
// step. Reads and writes of other operators show as a resource version of the EtcdCluster that is
// not the one we have just written.
func (r *Reconciler) confirm(ctx context.Context, c *api.EtcdCluster, step membership.Step) error {
	live := &api.EtcdCluster{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return fmt.Errorf("look at the EtcdCluster again: %w", err)
	}
	if live.ResourceVersion != c.ResourceVersion || live.UID != c.UID {
		return apply.ErrChanged
	}
	seen, err := r.observe(ctx, live, r.Reader)
	if err != nil {
		return err
	}
	if again := foretold(live, seen, membership.Plan(desired(live), seen.Observed)); !reflect.DeepEqual(again, step) {
		return fmt.Errorf("%w: now it is %s", apply.ErrChanged, again)
	}
	return nil
}

// atLeader asks the leader, which alone can hand over its leadership, and judges learners by what
// it knows itself; where it does not answer here, any member that serves.
func (r *Reconciler) atLeader(c *api.EtcdCluster, seen observed, ask func(membership.Client) error) error {
	var at *corev1.Pod
	for _, i := range seen.Instances {
		if pod := seen.pods[i.Name]; pod != nil && i.Serves() && (at == nil || i.Leads()) {
			at = pod
		}
	}
	if at == nil {
		return fmt.Errorf("%w: no member that answers serves", membership.ErrLater)
	}
	etcd, err := r.dial(c, at)
	if err != nil {
		return err
	}
	return errors.Join(ask(etcd), etcd.Close())
}

// discard deletes the volumes of former members, or marks them where the spec keeps them, after a
// look past the cache. A volume on which nothing has ever run is never kept.
func (r *Reconciler) discard(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.begin(ctx, c, seen, step, volumeUID); err != nil {
		return err
	}
	err := each(step.Members, func(name string) error {
		i, _ := seen.Instance(name)
		claim := seen.claims[name]
		if claim == nil {
			return nil
		}
		if desired(c).Retain && !i.Volume.Spare && step.Reason != membership.Reverting {
			m := member(c, seen, name)
			m.Retired = true
			return r.writeVolume(ctx, c, claim, m)
		}
		err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PersistentVolumeClaim %s: %w", name, err)
		}
		return nil
	})
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}
