package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = ".."

func pages(t *testing.T) []Page {
	t.Helper()
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 { // a walk that goes astray must not pass
		t.Fatalf("found %d pages only", len(all))
	}
	return all
}

// TestLinks: each relative link of a document leads to a file that is there, and to a heading of
// it.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, p := range all {
		for _, problem := range brokenLinks(p, all, exists) {
			t.Error(problem)
		}
	}
}

// TestLinksOfCode: each page that a message, an alert or a comment names is there, with that
// heading.
func TestLinksOfCode(t *testing.T) {
	t.Parallel()
	all := pages(t)
	named := regexp.MustCompile(`\bdocs/[-\w/]+\.md(#[-\w]+)?`)
	found := 0
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && file != root {
			return fs.SkipDir
		}
		isCode := slices.Contains([]string{".go", ".yaml"}, filepath.Ext(file)) && !strings.Contains(file, "testdata")
		if entry.IsDir() || !isCode || filepath.Base(file) == "docs_test.go" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, to := range named.FindAllString(string(text), -1) {
			found++
			source := Page{Path: "source", Prose: "[](" + to + ")"}
			for _, problem := range brokenLinks(source, all, exists) {
				t.Errorf("%s: %s", file, problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("found %d links only", found)
	}
}

func exists(file string) bool {
	_, err := os.Stat(filepath.Join(root, file))
	return err == nil
}

var target = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// brokenLinks are the relative links of a page that lead nowhere.
func brokenLinks(p Page, all []Page, exists func(string) bool) (problems []string) {
	for _, m := range target.FindAllStringSubmatch(p.Prose, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		to := p.Path
		if file != "" {
			to = path.Join(path.Dir(p.Path), file)
		}
		n := slices.IndexFunc(all, func(other Page) bool { return other.Path == to })
		switch {
		case !exists(to):
			problems = append(problems, fmt.Sprintf("%s: there is no %s", p.Path, to))
		case anchor == "":
		case n < 0:
			problems = append(problems, fmt.Sprintf("%s: %s has no headings", p.Path, to))
		case !slices.Contains(anchors(all[n]), anchor):
			problems = append(problems, fmt.Sprintf("%s: %s has no heading #%s", p.Path, to, anchor))
		}
	}
	return problems
}

var noSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchors of a page, as GitHub makes them of its headings.
func anchors(p Page) []string {
	var all []string
	times := map[string]int{}
	for _, h := range p.Headings {
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h), ""), " ", "-")
		if n := times[slug]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", slug, n))
		} else {
			all = append(all, slug)
		}
		times[slug]++
	}
	return all
}

func TestBrokenLinks(t *testing.T) {
	t.Parallel()
	other := Parse("docs/other.md", "# Other volumes\n## `spec.storage`, and [more](x.md)\n## Twice\n## Twice\n")
	cases := map[string]struct {
		reason string
		args   string
		want   []string
	}{
		"Good": {
			reason: "files, headings, the second of two, and other sites",
			args:   "# Here\n[a](other.md#other-volumes) [b](other.md#specstorage-and-more) [c](other.md#twice-1)\n[d](../main.go) [e](#here) [f](https://etcd.io/x.md#y)",
		},
		"NoFile":        {reason: "it was renamed", args: "[a](gone.md)", want: []string{"docs/here.md: there is no docs/gone.md"}},
		"NoHeading":     {reason: "it was renamed", args: "[a](other.md#volumes)", want: []string{"docs/here.md: docs/other.md has no heading #volumes"}},
		"NoOwnHeading":  {reason: "it is below a fence", args: "[a](#here)\n```\n# Here\n```\n", want: []string{"docs/here.md: docs/here.md has no heading #here"}},
		"HeadingOfCode": {reason: "a source has none", args: "[a](../main.go#l1)", want: []string{"docs/here.md: main.go has no headings"}},
		"Code":          {reason: "code has no links", args: "`[a](gone.md)`\n```\n[a](gone.md)\n```\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := Parse("docs/here.md", tc.args)
			there := func(file string) bool {
				return slices.Contains([]string{"docs/here.md", "docs/other.md", "main.go"}, file)
			}
			if diff := cmp.Diff(tc.want, brokenLinks(here, []Page{here, other}, there)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMakeTargets: each target of make that a document names is one.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][-a-z0-9 ]*):( |$)`).FindAllStringSubmatch(string(makefile), -1) {
		for name := range strings.FieldsSeq(m[1]) {
			targets[name] = true
		}
	}
	named := 0
	for _, p := range pages(t) {
		for _, command := range p.Commands("make") {
			for _, word := range strings.Fields(command)[1:] {
				if strings.Contains(word, "=") { // a variable
					continue
				}
				named++
				if !targets[word] {
					t.Errorf("%s: %s: the Makefile has no target %s", p.Path, command, word)
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("found %d targets only", named)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	const text = "Run `make demo`, or `quorate\nversion`.\n```console\n$ go run ./cmd/quorate manifests \\\n    --image x | kubectl apply -f - # install\nmake test   # all\nquorated\n```\n```yaml\nmake nothing\n```\n"
	want := []string{"quorate manifests --image x | kubectl apply -f -", "make test", "make demo", "quorate version"}
	if diff := cmp.Diff(want, Parse("x.md", text).Commands("make", "quorate")); diff != "" {
		t.Errorf("blocks and lines, without prompt and comment: -want +got:\n%s", diff)
	}
}

// TestIndex: docs/README.md has every page below docs, so that none is found by chance alone.
func TestIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	index := slices.IndexFunc(all, func(p Page) bool { return p.Path == "docs/README.md" })
	if index < 0 {
		t.Fatal("there is no docs/README.md")
	}
	var linked []string
	for _, m := range target.FindAllStringSubmatch(all[index].Prose, -1) {
		linked = append(linked, path.Join("docs", m[1]))
	}
	for _, p := range all {
		if strings.HasPrefix(p.Path, "docs/") && p.Path != "docs/README.md" && !slices.Contains(linked, p.Path) {
			t.Errorf("docs/README.md does not link to %s", p.Path)
		}
	}
}
