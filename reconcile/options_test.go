package reconcile_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// optionRow is a flag in a table of docs/options.md: what etcd does with its ends, by value.
type optionRow struct {
	flag  string
	own   bool // spec.options has a field for it
	ends  map[string]string
	words []string // that etcd says where it does not serve
}

func (r optionRow) name() string { return r.flag }

// What etcd does with a value, as the tables say it.
const (
	doServe    = "serves"         // writes, reads, transactions, watches and leases on one connection, and a compaction
	doBusily   = "busy"           // it serves, and keeps a processor busy with nothing
	doPileUp   = "piles up"       // it serves; with much data all wait for it, or its memory grows without end
	doNotServe = "does not serve" // it runs, and at least one of these does not come to an end
	doEnd      = "ends"
)

// on is what etcd of that minor does: cells say `busy`, or `3.5 busy, else ends`.
func on(cell, minor string) string {
	for part := range strings.SplitSeq(cell, ", ") {
		if what, ok := strings.CutPrefix(part, minor+" "); ok {
			return what
		}
		if what, ok := strings.CutPrefix(part, "else "); ok {
			return what
		}
	}
	return cell
}

var backticked = regexp.MustCompile("`([^`]+)`")

// optionRows are those of all tables of the page whose first column is called flag, or flag of a
// field. The last two are what Quorate takes, and etcd's words.
func optionRows(t *testing.T) []optionRow {
	t.Helper()
	raw, err := os.ReadFile("../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []optionRow
	var values []string // of the table, by column
	ofFields := false
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for n := range cells {
			cells[n] = strings.TrimSpace(cells[n])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			values = nil
		case cells[0] == "flag", cells[0] == "flag of a field":
			values, ofFields = cells, cells[0] != "flag"
		case len(values) == len(cells) && !strings.HasPrefix(cells[0], "---"):
			row := optionRow{flag: strings.Trim(cells[0], "`"), own: ofFields, ends: map[string]string{}}
			for n := 1; n < len(cells)-2; n++ {
				row.ends[strings.Trim(values[n], "`")] = cells[n]
			}
			for _, m := range backticked.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				row.words = append(row.words, m[1])
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// flagOn is what a flag is called on a version of etcd; empty where that does not know it.
func flagOn(flag, version string) string {
	for _, name := range []string{flag, "experimental-" + flag} {
		if err := optionsProblem(name, "", version); err != nil && !strings.Contains(err.Error(), "has no flag") {
			return name
		}
	}
	return ""
}

func optionsProblem(flag, value, version string) error {
	return render.ValidateFlags(&api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: api.EtcdClusterSpec{
			Version: version, Storage: api.Storage{Size: resource.MustParse("1Gi")}, Options: &api.Options{Flags: map[string]string{flag: value}},
		},
	}, nil)
}

// TestOptionEnds: every flag with a number or a time is in docs/options.md, and its values are
// taken where etcd serves with them, on every version, and nowhere else. That etcd does what is
// told there shows TestOptionEndsTried.
func TestOptionEnds(t *testing.T) {
	t.Parallel()
	rows := optionRows(t)
	var told []string
	for _, row := range rows {
		told = append(told, row.flag)
	}
	for _, flag := range slices.Concat(counts, spans) {
		if !slices.Contains(told, flag) {
			t.Errorf("docs/options.md does not tell what etcd does with %s", flag)
		}
	}
	for _, row := range rows {
		for value, cell := range row.ends {
			for _, version := range []string{"3.5.35", "3.6.16", "3.7.3"} {
				name, does := flagOn(row.flag, version), on(cell, version[:3])
				if !slices.Contains([]string{doServe, doBusily, doPileUp, doNotServe, doEnd}, does) {
					t.Errorf("docs/options.md: %s=%s: %q is no answer", row.flag, value, does)
				}
				if name == "" || row.own { // that version does not have it, or the bounds are those of the schema
					continue
				}
				if err := optionsProblem(name, value, version); (err == nil) != (does == doServe) {
					t.Errorf("etcd %s with --%s=%s: it %s, and Quorate says %v", version, name, value, does, err)
				}
			}
		}
	}
}
