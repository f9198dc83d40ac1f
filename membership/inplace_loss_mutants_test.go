package membership

import (
	"slices"
	"testing"
)

// TestMutantsLoss shows that the exploration would find what restores a lost majority by itself
// weakened, and package reconcile careless.
func TestMutantsLoss(t *testing.T) {
	one := swapBound{size: 1, onLoss: true, states: 100_000, budget: swapBudget{losses: 1, kills: 1}}
	with := func(faults swapBudget) swapBound { b := one; b.budget = faults; return b }
	twice := with(swapBudget{losses: 2, kills: 2})
	empty := with(swapBudget{empties: 1, kills: 1})
	asked := with(swapBudget{losses: 1, kills: 1, restores: 1})
	paused := func(faults swapBudget) swapBound {
		b := with(faults)
		b.behind, b.late, b.safety = []staleness{oldDecision}, Recover, true
		return b
	}
	three := func(lost, offs uint8) swapBound {
		return swapBound{size: 3, onLoss: true, lost: lost, states: 100_000, budget: swapBudget{offs: offs}}
	}
	survivor := three(2, 1)
	survivor.survivor = true
	careless := func(op swapLossCareless) swapPlanner {
		return swapPlanner{phases: Phases, operator: swapCareless{loss: op}}
	}
	mutant := func(p planner) swapPlanner { return swapPlanner{phases: p.phases} }
	lost := func(see func(d Desired, o Observed) (Desired, Observed)) swapPlanner {
		return mutant(replace("lostMajority", func(d Desired, o Observed) (Step, bool) { return lostMajority(see(d, o)) }))
	}

	findSwapMutants(t, map[string]swapMutant{
		"ForgetsMade": {
			reason: "That it was created is not written down", want: "R13",
			bound: one, mutant: careless(swapLossCareless{forgetsMade: true}),
		},
		"ForgetsUnproved": {
			reason: "A new Pod on an empty volume ends the loss until it says so", want: "R13",
			bound: empty, mutant: careless(swapLossCareless{forgetsUnproved: true}),
		},
		"Hurries": {
			reason: "quorumLossAfter is not waited for", want: "R12",
			bound: one, mutant: careless(swapLossCareless{hurries: true}),
		},
		"KeepsLoss": {
			reason: "The next loss has lasted since the first", want: "R12",
			bound: with(swapBudget{empties: 2}), mutant: careless(swapLossCareless{keepsLoss: true}),
		},
		"OneName": {
			reason: "The EtcdRestore of the second loss has the name of the first", want: "L",
			bound: twice, mutant: careless(swapLossCareless{oneName: true}),
		},
		"FromCache": {
			reason: "A paused operator creates it when the data is there again", want: "R11",
			bound: paused(swapBudget{empties: 1, delays: 1}), mutant: careless(swapLossCareless{fromCache: true}),
		},
		"FromCacheAgain": {
			reason: "or when it was created and deleted", want: "R13",
			bound: paused(swapBudget{losses: 1, kills: 1, delays: 1}), mutant: careless(swapLossCareless{fromCache: true}),
		},
		"KnowsNoOther": {
			reason: "An EtcdRestore that a person has just made does not count", want: "R14",
			bound: asked, mutant: careless(swapLossCareless{knowsNoOther: true}),
		},
		"AskedDoesNotCount": {
			reason: "nor one that is being carried out", bound: asked, want: "R14",
			mutant: lost(func(d Desired, o Observed) (Desired, Observed) {
				o.InPlace, o.Loss.Another = InPlace{}, false
				return d, o
			}),
		},
		"BeginsAnyway": {
			reason: "What was created begins when the data is there again, and the members have yet to start", want: "R11",
			bound: empty, mutant: careless(swapLossCareless{begins: true}),
		},
		"AwayIsGone": {
			reason: "A member whose node is off counts as lost", want: "R11",
			bound: three(1, 2), mutant: careless(swapLossCareless{awayIsGone: true}),
		},
		"StatusLost": {
			reason: "A status that was lost tells of no EtcdRestore that was created, and none counts as the first", want: "R13",
			bound: with(swapBudget{empties: 1, statusWipes: 1}),
			mutant: lost(func(d Desired, o Observed) (Desired, Observed) {
				o.Remembered = true
				return d, o
			}),
		},
		"NoSurvivor": {
			reason: "A survivor is asked for, and it is never enough", bound: survivor, want: "L6",
			mutant: lost(func(d Desired, o Observed) (Desired, Observed) {
				d.FromSurvivor = false
				return d, o
			}),
		},
		"WithoutLostMajority": {
			reason: "Nothing is restored", bound: one, mutant: mutant(without("lostMajority")), want: "L",
		},
		"NeverBegins": {
			reason: "What was created waits for what it was created for to be over", bound: one, want: "L",
			mutant: mutant(replace("restoreInPlace", func(d Desired, o Observed) (Step, bool) {
				step, ok := restoreInPlace(d, o)
				return step, ok && !slices.Contains([]Action{Find, Replace}, step.Action)
			})),
		},
	})
}
