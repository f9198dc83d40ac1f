package membership

import (
	"slices"
	"strings"
	"testing"
)

// TestMutantsInPlace shows that the exploration would find each rule of a restore in place missing
// or weakened, and package reconcile careless.
func TestMutantsInPlace(t *testing.T) {
	one := swapBound{size: 1, anyway: true, breaks: true, states: 100_000, budget: swapBudget{restores: 1}}
	with := func(b swapBound, faults swapBudget) swapBound { b.budget = faults; return b }
	stale := func(kind staleness) swapBound {
		return swapBound{size: 1, anyway: true, safety: true, behind: []staleness{kind}, states: 200_000, budget: swapBudget{restores: 1, kills: 1, delays: 1}}
	}
	twice := swapBound{size: 1, anyway: true, newer: true, discards: 1 << 3, states: 100_000, budget: swapBudget{restores: 2}}
	wiped := with(one, swapBudget{restores: 1, statusWipes: 1})
	careless := func(op swapCareless) swapPlanner { return swapPlanner{phases: Phases, operator: op} }
	mutant := func(p planner) swapPlanner { return swapPlanner{phases: p.phases} }

	cases := map[string]swapMutant{
		"WithoutStopFormerMembers": {
			reason: "The former members run on", bound: one, mutant: mutant(without("stopFormerMembers")), want: "R1",
		},
		"SetAsideEarly": {
			reason: "Volumes are set aside while processes run on them", bound: one, want: "R6",
			mutant: mutant(replace("stopFormerMembers", func(d Desired, o Observed) (Step, bool) {
				if aside := names(o.Former, func(i Instance) bool { return i.Volume.Stays() && i.Volume.Aside == "" }); o.InPlace.Begun && len(aside) > 0 {
					return Step{Action: SetAside, Members: aside}, true
				}
				return stopFormerMembers(d, o)
			})),
		},
		"NothingSetAside": {
			reason: "Nothing keeps an operator with an old view from starting a former member", bound: stale(oldCluster), want: "R1",
			mutant: mutant(replace("stopFormerMembers", func(d Desired, o Observed) (Step, bool) {
				step, ok := stopFormerMembers(d, o)
				return step, ok && step.Action != SetAside
			})),
		},
		"NotWaitedFor": {
			reason: "New members start while former ones stop", bound: one, want: "R6",
			mutant: mutant(replace("stopFormerMembers", func(d Desired, o Observed) (Step, bool) {
				o.Former = slices.Clone(o.Former)
				for n := range o.Former {
					if o.Former[n].Pod.Terminating {
						o.Former[n].Pod = Pod{}
					}
				}
				return stopFormerMembers(d, o)
			})),
		},
		"StartedAside": {
			reason: "An operator with an old EtcdCluster takes a former member for its own", bound: stale(oldCluster), want: "R6",
			mutant: mutant(replace("startMembers", func(d Desired, o Observed) (Step, bool) {
				return startMembers(d, each(o, func(i *Instance) { i.Volume.Aside = "" }))
			})),
		},
		"WithoutRevertRestore": {
			reason: "A restore that is taken back stays so", bound: one, mutant: mutant(without("revertRestore")), want: "L",
		},
		"RevertsAtOnce": {
			reason: "The former members come back beside the new ones", bound: one, want: "R3",
			mutant: mutant(replace("revertRestore", func(d Desired, o Observed) (Step, bool) {
				o.Instances = nil
				return revertRestore(d, o)
			})),
		},
		"ReadmitsWhileTheyStop": {
			reason: "The former members come back while the new ones stop", bound: one, want: "R8",
			mutant: mutant(replace("revertRestore", func(d Desired, o Observed) (Step, bool) {
				return revertRestore(d, each(o, func(i *Instance) {
					if i.Pod.Terminating {
						i.Pod, i.Volume = Pod{}, Volume{}
					}
				}))
			})),
		},
		"KeepsNewVolumes": {
			reason: "Volumes of the new members are left", bound: one, want: "R8",
			mutant: mutant(replace("revertRestore", func(d Desired, o Observed) (Step, bool) {
				return revertRestore(d, each(o, func(i *Instance) { i.Volume = Volume{} }))
			})),
		},
		"WithoutReadmit": {
			reason: "The former volumes keep their mark", bound: one, want: "R8",
			mutant: mutant(replace("revertRestore", func(d Desired, o Observed) (Step, bool) {
				step, ok := revertRestore(d, o)
				if step.Action == Readmit {
					step = Step{Action: Revert, Reason: Reverting}
				}
				return step, ok
			})),
		},
		"ReadmitsAll": {
			reason: "What an earlier restore has set aside comes back with the later one", bound: twice, want: "R8",
			mutant: mutant(replace("revertRestore", func(d Desired, o Observed) (Step, bool) {
				return revertRestore(d, markedFor(o, o.InPlace.UID))
			})),
		},
		"DiscardsAll": {
			reason: "What an earlier restore was to keep is deleted", bound: twice, want: "R7",
			mutant: mutant(replace("discardFormerVolumes", func(d Desired, o Observed) (Step, bool) {
				return discardFormerVolumes(d, markedFor(o, d.DiscardFormer))
			})),
		},
		"DiscardsEarly": {
			reason: "The former volumes are deleted before the new members have formed", bound: one, want: "R7",
			mutant: mutant(insert("orphanedVolumes", func(_ Desired, o Observed) (Step, bool) {
				gone := names(o.Former, func(i Instance) bool { return i.Volume.Stays() && i.Volume.Aside != "" })
				return Step{Action: DiscardFormer, Members: gone}, len(gone) > 0
			})),
		},
		"WithoutDiscardFormerVolumes": {
			reason: "What is to be deleted stays", bound: twice, mutant: mutant(without("discardFormerVolumes")), want: "L2",
		},
		"WithoutRestoreInPlace": {
			reason: "An EtcdRestore is never begun", bound: one, mutant: mutant(without("restoreInPlace")), want: "L2",
		},
		"WithoutOrphanedVolumes": {
			reason: "A status that was lost begins another cluster beside what was set aside", bound: wiped, mutant: mutant(without("orphanedVolumes")), want: "L",
		},
		"EarlierFirstStart": {
			reason: "What was begun for an EtcdRestore that was taken back is gone on with", want: "R9",
			bound:  swapBound{size: 1, anyway: true, again: true, behind: []staleness{oldDecision}, late: Provision, safety: true, states: 400_000, budget: swapBudget{restores: 2, delays: 1}},
			mutant: careless(swapCareless{reusesNames: true}),
		},
		"FirstReused": {
			reason: "New members get the ordinals of before", bound: one, mutant: careless(swapCareless{reusesFirst: true}), want: "R9",
		},
		"ServiceLeftOpen": {
			reason: "Clients reach the new members before they have formed", bound: one, mutant: careless(swapCareless{leavesServiceOpen: true}), want: "R3",
		},
		"ServiceOpenedUnseen": {
			reason: "An operator with an old EtcdCluster lets clients in", bound: stale(oldDecision), mutant: careless(swapCareless{opensServiceUnseen: true}), want: "R3",
		},
		"LetsClientsInEarly": {
			reason: "Clients reach a cluster that may be reverted", bound: one, mutant: careless(swapCareless{letsClientsInEarly: true}), want: "R3",
		},
		"KeepsRestoring": {
			reason: "A member whose disk comes back empty is restored again, though it has served", bound: swapBound{size: 1, anyway: true, safety: true, states: 100_000, budget: swapBudget{restores: 1, wipes: 1}},
			mutant: careless(swapCareless{keepsRestoring: true}), want: "S2",
		},
		"ReplacesFromCache": {
			reason: "A restore begins again on an old view", bound: stale(oldDecision), mutant: careless(swapCareless{replacesFromCache: true}), want: "",
		},
		"StartsFromCache": {
			reason: "A former member is started on a volume that was set aside since", bound: stale(oldDecision), mutant: careless(swapCareless{startsFromCache: true}), want: "R6",
		},
		"MarksFromCache": {
			reason: "Volumes are set aside under a Pod that an old view does not have", bound: stale(oldPods), mutant: careless(swapCareless{marksFromCache: true}), want: "R6",
		},
		"BegunSuspended": {
			reason: "A restore begins that is suspended", bound: swapBound{size: 1, anyway: true, held: true, safety: true, states: 100_000, budget: swapBudget{restores: 1}}, want: "R15",
			mutant: mutant(replace("restoreInPlace", func(d Desired, o Observed) (Step, bool) {
				o.InPlace.Suspended = false
				return restoreInPlace(d, o)
			})),
		},
		"BegunFromCache": {
			reason: "So does one that was suspended since", want: "R15",
			bound:  swapBound{size: 1, anyway: true, held: true, behind: []staleness{oldDecision}, late: Replace, safety: true, states: 200_000, budget: swapBudget{restores: 1, delays: 1}},
			mutant: careless(swapCareless{replacesFromCache: true}),
		},
		"NotFound": {
			reason: "Nothing is looked for while it is suspended", bound: swapBound{size: 1, anyway: true, held: true, states: 100_000, budget: swapBudget{restores: 1}}, want: "L2",
			mutant: mutant(replace("restoreInPlace", func(d Desired, o Observed) (Step, bool) {
				step, ok := restoreInPlace(d, o)
				return step, ok && !o.InPlace.Suspended
			})),
		},
		"ChoosesAnew": {
			reason: "A newer snapshot is restored than the plan has told", bound: swapBound{size: 1, anyway: true, newer: true, held: true, safety: true, states: 100_000, budget: swapBudget{restores: 1}},
			mutant: careless(swapCareless{choosesAnew: true}), want: "R15",
		},
		"ForgetsFormer": {
			reason: "The cluster ID of before is not kept", bound: swapBound{size: 1, lost: 1, safety: true, states: 100_000, budget: swapBudget{restores: 1}}, mutant: careless(swapCareless{forgetsFormer: true}), want: "S3",
		},
		"ForgetsFirst": {
			reason: "A status that was lost after a restore takes the former members for its own", bound: wiped, mutant: careless(swapCareless{forgetsFirst: true}), want: "",
		},
		"KnowsFormerByRestore": {
			reason: "A status that was lost during a restore, and has the EtcdRestore again, does too", bound: wiped, mutant: careless(swapCareless{knowsFormerByRestore: true}), want: "",
		},
	}
	findSwapMutants(t, cases)
}

// swapMutant is a planner, or an operator, with a fault.
type swapMutant struct {
	reason string
	bound  swapBound
	mutant swapPlanner
	want   string // how the violation begins
}

// findSwapMutants fails for each that the exploration does not find.
func findSwapMutants(t *testing.T, cases map[string]swapMutant) {
	t.Helper()
	found := counted(t, "mutants")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, bad := exploreSwap(tc.bound, tc.mutant)
			if bad == nil {
				t.Fatalf("%s: not found in %d states", tc.reason, len(x.states))
			}
			if !strings.HasPrefix(bad.violation, tc.want) {
				t.Errorf("%s: want a violation of %s, got %s", tc.reason, tc.want, bad)
			}
			found.Add(1)
			t.Logf("%.70s: found after %d states, in %d steps", bad.violation, len(x.states), len(bad.story))
		})
	}
}

// markedFor is the same with every mark for one EtcdRestore.
func markedFor(o Observed, uid string) Observed {
	o.Former = slices.Clone(o.Former)
	for n := range o.Former {
		if o.Former[n].Volume.Aside != "" {
			o.Former[n].Volume.Aside = uid
		}
	}
	return o
}
