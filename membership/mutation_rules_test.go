package membership

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unmodelled are the rules that no model of the exploration can miss. Each has facts instead: with
// the rule it decides, and without it another rule does.
var unmodelled = map[string]struct {
	reason string
	base   func() (Desired, Observed)
	args   []change
	want   string // the rule that decides without it
}{
	"deleting": {
		reason: "the models create an EtcdCluster again in the moment in which they delete it",
		base:   fresh, args: []change{deleted}, want: "provisionVolumes",
	},
	"restoreDeleted": {
		reason: "the model takes a restore back in the pass in which it finds the EtcdRestore deleted",
		base:   formed3, args: []change{on(1, noPod), func(_ *Desired, o *Observed) { o.InPlace.Withdrawn = true }}, want: "startMembers",
	},
	"recreateExpired": {
		reason: "no model knows certificates",
		base:   formed3, args: []change{onAll(trustsExpired)}, want: "healthy",
	},
	"waitForTerminatingPods": {
		reason: "the models stop the etcd of a Pod at once when the Pod is deleted",
		base:   formed3, args: []change{onAll(stopping)}, want: "healthy",
	},
	"stopOnReplacedVolume": {
		reason: "the models replace the volume of no Pod that has yet to start",
		base:   formed3, args: []change{on(1, restored), on(1, newPod), on(1, silent), on(1, func(i *Instance) { i.Pod.NeverRan = true })}, want: "volumeReplaced",
	},
	"readmitVolumes": {
		reason: "in the model a mark that arrives after its restore was taken back finds another claim than the one it was asked for",
		base:   formed3, args: []change{on(1, noPod), on(1, silent), on(1, func(i *Instance) { i.Volume.Aside = "u" })}, want: "memberDown",
	},
	"volumeTooSmall": {
		reason: "the model of moves knows no sizes",
		base:   formed3, args: []change{onAll(unfit), room(512 << 20), on(1, func(i *Instance) { i.Endpoint.DBSize = 512 << 20 })}, want: "healthy",
	},
	"expandVolumesFirst": {
		reason: "no model knows the sizes of volumes",
		base:   refusing(64, 60, 64), args: []change{onAll(widened(128)), onAll(small)}, want: "updateMember",
	},
	"expandVolumesMeanwhile": {
		reason: "no model knows the sizes of volumes",
		base:   upgrading(etcd36, etcd37), args: []change{abandonedChange, onAll(func(i *Instance) { i.Volume.Small = true })}, want: "updateFailed",
	},
	"expandVolumes": {
		reason: "no model knows the sizes of volumes",
		base:   formed3, args: []change{on(0, small), on(2, small)}, want: "healthy",
	},
	"waitForExpansion": {
		reason: "no model knows the sizes of volumes",
		base:   formed3, args: []change{on(1, func(i *Instance) { i.Volume.Growing = true })}, want: "healthy",
	},
}

// TestUnmodelledRules shows that each of them decides what no other rule would.
func TestUnmodelledRules(t *testing.T) {
	t.Parallel()
	for name, tc := range unmodelled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if diff := cmp.Diff(name, Plan(d, o).Rule); diff != "" {
				t.Errorf("with it: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, plan(dropped(Phases, name), d, o).Rule); diff != "" {
				t.Errorf("without it: -want +got:\n%s", diff)
			}
		})
	}
}

// TestEveryRuleHasMutants: the exploration, or facts of a rule's own, would miss each rule.
func TestEveryRuleHasMutants(t *testing.T) {
	t.Parallel()
	addressed := addressedRules(t)
	for _, p := range Phases {
		for _, r := range p.Rules {
			_, has := unmodelled[r.Name]
			switch {
			case r.Name == "healthy": // the last one: without it Plan decides nothing
			case !addressed[r.Name] && !has:
				t.Errorf("no mutant is without rule %s, or has another one in its place", r.Name)
			case addressed[r.Name] && has:
				t.Errorf("rule %s has a mutant, and is among those that can have none", r.Name)
			}
		}
	}
}

// TestNoSuchRule: a mutant of a rule that there is not ends the tests.
func TestNoSuchRule(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a mutant is made of a rule that there is not")
		}
	}()
	ringWithout("nothing")
}

// addressedRules are the names that mutants address, as the sources of the tests have them.
func addressedRules(t *testing.T) map[string]bool {
	t.Helper()
	place := map[string]int{ // which argument is the name
		"without": 0, "replace": 0, "ringWithout": 0, "ringReplace": 0, "rollWithout": 0, "rollReplace": 0, "rollLast": 0,
		"dropped": 1, "replaced": 1, "moved": 1,
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, named := call.Fun.(*ast.Ident)
			if !named {
				return true
			}
			at, helps := place[f.Name]
			if !helps || at >= len(call.Args) {
				return true
			}
			if literal, is := call.Args[at].(*ast.BasicLit); is && literal.Kind == token.STRING {
				if name, err := strconv.Unquote(literal.Value); err == nil && strings.TrimSpace(name) != "" {
					names[name] = true
				}
			}
			return true
		})
	}
	return names
}
