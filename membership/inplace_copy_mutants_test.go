package membership

import (
	"strings"
	"testing"
)

// TestMutantsSurvivor shows that the exploration would find what makes the data of a member that of
// a new one missing or weakened.
func TestMutantsSurvivor(t *testing.T) {
	one := swapBound{size: 1, survivor: true, anyway: true, states: 100_000, budget: swapBudget{restores: 1}}
	three := swapBound{size: 3, survivor: true, lost: 2, states: 100_000, budget: swapBudget{restores: 1}}
	with := func(b swapBound, faults swapBudget) swapBound { b.budget = faults; return b }
	safely := func(b swapBound) swapBound { b.safety = true; return b }
	careless := func(op swapCareless) swapPlanner { return swapPlanner{phases: Phases, operator: op} }
	mutant := func(p planner) swapPlanner { return swapPlanner{phases: p.phases} }
	behind := planner{phases: moved(Phases, "copyData", "bootstrap")}
	all := planner{phases: replaced(Phases, "copyData", func(d Desired, o Observed) (Step, bool) {
		step, ok := copyData(d, o)
		step.First.Size = d.Size
		return step, ok
	})}
	for _, name := range []string{"provisionVolumes", "bootstrap"} {
		all.phases = replaced(all.phases, name, ofAll(decideOf(name)))
	}

	cases := map[string]swapMutant{
		"WithoutCopyData": {
			reason: "The first member starts, and nothing makes its data", bound: safely(one), mutant: mutant(without("copyData")), want: "R5",
		},
		"CopiedBehind": {
			reason: "The data comes after the Pod", bound: safely(one), mutant: mutant(behind), want: "R5",
		},
		"CopyBelieved": {
			reason: "A copy that goes on is taken for one that is done", bound: one, want: "R5",
			mutant: mutant(replace("copyData", func(d Desired, o Observed) (Step, bool) {
				o.Copy.Done = o.Copy.Begun
				return copyData(d, o)
			})),
		},
		"CopyNotBegun": {
			reason: "Nothing begins the copy", bound: one, want: "L",
			mutant: mutant(replace("copyData", func(d Desired, o Observed) (Step, bool) {
				step, ok := copyData(d, o)
				if step.Action == CopyData {
					step.Action = Wait
				}
				return step, ok
			})),
		},
		"FailureNotTold": {
			reason: "A copy that cannot be made is waited for", bound: with(one, swapBudget{restores: 1, wipes: 1}), want: "L3",
			mutant: mutant(replace("copyData", func(d Desired, o Observed) (Step, bool) {
				o.Copy.Problem = ""
				return copyData(d, o)
			})),
		},
		"FirstAll": {
			reason: "There is one copy, and all members are started at once", bound: safely(three), mutant: mutant(all), want: "R5",
		},
		"ExpectsNothing": {
			reason: "The init container does not look for the data", bound: with(one, swapBudget{restores: 1, wipes: 1}), mutant: careless(swapCareless{expectsNothing: true}), want: "R5",
		},
		"TakesAnyCopy": {
			reason: "The Job of an earlier restore is taken for that of this one", bound: safely(with(one, swapBudget{restores: 2, flights: 1})), mutant: careless(swapCareless{takesAnyCopy: true}), want: "R5",
		},
		"TakesEarlierCopy": {
			reason: "What was copied to a volume that is gone is taken for done, and its Job stays", bound: with(one, swapBudget{restores: 1, losses: 1}), want: "L1",
			mutant: careless(swapCareless{takesEarlierCopy: true, leavesCopy: true}),
		},
		"KeepsCopying": {
			reason: "The Job goes on when the restore was taken back", bound: one, mutant: careless(swapCareless{keepsCopying: true}), want: "L",
		},
		"CopiesOn": {
			reason: "A Job that was late copies to a disk that comes back blank", bound: with(one, swapBudget{restores: 1, wipes: 1, flights: 1}), mutant: careless(swapCareless{copiesOn: true}), want: "S2",
		},
		"RevertsBeforeVolume": {
			reason: "The former member comes back while the copy holds the new volume", bound: one, want: "R8",
			mutant: mutant(replace("revertRestore", func(d Desired, o Observed) (Step, bool) {
				return revertRestore(d, each(o, func(i *Instance) {
					if i.Volume.Terminating && !i.Pod.Exists() {
						i.Volume = Volume{}
					}
				}))
			})),
		},
		"TakesAnySource": {
			reason: "The data of a member is restored, as another EtcdRestore asks for", want: "R16",
			bound:  swapBound{size: 1, mixed: true, anyway: true, safety: true, states: 100_000, budget: swapBudget{restores: 2}},
			mutant: careless(swapCareless{takesAnySource: true}),
		},
		"LeavesCopy": {
			reason: "The Job of a restore that was reverted copies to a new member of that name", want: "L1",
			bound:  swapBound{size: 1, mixed: true, anyway: true, late: CopyData, prompt: true, states: 400_000, budget: swapBudget{restores: 2, statusWipes: 1, flights: 1}},
			mutant: careless(swapCareless{leavesCopy: true}),
		},
		"SetAsideNot": {
			reason: "The former volumes are not set aside, and an operator with an old view starts one while it is copied", want: "R",
			bound: swapBound{size: 1, survivor: true, anyway: true, safety: true, behind: []staleness{oldCluster}, states: 200_000, budget: swapBudget{restores: 1, delays: 1}},
			mutant: mutant(replace("stopFormerMembers", func(d Desired, o Observed) (Step, bool) {
				step, ok := stopFormerMembers(d, o)
				return step, ok && step.Action != SetAside
			})),
		},
	}
	findSwapMutants(t, cases)
}

// ofAll is a rule of first members that starts all that the spec asks for, as if a snapshot were in
// a store.
func ofAll(r decide) decide {
	stored := func(id string) string { return strings.Replace(id, memberPrefix, "", 1) }
	return func(d Desired, o Observed) (Step, bool) {
		if o.Snapshot.member() == "" {
			return r(d, o)
		}
		o.Snapshot.Name = stored(o.Snapshot.Name)
		step, ok := r(d, each(o, func(i *Instance) { i.Volume.First.Snapshot = stored(i.Volume.First.Snapshot) }))
		if s := ParseSnapshot(step.First.Snapshot); s.Name != "" {
			step.First.Snapshot = Snapshot{Name: memberPrefix + s.Name, SHA256: s.SHA256}.ID()
		}
		return step, ok
	}
}
