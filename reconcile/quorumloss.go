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

// Where the data of a majority is gone for good, an EtcdRestore of what is left is created, if the
// spec asks for that. It is carried out like any other.

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

// lossFacts is the loss as the planner sees it. What is known of another cluster ID counts for
// nothing.
func lossFacts(c *api.EtcdCluster, l limits) membership.Loss {
	loss := c.Status.QuorumLoss
	if loss == nil || loss.ClusterID != c.Status.ClusterID || onQuorumLoss(c) == api.QuorumLossManual {
		return membership.Loss{}
	}
	return membership.Loss{
		Long: l.lasts(l.seen.loss, lossPatience(c)), Restore: c.QuorumLossRestoreName(), Made: loss.Restore != "",
	}
}

// lasts reports whether this process has seen something for so long.
func (l limits) lasts(s sight, patience time.Duration) bool {
	return !s.since.IsZero() && l.now.Sub(s.since) >= patience
}

// setQuorumLoss notes since when a majority is lost, and what was created for that, as it was seen.
// While the cluster is restored, that stays. So does what was created until a quorum answers: a
// volume that came back empty counts as lost only once etcd has said so, and a new Pod has yet to,
// so that a loss seems to be over and is not.
func setQuorumLoss(s *api.EtcdClusterStatus, seen observed, now metav1.Time) {
	switch {
	case !seen.Formed():
	case !membership.MajorityLost(seen.Observed) && (seen.Reach == membership.ReachQuorum || !recoveryMade(s, seen)):
		s.QuorumLoss = nil
	case s.QuorumLoss == nil || s.QuorumLoss.ClusterID != s.ClusterID:
		s.QuorumLoss = &api.QuorumLoss{ClusterID: s.ClusterID, Since: now, LostSince: &now}
	default:
		if seen.Loss.Made {
			s.QuorumLoss.Restore = seen.Loss.Restore
		}
		if !membership.MajorityLost(seen.Observed) {
			s.QuorumLoss.LostSince = nil
		} else if s.QuorumLoss.LostSince == nil {
			s.QuorumLoss.LostSince = &now
		}
	}
}

// lostLately reports whether a restore that was created for a loss is to wait: the data of a
// majority was there again since, and may come back once more. Where it was not, the patience was
// over before the restore was created.
func lostLately(c *api.EtcdCluster, l limits) bool {
	r, loss := c.Status.Restore, c.Status.QuorumLoss
	if !r.OnQuorumLoss || loss == nil || loss.ClusterID != c.Status.ClusterID {
		return false
	}
	first := loss.Restore == r.Name && loss.LostSince.Equal(&loss.Since)
	return !first && (loss.LostSince == nil || !l.lasts(l.seen.gone, lossPatience(c)))
}

// recoveryMade reports whether an EtcdRestore was created for the loss that was seen last, as is
// written down or seen now.
func recoveryMade(s *api.EtcdClusterStatus, seen observed) bool {
	return seen.Loss.Made || s.QuorumLoss != nil && s.QuorumLoss.Restore != ""
}

// madeOnLoss reports whether an EtcdRestore is one that was created for a loss of the cluster.
func madeOnLoss(c *api.EtcdCluster, e *api.EtcdRestore) bool {
	return e.Labels[api.LabelQuorumLoss] == string(c.UID) && e.Spec.ClusterRef.Name == c.Name
}

// recover creates the EtcdRestore, after a look past the cache. That it is there is written down
// when it is seen.
func (r *Reconciler) recover(ctx context.Context, c *api.EtcdCluster, step membership.Step) error {
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	want := render.RestoreAfterLoss(c, onQuorumLoss(c))
	name := *want.GetName()
	err := r.Client.Apply(ctx, want.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		live := &api.EtcdRestore{}
		if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, live); err != nil {
			return fmt.Errorf("get EtcdRestore %s: %w", name, err)
		}
		if !madeOnLoss(c, live) {
			return &foreignError{kind: "EtcdRestore", name: name, whose: "another one than this EtcdCluster"}
		}
		return apply.ErrChanged // the cache soon has it
	}
	if err != nil {
		return fmt.Errorf("create EtcdRestore %s: %w", name, err)
	}
	r.event(c, step, step.Message)
	return nil
}

// untilRecoveryLook is when to look again at the latest for the sake of a lost majority. since is
// when this process has seen that first; zero: it has not.
func untilRecoveryLook(c *api.EtcdCluster, seen observed, since, now time.Time) time.Duration {
	switch {
	case onQuorumLoss(c) == api.QuorumLossManual || seen.Loss.Made || !membership.MajorityLost(seen.Observed):
		return atRest
	case since.IsZero():
		return min(atRest, lossPatience(c))
	default:
		return min(atRest, max(afterChange, since.Add(lossPatience(c)).Sub(now)))
	}
}
