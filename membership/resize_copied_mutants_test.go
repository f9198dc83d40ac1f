package membership

import "testing"

// TestCopiedMutants: what keeps a volume that has come back as another object from being started,
// written on or deleted, and its member from being given up.
func TestCopiedMutants(t *testing.T) {
	copied := ringBound{sizes: []uint8{3}, first: 3, copies: true, still: true, calls: 1, states: 300_000, budget: ringBudget{losses: 1, kills: 1}}
	safely := copied
	safely.safety = true
	shrunk := safely
	shrunk.sizes, shrunk.budget = []uint8{1, 3}, ringBudget{losses: 1, specs: 1}
	behind := safely
	behind.budget.delays = 1
	trusting := func(o Observed) Observed { return each(o, func(i *Instance) { i.Volume.Replaced = false }) }

	testRingMutants(t, map[string]ringMutant{
		"Trusted": {
			reason: "A voter starts with less than it has acknowledged", bound: safely,
			mutant: ringReplace("startMembers", func(d Desired, o Observed) (Step, bool) { return startMembers(d, trusting(o)) }), want: "S18",
		},
		"Lost": {
			reason: "Its member is removed, and what was restored is of no use", bound: safely,
			mutant: ringPlanner{phases: Phases, see: func(o Observed) Observed {
				return each(o, func(i *Instance) { i.Volume.Retired = i.Volume.Replaced })
			}},
			want: "S18: a member is given up",
		},
		"Discarded": {
			reason: "It is deleted because its member is none any more", bound: shrunk,
			mutant: ringReplace("cleanUpRemovedMembers", func(d Desired, o Observed) (Step, bool) { return cleanUpRemovedMembers(d, trusting(o)) }), want: "S18",
		},
		"Recorded": {
			reason: "What runs on the volume of before is written on the one that has come instead", bound: safely,
			mutant: ringReplace("recordMembers", func(d Desired, o Observed) (Step, bool) {
				return recordMembers(d, each(o, func(i *Instance) {
					if i.Volume.Replaced {
						i.Volume.Replaced, i.Volume.Version = false, Version{3, 7, 0}
					}
				}))
			}),
			want: "S18",
		},
		"WithoutVolumeReplaced": {
			reason: "No condition tells of it", bound: copied, mutant: ringWithout("volumeReplaced"), want: "it says that all is well",
		},
		"AskedFirst": {
			reason: "A person is asked before the others are started", bound: copied,
			mutant: ringPlanner{phases: inserted(Phases, "waitForForming", volumeReplaced)}, want: "it asks a person before",
		},
		"StartedUnchecked": {
			reason: "An operator that is behind starts a member on it", bound: behind,
			mutant: ringPlanner{phases: Phases, operator: ringCareless{startsUnchecked: true}}, want: "S18",
		},
	})
}
