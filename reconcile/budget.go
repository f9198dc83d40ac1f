package reconcile

import (
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// The disruption budget keeps a quorum, so that a drain may take the members that are to spare.
// While Quorate itself has a member away, it keeps all: no drain takes a second one. It is raised
// before the member is touched, and from then on the API server refuses evictions until the
// budget's controller has counted again. An operator that dies leaves it raised, and the next one
// goes on from there.

// budget is the disruption budget as it is; the zero one where there is none.
func budget(ctx context.Context, reader client.Reader, c *api.EtcdCluster) (*policyv1.PodDisruptionBudget, error) {
	budget := &policyv1.PodDisruptionBudget{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(c), budget)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get PodDisruptionBudget %s: %w", c.Name, err)
	}
	return budget, nil
}

// applyBudget makes it keep all members, or a quorum.
func (r *Reconciler) applyBudget(ctx context.Context, c *api.EtcdCluster, seen observed, keepAll bool) error {
	_, err := r.apply(ctx, c, render.Budget(c, render.State{Voters: voters(seen), Listed: lists(seen), KeepAll: keepAll}))
	return err
}

// drainBlocked is the step of a healthy cluster, with what a drain of one of its nodes waits for
// where that never comes.
func drainBlocked(c *api.EtcdCluster, seen observed, step membership.Step) membership.Step {
	n := voters(seen)
	if step.Action == membership.None && step.Reason == membership.Healthy && (n == 1 || n == 2) && !c.BudgetDisabled() {
		step.Message += fmt.Sprintf("; a drain of a node with a member waits, because a cluster of %d has none to spare: set spec.replicas to 3, or spec.disruptionBudget.mode to Disabled", n)
	}
	return step
}

// keptRaised is the step of a suspended cluster, with what a disruption budget holds up that was
// raised before it was suspended: nothing is written for it, so it stays.
func (r *Reconciler) keptRaised(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) (membership.Step, error) {
	if !c.Spec.Suspend {
		return step, nil
	}
	live, err := budget(ctx, r.Client, c)
	if err != nil || !raised(c, seen, live) {
		return step, err
	}
	return meanwhile(step, fmt.Sprintf("PodDisruptionBudget %s keeps all %d members, and no node with one is drained: set spec.suspend to false, or minAvailable of the budget to %d",
		live.Name, live.Spec.MinAvailable.IntValue(), leastKept(c, seen))), nil
}

func isBudget(object runtime.ApplyConfiguration) bool {
	_, ok := object.(*policyv1ac.PodDisruptionBudgetApplyConfiguration)
	return ok
}

// raised reports whether a disruption budget keeps more than a quorum.
func raised(c *api.EtcdCluster, seen observed, budget *policyv1.PodDisruptionBudget) bool {
	least := budget.Spec.MinAvailable
	return least != nil && least.IntValue() > leastKept(c, seen)
}

// leastKept is how many members a disruption budget keeps while nothing is done to one.
func leastKept(c *api.EtcdCluster, seen observed) int {
	all := voters(seen)
	if !lists(seen) {
		all = max(all, size(c))
	}
	return membership.Quorum(all)
}

// lists reports whether etcd has listed the members of a cluster that has formed.
func lists(seen observed) bool { return seen.Formed() && seen.Reach == membership.ReachQuorum }

// keepsAll reports whether the disruption budget is to keep all members: the step touches one, one
// is between being touched and being back, or is about to join. A budget that is raised stays so
// until all are back. What is stalled, or waits for what no time brings, holds up no drain: the
// quorum rule is enough for that. Cpu and memory change under a member that runs, which is not
// away.
func keepsAll(seen observed, step membership.Step, raised bool) bool {
	if !seen.Formed() || step.Action == membership.None || step.Action == membership.Stall || step.Reason == membership.Hibernating {
		return false
	}
	if seen.Reach != membership.ReachQuorum { // a leader is elected, and which member is away is not known meanwhile
		return raised
	}
	some := func(is func(membership.Instance) bool) bool {
		return slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool { return seen.Member(i.ID) != nil && is(i) })
	}
	if some(func(i membership.Instance) bool { return i.Pod.Overdue && !i.Serves() }) && step.Action == membership.Wait {
		return false
	}
	switch step.Action {
	case membership.AddLearner, membership.Join, membership.Promote, membership.Remove, membership.MoveLeader, membership.Stop, membership.PutBack:
		return true
	case membership.Update:
		if step.Change != membership.ChangeResources {
			return true
		}
	case membership.Expand, membership.Wait:
	default:
		if raised {
			return true
		}
	}
	return some(func(i membership.Instance) bool {
		learns := seen.Member(i.ID).Learner || i.Volume.Next != (membership.Version{})
		return learns || raised && (!i.Serves() || i.Pod.Changing || i.Pod.Unproved || i.Pod.Terminating)
	})
}
