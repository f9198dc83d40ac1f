package templates_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"

	"quorate.dev/render"
)

// The series of a row have a sample every five minutes, numbered from 0, which is 1 January 1970,
// to 2352. Each has one at 0, where the storage begins. The alerts are evaluated in the last four
// hours, and what fires at their end is compared. An hour is 12 samples. In seconds:
//
//	518400  7 January 00:00        694800  9 January 01:00
//	691200  9 January 00:00        705600  9 January 04:00, the end
const (
	interval = 5 * time.Minute
	ends     = 2352 * interval
	window   = 4 * time.Hour
)

// leads is a series of an operator that leads: without it one alert always fires.
const leads = `leader_election_master_status{name="quorate",pod="quorate-0"} 1x2352`

func TestAlerts(t *testing.T) {
	t.Parallel()
	shown := map[string]map[bool]bool{} // of each alert, whether it fires in a row, and does not in another one
	for name, tc := range alertCases {
		alert, _, _ := strings.Cut(name, "/")
		if shown[alert] == nil {
			shown[alert] = map[bool]bool{}
		}
		shown[alert][slices.ContainsFunc(tc.want, func(w string) bool { return strings.HasPrefix(w, alert+"{") })] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			series := tc.args
			if alert != "QuorateOperatorAbsent" {
				series = append([]string{leads}, series...)
			}
			if diff := cmp.Diff(tc.want, firing(t, series)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, rule := range alerts(t) {
		if !shown[rule.Name()][true] || !shown[rule.Name()][false] {
			t.Errorf("%s needs a row in which it fires, and one in which it does not", rule.Name())
		}
		delete(shown, rule.Name())
	}
	for name := range shown {
		t.Errorf("there is no alert %s", name)
	}
}

// firing are the alerts that fire at the end, with their labels, sorted.
func firing(t *testing.T, series []string) []string {
	t.Helper()
	groups := load(t, series)
	var fire []string
	for _, group := range groups {
		for at := ends - window; at <= ends; at += interval {
			group.Eval(t.Context(), time.Unix(0, 0).Add(at))
		}
		for _, rule := range group.AlertingRules() {
			if err := rule.LastError(); err != nil {
				t.Errorf("%s: %v", rule.Name(), err)
			}
			for _, alert := range rule.ActiveAlerts() {
				if alert.State != rules.StateFiring {
					continue
				}
				of := labels.NewBuilder(alert.Labels).Del(labels.AlertName, "severity").Labels()
				fire = append(fire, rule.Name()+of.String())
				checkAnnotations(t, rule.Name(), alert.Annotations)
			}
		}
	}
	slices.Sort(fire)
	return fire
}

// checkAnnotations: what people read has the values in it, and a command to type.
func checkAnnotations(t *testing.T, name string, annotations labels.Labels) {
	t.Helper()
	annotations.Range(func(l labels.Label) {
		for _, wrong := range []string{"{{", "error expanding", "no value", " /", "  "} {
			if strings.Contains(l.Value, wrong) {
				t.Errorf("%s: %s has %q: %s", name, l.Name, wrong, l.Value)
			}
		}
	})
	if !strings.Contains(annotations.Get("description"), ": kubectl ") {
		t.Errorf("%s: the description has no command: %s", name, annotations.Get("description"))
	}
}

// alerts are all that there are.
func alerts(t *testing.T) []*rules.AlertingRule {
	t.Helper()
	var all []*rules.AlertingRule
	for _, group := range load(t, nil) {
		all = append(all, group.AlertingRules()...)
	}
	return all
}

// load reads the file that people give to Prometheus as Prometheus does, sorted by the names of the
// groups.
func load(t *testing.T, series []string) []*rules.Group {
	t.Helper()
	content, err := render.Alerts()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "quorate.rules.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	storage := promqltest.LoadedStorage(t, fmt.Sprintf("load %s\n  %s\n", interval, strings.Join(series, "\n  ")))
	engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, storage), Appendable: storage, Queryable: storage, Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	byName, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatalf("Prometheus refuses the alerts: %v", errs)
	}
	var groups []*rules.Group
	for _, group := range byName {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b *rules.Group) int { return strings.Compare(a.Name(), b.Name()) })
	return groups
}
