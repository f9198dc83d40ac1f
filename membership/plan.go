package membership

// Phase is a group of rules under one condition. They are asked in their order.
type Phase struct {
	Name string
	// Holds is a fact that its rules build on, as a sentence; empty where there is none. Either
	// When asks for it, or an earlier phase always decides where it is not so.
	Holds string
	When  func(Desired, Observed) bool // nil: always
	Rules []Rule
}

// Rule looks at the facts and either decides, or leaves the decision to the rules after it.
type Rule struct {
	Name   string // of the function as well
	Why    string // one sentence
	Decide func(Desired, Observed) (Step, bool)
}

// Plan decides the one next step. It is total and deterministic: the same facts give the same step.
// While the cluster is suspended, a step that is not at rest becomes the remark that it would come
// next.
func Plan(d Desired, o Observed) Step { return plan(Phases, d, o) }

func plan(phases []Phase, d Desired, o Observed) Step {
	for _, p := range phases {
		if p.When != nil && !p.When(d, o) {
			continue
		}
		for _, r := range p.Rules {
			step, ok := r.Decide(d, o)
			if !ok {
				continue
			}
			if d.Suspended && step.Action != None {
				step = Step{Action: None, Reason: Suspended, Message: "suspended by spec.suspend; without it: " + step.Message}
			}
			step.Rule = r.Name
			return step
		}
	}
	panic("membership: the last rule decides always")
}
