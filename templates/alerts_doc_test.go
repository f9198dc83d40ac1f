package templates_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // for the sample, which discovers by it
)

var update = flag.Bool("update", false, "write the table of alerts into docs/metrics.md instead of comparing it")

const page = "../docs/metrics.md"

// TestAlertsDocumented: docs/metrics.md has the alerts as they are, and tells of each what to do,
// where its annotation says.
func TestAlertsDocumented(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- alerts -->\n", "<!-- /alerts -->"
	doc := read(t)
	before, rest, opened := strings.Cut(doc, begin)
	is, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no place between %q and %q", page, begin, end)
	}
	example := strings.NewReplacer("{{ $labels.namespace }}/", "", "{{ $labels.cluster }}", "`db`", "{{ $labels.schedule }}", "`nightly`")
	var table strings.Builder
	table.WriteString("| alert | | severity | after |\n| --- | --- | --- | --- |\n")
	for _, rule := range alerts(t) {
		says, anchor := rule.Annotations(), strings.ToLower(rule.Name())
		fmt.Fprintf(&table, "| [`%s`](#%s) | %s | %s | %s |\n", rule.Name(), anchor,
			example.Replace(says.Get("summary")), rule.Labels().Get("severity"), model.Duration(rule.HoldDuration()))
		if want := "docs/metrics.md#" + anchor; says.Get("runbook") != want {
			t.Errorf("%s: runbook: want %s, got %s", rule.Name(), want, says.Get("runbook"))
		}
		if !strings.Contains(doc, "\n### "+rule.Name()+"\n") {
			t.Errorf("%s does not tell what to do for %s", page, rule.Name())
		}
		if severity := rule.Labels().Get("severity"); severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q", rule.Name(), severity)
		}
	}
	if told, are := strings.Count(doc, "\n### Quorate"), len(alerts(t)); told != are {
		t.Errorf("%s tells what to do for %d alerts, and there are %d", page, told, are)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), is); diff != "" {
		t.Errorf("%s: -want +got (go test ./templates -run TestAlertsDocumented -update rewrites it):\n%s", page, diff)
	}
}

// TestScrapeDocumented: Prometheus takes the configuration that docs/metrics.md has for it.
func TestScrapeDocumented(t *testing.T) {
	t.Parallel()
	_, after, found := strings.Cut(read(t), "\n```yaml\n")
	sample, _, closed := strings.Cut(after, "\n```")
	if !found || !closed {
		t.Fatalf("%s has no sample", page)
	}
	if _, err := config.Load(sample, nil); err != nil {
		t.Errorf("Prometheus refuses it: %v", err)
	}
}

func read(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
