package render

import (
	"testing"

	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// TestDisruptionBudget: how many members a drain leaves.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		replicas int32
		state    State
		want     int
	}{
		"Quorum":    {reason: "one of three is to spare", replicas: 3, state: State{Voters: 3}, want: 2},
		"Forms":     {reason: "a quorum of those to come", replicas: 5, state: State{Voters: 3}, want: 3},
		"Grows":     {reason: "until the next one is about to join, one of three is to spare: that may take for ever", replicas: 5, state: State{Voters: 3, Listed: true}, want: 2},
		"GrowsOn":   {reason: "two of four are no quorum", replicas: 5, state: State{Voters: 4, Listed: true}, want: 3},
		"GrowsLast": {reason: "the fourth is about to vote", replicas: 5, state: State{Voters: 3, Listed: true, KeepAll: true}, want: 5},
		"ShrinksOn": {reason: "a quorum of those that still vote", replicas: 3, state: State{Voters: 5, Listed: true}, want: 3},
		"Shrinks":   {reason: "a quorum of those that still vote", replicas: 3, state: State{Voters: 5}, want: 3},
		"Changes":   {reason: "one is away already", replicas: 5, state: State{Voters: 5, KeepAll: true}, want: 5},
		"GrowsNow":  {reason: "the same number all the way", replicas: 5, state: State{Voters: 4, KeepAll: true}, want: 5},
		"ShrinkNow": {reason: "each that votes", replicas: 3, state: State{Voters: 5, KeepAll: true}, want: 5},
		"Only":      {reason: "it has none to spare anyway", replicas: 1, state: State{Voters: 1, KeepAll: true}, want: 1},
		"Hibernate": {reason: "as without", replicas: 0, state: State{KeepAll: true}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Replicas = &tc.replicas
			for _, o := range Static(c, tc.state) {
				if budget, ok := o.(*policyv1ac.PodDisruptionBudgetApplyConfiguration); ok && budget.Spec.MinAvailable.IntValue() != tc.want {
					t.Errorf("%s: minAvailable is %s, want %d", tc.reason, budget.Spec.MinAvailable, tc.want)
				}
			}
		})
	}
}
