package reconcile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quorate.dev/membership"
)

// TestReasons: the reason of a step goes unchanged into conditions, events and logs, so that each
// is one of the API's and explained there; and the API promises none that is never given.
func TestReasons(t *testing.T) {
	promised := constants(t, "../api/v1alpha1/conditions.go", "Reason")
	given := constants(t, "../membership/reason.go", "")
	for name, reason := range given {
		if !slices.ContainsFunc(values(promised), func(p constant) bool { return p.value == reason.value }) {
			t.Errorf("membership.%s is no reason of the API", name)
		}
	}
	used := sourceOf(t, "../membership") + sourceOf(t, ".")
	for name, reason := range promised {
		if name != "Reason"+reason.value {
			t.Errorf("%s has the value %q", name, reason.value)
		}
		if !strings.HasPrefix(reason.doc, name+": ") {
			t.Errorf("%s has no comment that explains it, but %q", name, reason.doc)
		}
		planned := slices.ContainsFunc(values(given), func(g constant) bool { return g.value == reason.value })
		if !planned && !strings.Contains(used, "api."+name) {
			t.Errorf("the reason %s is never given", name)
		}
	}
	for name := range given {
		if strings.Count(used, "Reason: "+name)+strings.Count(used, "Reason = "+name)+strings.Count(used, "Reason, step.Message = "+name) == 0 {
			t.Errorf("no rule gives the reason %s", name)
		}
	}
}

// reasons are those of membership.
func reasons(t *testing.T) []membership.Reason {
	t.Helper()
	var all []membership.Reason
	for _, c := range constants(t, "../membership/reason.go", "") {
		all = append(all, membership.Reason(c.value))
	}
	slices.Sort(all)
	return all
}

type constant struct{ value, doc string }

func values(constants map[string]constant) []constant {
	var all []constant
	for _, c := range constants {
		all = append(all, c)
	}
	return all
}

// constants of a file whose names have a prefix, by name.
func constants(t *testing.T, file, prefix string) map[string]constant {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]constant{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found[spec.Names[0].Name] = constant{value: value, doc: spec.Doc.Text()}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants called %s...", file, prefix)
	}
	return found
}

// sourceOf is the source of a package, without its tests.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestBackupReasons says the same of the reasons of an EtcdBackup, which its own package gives, and
// the one that reads the results of agents.
func TestBackupReasons(t *testing.T) {
	used := sourceOf(t, "backup") + sourceOf(t, "podstatus")
	for name, reason := range constants(t, "../api/v1alpha1/conditions_backup.go", "Reason") {
		if name != "Reason"+reason.value {
			t.Errorf("%s has the value %q", name, reason.value)
		}
		if !strings.HasPrefix(reason.doc, name+": ") {
			t.Errorf("%s has no comment that explains it, but %q", name, reason.doc)
		}
		if !strings.Contains(used, "api."+name) {
			t.Errorf("the reason %s is never given", name)
		}
	}
}
