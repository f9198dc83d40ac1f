package reconcile

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// Metrics exports the status of each EtcdCluster. Each scrape reads the EtcdClusters from the
// cache, and leaves out those that are being deleted.
type Metrics struct {
	// Reader reads from the cache.
	Reader client.Reader
	// Turns tells which clusters have a turn to change (--max-changing), and which wait for one.
	// Nil: that is not exported.
	Turns func() (have, wait []types.NamespacedName)
}

var _ prometheus.Collector = Metrics{}

// listing bounds a scrape. The cache answers at once, or not at all while it fills.
const listing = 5 * time.Second

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("quorate_cluster_"+name, help, append([]string{"namespace", "cluster"}, labels...), nil)
}

var (
	statusCondition = description("condition",
		"1 for each condition in the status of an EtcdCluster, with the status and the reason that it has.", "condition", "status", "reason")
	databaseSize = description("database_size_bytes",
		"Size of the largest member's database, rounded up by at most one eighth from 8 MiB on.")
	databaseQuota = description("database_quota_bytes",
		"Size of the database at which etcd refuses writes, from the spec.")
	turn = description("turn",
		"1 for each EtcdCluster that has a turn to change (--max-changing), 0 for each that waits for one.")
)

// Describe sends the descriptions of all metrics.
func (m Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{statusCondition, databaseSize, databaseQuota, turn} {
		to <- d
	}
}

// Collect sends the metrics of all EtcdClusters.
func (m Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), listing) //nolint:forbidigo // a collector is given no context
	defer cancel()
	clusters := &api.EtcdClusterList{}
	if err := m.Reader.List(ctx, clusters); err != nil {
		to <- prometheus.NewInvalidMetric(statusCondition, err)
		return
	}
	there := map[types.NamespacedName]bool{}
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.DeletionTimestamp.IsZero() {
			there[client.ObjectKeyFromObject(c)] = true
			send(to, c)
		}
	}
	if m.Turns == nil {
		return
	}
	have, wait := m.Turns()
	for value, of := range [][]types.NamespacedName{wait, have} {
		for _, key := range of {
			if there[key] { // its turn is given back by the pass after that
				to <- prometheus.MustNewConstMetric(turn, prometheus.GaugeValue, float64(value), key.Namespace, key.Name)
			}
		}
	}
}

func send(to chan<- prometheus.Metric, c *api.EtcdCluster) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{c.Namespace, c.Name}, labels...)...)
	}
	for _, has := range c.Status.Conditions {
		gauge(statusCondition, 1, has.Type, string(has.Status), has.Reason)
	}
	if size := c.Status.DBSize; size != nil {
		gauge(databaseSize, float64(size.Value()))
		gauge(databaseQuota, float64(render.Room(c)))
	}
}
