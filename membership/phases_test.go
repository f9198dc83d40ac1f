package membership

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPhases: a name is one rule's, and that of its function; each rule says in one sentence why it
// is there, and each condition what it asks for.
func TestPhases(t *testing.T) {
	t.Parallel()
	sentence := regexp.MustCompile(`^([A-Z]|etcd )[^.]*([.][^ ][^.]*)*[.]$`)
	named := map[string]bool{}
	once := func(name string) {
		if named[name] || name == "" {
			t.Errorf("%q is no name, or that of two", name)
		}
		named[name] = true
	}
	for _, p := range Phases {
		once(p.Name)
		if p.When != nil && p.Holds == "" || p.Holds != "" && !sentence.MatchString(p.Holds) {
			t.Errorf("phase %s: %q does not say in a sentence what holds", p.Name, p.Holds)
		}
		for _, r := range p.Rules {
			once(r.Name)
			if !sentence.MatchString(r.Why) {
				t.Errorf("rule %s: %q is not one sentence", r.Name, r.Why)
			}
			path := runtime.FuncForPC(reflect.ValueOf(r.Decide).Pointer()).Name()
			if function := path[strings.LastIndex(path, ".")+1:]; function != r.Name {
				t.Errorf("rule %s is function %s", r.Name, function)
			}
		}
	}
}

// TestPlanRule: a step has the name of the rule that decided.
func TestPlanRule(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
		want   string
	}{
		"First":     {reason: "the first rule decides", base: formed3, args: []change{deleted}, want: "deleting"},
		"Last":      {reason: "no other rule decides", base: formed3, want: "healthy"},
		"Condition": {reason: "the phase has a condition", base: fresh, want: "provisionVolumes"},
		"Suspended": {reason: "it is the rule that would act", base: formed3, args: []change{suspended, on(1, noPod)}, want: "startMembers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if diff := cmp.Diff(tc.want, Plan(d, o).Rule); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// promisesPhase: what a phase says that holds is so, though its own condition may not ask for it.
func promisesPhase(o Observed, s Step) error {
	learners := slices.ContainsFunc(o.Members, func(m Member) bool { return m.Learner && o.Reach == ReachQuorum && known(o, m.ID) })
	serving, voters := others(o, 0)
	behind := func(phase string) bool {
		at := slices.IndexFunc(Phases, func(p Phase) bool { return p.Name == phase })
		n, _ := find(Phases, s.Rule)
		return n >= at
	}
	switch {
	case s.Rule == "":
		return errors.New("no rule has decided")
	case behind("starts") && !o.Formed():
		return fmt.Errorf("rule %s decides, and the cluster has not formed", s.Rule)
	case behind("cleanup") && o.Reach != ReachQuorum:
		return fmt.Errorf("rule %s decides without a quorum", s.Rule)
	case behind("size") && learners:
		return fmt.Errorf("rule %s decides beside a learner", s.Rule)
	case behind("updates") && serving < voters:
		return fmt.Errorf("rule %s decides, and a voter does not serve", s.Rule)
	default:
		return nil
	}
}

// known reports whether a member that etcd lists is one of the instances.
func known(o Observed, id ID) bool {
	return slices.ContainsFunc(o.Instances, func(i Instance) bool { return i.ID == id })
}

// TestReferenceRules: docs/reference/rules.md has every rule, in the order in which they are asked.
func TestReferenceRules(t *testing.T) {
	const path = "../docs/reference/rules.md"
	var page strings.Builder
	page.WriteString("# Rules\n\n<!-- Written by make generate, from membership/phases.go. -->\n\n" +
		"Each pass decides one step. The rules are asked in this order, and the first that decides wins. A phase is asked only where its\n" +
		"sentence holds. The log line `Took step` and `quorate preview -o json` name the rule that decided. The code of each rule is the Go\n" +
		"function of its name in `membership`.\n\n| phase | rule | why |\n| --- | --- | --- |\n")
	field := regexp.MustCompile(`\bspec(\.[a-zA-Z]+)+`)
	for _, p := range Phases {
		phase := p.Name
		if p.Holds != "" {
			phase += ": " + p.Holds
		}
		for _, r := range p.Rules {
			fmt.Fprintf(&page, "| %s | `%s` | %s |\n", phase, r.Name, field.ReplaceAllString(r.Why, "`$0`"))
			phase = p.Name
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(is)); diff != "" {
		t.Errorf("%s: -want +got (make generate writes it):\n%s", path, diff)
	}
}
