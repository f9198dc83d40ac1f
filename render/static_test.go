package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestDisruptionBudget: how many members a drain leaves.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		replicas int32
		mode     api.DisruptionBudgetMode
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
		"Quorum2":   {reason: "the default, written out", replicas: 3, mode: api.DisruptionBudgetQuorum, state: State{Voters: 3}, want: 2},
		"Disabled":  {reason: "whatever a drain takes", replicas: 3, mode: api.DisruptionBudgetDisabled, state: State{Voters: 3, KeepAll: true}},
		"Hibernate": {reason: "as without", replicas: 0, state: State{KeepAll: true}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Replicas, c.Spec.DisruptionBudget = &tc.replicas, &api.DisruptionBudget{Mode: tc.mode}
			for _, o := range Static(c, tc.state) {
				budget, ok := o.(*policyv1ac.PodDisruptionBudgetApplyConfiguration)
				if !ok {
					continue
				}
				if budget.Spec.MinAvailable.IntValue() != tc.want {
					t.Errorf("%s: minAvailable is %s, want %d", tc.reason, budget.Spec.MinAvailable, tc.want)
				}
				pod := podLabels(c, Member{Name: "mini-0"})
				selects := labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(labels.Set(pod))
				if want := tc.mode != api.DisruptionBudgetDisabled; selects != want {
					t.Errorf("%s: it selects members: %t", tc.reason, selects)
				}
			}
		})
	}
}
