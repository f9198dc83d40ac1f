package membership

import "slices"

// A mutant addresses a rule by its name. One that no rule has ends the tests: nothing would be
// shown by it.

// decide is what a rule does.
type decide = func(Desired, Observed) (Step, bool)

// find the phase of a rule, and its place there.
func find(phases []Phase, name string) (phase, place int) {
	for n, p := range phases {
		if r := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Name == name }); r >= 0 {
			return n, r
		}
	}
	panic("no rule has the name " + name)
}

func decideOf(name string) decide {
	n, r := find(Phases, name)
	return Phases[n].Rules[r].Decide
}

// replaced is the same with another rule in the place of one, under the condition of its phase.
func replaced(phases []Phase, name string, by decide) []Phase {
	n, r := find(phases, name)
	phases = slices.Clone(phases)
	phases[n].Rules = slices.Clone(phases[n].Rules)
	phases[n].Rules[r].Decide = by
	return phases
}

// dropped is the same without a rule.
func dropped(phases []Phase, name string) []Phase {
	n, r := find(phases, name)
	phases = slices.Clone(phases)
	phases[n].Rules = slices.Delete(slices.Clone(phases[n].Rules), r, r+1)
	return phases
}

// moved is the same where a rule is asked behind another one, under the condition of its own phase.
func moved(phases []Phase, name, behind string) []Phase {
	n, r := find(phases, name)
	alone := phases[n]
	alone.Rules = alone.Rules[r : r+1]
	return between(dropped(phases, name), behind, alone)
}

// inserted is the same with one rule more, behind another one and under no condition.
func inserted(phases []Phase, behind string, r decide) []Phase {
	return between(phases, behind, Phase{Rules: []Rule{{Name: "inserted", Decide: r}}})
}

// between divides the phase of a rule behind that, and puts another phase in between.
func between(phases []Phase, behind string, p Phase) []Phase {
	n, r := find(phases, behind)
	before, after := phases[n], phases[n]
	before.Rules, after.Rules = before.Rules[:r+1], after.Rules[r+1:]
	return slices.Concat(phases[:n], []Phase{before, p, after}, phases[n+1:])
}
