package reconcile

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// Where the data of a majority is gone for good, an EtcdRestore of what is left is created, if the spec asks for that. It is carried
// out like any other.

// onQuorumLoss is what the spec asks for.
func onQuorumLoss(c *api.EtcdCluster) api.QuorumLossPolicy {
	if r := c.Spec.Recovery; r != nil && r.QuorumLoss != "" {
		return r.QuorumLoss
	}
	return api.QuorumLossManual
}

// lossPatienceText is spec.recovery.quorumLossAfter as people write it.
func lossPatienceText(c *api.EtcdCluster) string {
	if r := c.Spec.Recovery; r != nil && r.QuorumLossAfter != nil {
		return string(*r.QuorumLossAfter)
	}
	return "10m"
}

// lossPatience is how long a majority must be lost.
func lossPatience(c *api.EtcdCluster) time.Duration {
	d, err := time.ParseDuration(lossPatienceText(c))
	if err != nil {
		return 24 * time.Hour // the schema refuses it: nothing is carried out on the word of it
	}
	return d
}

// lossFacts is the loss as the planner sees it.
func lossFacts(c *api.EtcdCluster, l limits) membership.Loss {
	if onQuorumLoss(c) == api.QuorumLossManual {
		return membership.Loss{}
	}
	facts := membership.Loss{Restore: c.QuorumLossRestoreName()}
	if loss := c.Status.QuorumLoss; loss != nil {
		facts.Long, facts.Made = l.now.Sub(loss.Since.Time) >= lossPatience(c), loss.Restore != ""
	}
	return facts
}

// setQuorumLoss notes since when a majority is lost, and what was created for that. While the cluster is restored, that stays.
func setQuorumLoss(s *api.EtcdClusterStatus, c *api.EtcdCluster, seen observed, step membership.Step, now metav1.Time) {
	switch {
	case !seen.Formed():
	case !membership.MajorityLost(seen.Observed):
		s.QuorumLoss = nil
	case s.QuorumLoss == nil:
		s.QuorumLoss = &api.QuorumLoss{Since: now}
	case step.Action == membership.Recover:
		s.QuorumLoss.Restore = c.QuorumLossRestoreName()
	}
}

// recover creates the EtcdRestore, after a look past the cache. One of its name that is there was created before, and that was not
// written down.
func (r *Reconciler) recover(ctx context.Context, c *api.EtcdCluster, step membership.Step) error {
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	want := render.RestoreAfterLoss(c, onQuorumLoss(c))
	err := r.Client.Apply(ctx, want.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create EtcdRestore %s: %w", *want.GetName(), err)
	}
	r.event(c, step, step.Message)
	return nil
}

// soonRecovered is when to look again at the latest for the sake of a lost majority.
func soonRecovered(c *api.EtcdCluster, seen observed, now time.Time) time.Duration {
	loss := c.Status.QuorumLoss
	switch {
	case onQuorumLoss(c) == api.QuorumLossManual || seen.Loss.Made || !membership.MajorityLost(seen.Observed):
		return atRest
	case loss == nil:
		return min(atRest, lossPatience(c))
	default:
		return min(atRest, max(afterChange, loss.Since.Add(lossPatience(c)).Sub(now)))
	}
}
