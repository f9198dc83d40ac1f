package membership

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/rules.md, and the tables of gates into docs/upgrades.md, instead of comparing them")

// TestGatesDocumented: what people are told about versions is what the code does.
func TestGatesDocumented(t *testing.T) {
	const path, begin, end = "../docs/upgrades.md", "<!-- gates -->\n", "<!-- /gates -->"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(raw), begin)
	is, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no place between %q and %q", path, begin, end)
	}
	want := gateTables()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("%s: -want +got (go test ./membership -run TestGatesDocumented -update rewrites it):\n%s", path, diff)
	}
}

// gateTables are the gates, and what comes of them for each pair of minors.
func gateTables() string {
	var b strings.Builder
	b.WriteString("| etcd | newest known | to be left from | to be reached at | why |\n| --- | --- | --- | --- | --- |\n")
	patch := func(minor, patch int) string {
		if patch == 0 {
			return "any patch"
		}
		return Version{3, minor, patch}.String() + " or later"
	}
	for _, g := range Gates {
		fmt.Fprintf(&b, "| 3.%d | %s | %s | %s | %s |\n", g.Minor, g.newest(), patch(g.Minor, g.Leave), patch(g.Minor, g.Enter), g.Source)
	}
	b.WriteString("\n| from | to | way |\n| --- | --- | --- |\n")
	for _, from := range Gates {
		for _, to := range Gates {
			way := "at once, to any patch"
			if from.Minor != to.Minor {
				path, err := Path([]Version{from.newest()}, to.newest())
				switch {
				case err != nil:
					way = "refused: " + err.Error()
				case len(path) > 1:
					way = fmt.Sprintf("by way of %s", path[0])
				case from.Minor > to.Minor:
					way = "a downgrade, which etcd prepares first"
				default:
					way = "directly, or by way of " + from.newest().String() + " from an earlier patch than is to be left from"
				}
			}
			fmt.Fprintf(&b, "| 3.%d | 3.%d | %s |\n", from.Minor, to.Minor, way)
		}
	}
	return b.String()
}
