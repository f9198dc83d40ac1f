package render

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRightsDocumented: the table of docs/install.md has one row for each rule of an installation,
// with its verbs.
func TestRightsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Rights\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `quorate") && len(cells) == 4 {
			documented = append(documented, strings.TrimPrefix(strings.ReplaceAll(strings.Join(cells[:3], " | "), "`", ""), "| "))
		}
	}
	manifests, err := Install(InstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, o := range decode(t, manifests) {
		for _, rule := range rules(o) {
			granted = append(granted, o.GetName()+" | "+row(rule))
		}
	}
	slices.Sort(documented)
	slices.Sort(granted)
	if diff := cmp.Diff(granted, documented); diff != "" {
		t.Errorf("docs/install.md#rights: -granted, +documented:\n%s", diff)
	}
}

func row(rule rbacv1.PolicyRule) string {
	what := strings.Join(slices.Concat(rule.Resources, rule.NonResourceURLs), ", ")
	if len(rule.ResourceNames) > 0 {
		what += " (only " + strings.Join(rule.ResourceNames, ", ") + ")"
	}
	return what + " | " + strings.Join(rule.Verbs, ", ")
}
