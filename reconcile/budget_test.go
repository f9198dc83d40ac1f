package reconcile

import (
	"testing"

	"quorate.dev/membership"
)

// TestKeepsAll: no drain takes a member while Quorate has one away, and none is held up for ever.
func TestKeepsAll(t *testing.T) {
	t.Parallel()
	do := func(action membership.Action) membership.Step {
		return membership.Step{Action: action, Members: []string{"db-2"}, Reason: membership.Changing}
	}
	update := func(change membership.Change) membership.Step {
		step := do(membership.Update)
		step.Change = change
		return step
	}
	down := func(seen *observed) { seen.Instances[2].Endpoint = membership.Endpoint{} }
	overdue := func(seen *observed) {
		down(seen)
		seen.Instances[2].Pod.Problem, seen.Instances[2].Pod.Overdue = "cannot be scheduled", true
	}
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		step   membership.Step
		raised bool
		want   bool
	}{
		"Rest":        {reason: "a drain may take one that can be spared", step: do(membership.None), raised: true},
		"Image":       {reason: "before it is restarted", step: update(membership.ChangeImage), want: true},
		"Pod":         {reason: "before it is recreated", step: update(membership.ChangePod), want: true},
		"Resources":   {reason: "nothing is restarted", step: update(membership.ChangeResources)},
		"PutBack":     {reason: "it is restarted as well", step: do(membership.PutBack), want: true},
		"Stop":        {reason: "its Pod goes", step: do(membership.Stop), want: true},
		"AddLearner":  {reason: "one more voter needs one more for a quorum", step: do(membership.AddLearner), want: true},
		"Remove":      {reason: "one voter less is to spare", step: do(membership.Remove), want: true},
		"MoveLeader":  {reason: "the first part of that", step: do(membership.MoveLeader), want: true},
		"Learner":     {reason: "it is about to vote", step: do(membership.Wait), seen: func(seen *observed) { seen.Members[2].Learner = true }, want: true},
		"Announced":   {reason: "it is being changed, whatever has become of the budget", step: do(membership.Start), seen: func(seen *observed) { seen.Instances[2].Volume.Next = membership.Version{Major: 3, Minor: 7, Patch: 3} }, want: true},
		"Restarts":    {reason: "it has not answered since", step: do(membership.Wait), raised: true, seen: down, want: true},
		"Unproved":    {reason: "an answer is no proof", step: do(membership.Wait), raised: true, seen: func(seen *observed) { seen.Instances[2].Pod.Unproved = true }, want: true},
		"Between":     {reason: "the next one comes at once: no writes back and forth", step: do(membership.Discard), raised: true, want: true},
		"NoLeader":    {reason: "which member is away is not known meanwhile", step: do(membership.Wait), raised: true, seen: func(seen *observed) { seen.Reach = membership.ReachSome }, want: true},
		"Evicted":     {reason: "a drain has taken it, and the quorum rule holds", step: do(membership.Wait), seen: down},
		"EvictedBack": {reason: "nor is the budget written for it", step: do(membership.Start), seen: down},
		"Volumes":     {reason: "all are back, and file systems may take long to grow", step: do(membership.Wait), raised: true},
		"Overdue":     {reason: "waiting does not bring it back, and a drain is not held up for it", step: do(membership.Wait), raised: true, seen: overdue},
		"Stalled":     {reason: "only a person brings that to an end", step: do(membership.Stall), raised: true, seen: down},
		"Hibernating": {reason: "all go", step: membership.Step{Action: membership.Stop, Reason: membership.Hibernating}, raised: true},
		"Forming":     {reason: "there is nothing to lose yet", step: do(membership.Start), raised: true, seen: func(seen *observed) { *seen = observed{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			if tc.seen != nil {
				tc.seen(&seen)
			}
			if got := keepsAll(seen, tc.step, tc.raised); got != tc.want {
				t.Errorf("%s: keeps all: %t", tc.reason, got)
			}
		})
	}
}
