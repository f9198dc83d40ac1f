package main

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestAlertsAskForMetrics: what the alerts select is exported, by name and by labels, and so are
// the labels that they group by. templates/alerts_test.go shows what they make of it.
func TestAlertsAskForMetrics(t *testing.T) {
	exported := series(t, ownRegistry(t), leading(t))
	for alert, expr := range expressions(t) {
		selectors := parser.ExtractSelectors(expr)
		if len(selectors) == 0 {
			t.Errorf("%s asks for no metric", alert)
		}
		for _, selector := range selectors {
			checkSelector(t, alert, selector, exported)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.AggregateExpr:
				checkGrouping(t, alert, n.Expr, n.Grouping, exported)
			case *parser.BinaryExpr:
				if n.VectorMatching != nil {
					checkGrouping(t, alert, n, n.VectorMatching.MatchingLabels, exported)
				}
			}
			return nil
		})
	}
}

// checkSelector: each of its matchers is met by a series of that name, whatever the others say; one
// that excludes values, by a series of each of these, since one that nothing has excludes nothing.
func checkSelector(t *testing.T, alert string, selector []*labels.Matcher, exported []labels.Labels) {
	t.Helper()
	name := nameIn(selector)
	for _, m := range selector {
		for value := range strings.SplitSeq(m.Value, "|") {
			if !slices.ContainsFunc(exported, func(l labels.Labels) bool { return l.Get(model.MetricNameLabel) == name && l.Get(m.Name) == value }) {
				t.Errorf("%s asks for %s with %s: no metric of the operator has that", alert, name, m)
			}
		}
	}
}

// checkGrouping: all metrics of an expression have the labels by which they are taken together or
// matched.
func checkGrouping(t *testing.T, alert string, expr parser.Expr, by []string, exported []labels.Labels) {
	t.Helper()
	for _, selector := range parser.ExtractSelectors(expr) {
		name := nameIn(selector)
		for _, label := range by {
			if !slices.ContainsFunc(exported, func(l labels.Labels) bool { return l.Get(model.MetricNameLabel) == name && l.Has(label) }) {
				t.Errorf("%s groups %s by %s, which it has not", alert, name, label)
			}
		}
	}
}

func nameIn(selector []*labels.Matcher) string {
	return selector[slices.IndexFunc(selector, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })].Value
}

// TestMetricsDocumented: docs/metrics.md has each metric of the operator's own, and no other, and
// commands that there are.
func TestMetricsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "\n## Alerts")
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile(`quorate_[a-z_]*[a-z]\b`).FindAllString(table, -1) {
		documented[name] = true
	}
	is := map[string]bool{}
	for _, l := range series(t, ownRegistry(t)) {
		is[l.Get(model.MetricNameLabel)] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(is)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("docs/metrics.md: -want +got:\n%s", diff)
	}
	if shown := checkCommands(t, "metrics.md"); !shown["alerts"] || !shown["manifests"] {
		t.Error("docs/metrics.md does not show both ways to install the alerts")
	}
}

// expressions are those of the alerts, by name.
func expressions(t *testing.T) map[string]parser.Expr {
	t.Helper()
	raw, err := render.Alerts()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]parser.Expr{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if all[rule.Alert], err = parser.NewParser(parser.Options{}).ParseExpr(rule.Expr); err != nil {
				t.Fatalf("%s: %v", rule.Alert, err)
			}
		}
	}
	return all
}

// ownRegistry has the operator's own metrics, of a cluster of which there is something to say in
// each.
func ownRegistry(t *testing.T) prometheus.Gatherer {
	t.Helper()
	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "team-a"} }
	of := api.ClusterReference{Name: "db"}
	at := new(metav1.NewTime(time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC)))
	db := &api.EtcdCluster{ObjectMeta: named("db")}
	db.Status.DBSize = new(resource.MustParse("64Mi"))
	db.Status.Conditions = []metav1.Condition{
		{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: api.ReasonHealthy},
		{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonDataLost},
	}
	reader := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(db,
		&api.EtcdBackup{ObjectMeta: named("db-1"), Spec: api.EtcdBackupSpec{ClusterRef: of}, Status: api.EtcdBackupStatus{StartedAt: at, TakenAt: at, VerifiedAt: at}},
		&api.EtcdBackupSchedule{ObjectMeta: named("nightly"), Spec: api.EtcdBackupScheduleSpec{ClusterRef: of, Schedule: "0 2 * * *"}},
	)
	for name, reason := range map[string]string{
		"new": api.ReasonNotFormed, "restored": api.ReasonRestoring, "asleep": api.ReasonHibernated, "drowsy": api.ReasonHibernating,
	} {
		c := &api.EtcdCluster{ObjectMeta: named(name)}
		c.Status.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionFalse, Reason: reason}}
		reader.WithObjects(c)
	}
	registry := prometheus.NewPedanticRegistry()
	turns := func() (have, wait []types.NamespacedName) {
		return []types.NamespacedName{client.ObjectKeyFromObject(db)}, nil
	}
	for _, c := range collectors(reader.Build(), turns) {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	return registry
}

// leading is the registry of controller-runtime once the operator leads, with the options that its
// flags give it.
func leading(t *testing.T) prometheus.Gatherer {
	t.Helper()
	o := parse(t, []string{"--health-probe-bind-address=0"})
	options, err := o.manager()
	if err != nil {
		t.Fatal(err)
	}
	options.Cache = cache.Options{} // nothing is read, and there is no API server to ask for the kinds
	client := fake.NewClientset()
	options.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: render.InstallNamespace, Name: leaseName},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: t.Name()},
	}
	mgr, err := ctrl.NewManager(&rest.Config{}, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- mgr.Start(ctx)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-mgr.Elected():
	case err := <-ended:
		t.Fatalf("the manager ended before it led: %v", err)
	}
	return metrics.Registry
}

func series(t *testing.T, from ...prometheus.Gatherer) []labels.Labels {
	t.Helper()
	families, err := prometheus.Gatherers(from).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []labels.Labels
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			all = append(all, labelsOf(family.GetName(), metric))
		}
	}
	return all
}

func labelsOf(name string, metric *dto.Metric) labels.Labels {
	b := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, name))
	for _, pair := range metric.GetLabel() {
		b.Set(pair.GetName(), pair.GetValue())
	}
	return b.Labels()
}
