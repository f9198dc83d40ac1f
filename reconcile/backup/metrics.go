package backup

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// Metrics exports the last good snapshot of each cluster, which is the verified one that was taken
// last of the etcd cluster of today, and the schedules. Each scrape reads the EtcdBackups and
// EtcdBackupSchedules of all EtcdClusters from the cache, but for those that are being deleted: a
// series ends with its object.
type Metrics struct {
	// Reader reads from the cache.
	Reader client.Reader
	// Now is the time; time.Now where it is nil.
	Now func() time.Time
}

var _ prometheus.Collector = Metrics{}

// listing bounds a scrape. The cache answers at once, or not at all while it fills.
const listing = 5 * time.Second

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("quorate_backup_"+name, help, append([]string{"namespace", "cluster"}, labels...), nil)
}

var (
	lastGoodTime     = description("last_good_timestamp_seconds", "When the last verified snapshot was taken, in seconds since 1970.")
	lastGoodSize     = description("last_good_size_bytes", "Size of the last verified snapshot, as etcd sent it.")
	lastGoodStored   = description("last_good_stored_bytes", "Size of the last verified snapshot in its store.")
	lastGoodDuration = description("last_good_duration_seconds", "How long etcd took to send the last verified snapshot.")
	lastVerified     = description("last_verified", "1 where the snapshot that was stored last is verified, 0 where it is not.")
	stalled          = description("stalled", "Number of EtcdBackups that are Stalled.")
	scheduleDue      = description("schedule_due_timestamp_seconds",
		"When an EtcdBackupSchedule that is not suspended was last due, in seconds since 1970; 0 where it was not due since it was created.", "schedule")
	scheduleStalled = description("schedule_stalled", "1 where the EtcdBackupSchedule is Stalled, else 0.", "schedule")
)

// Describe sends what there can be.
func (m Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		lastGoodTime, lastGoodSize, lastGoodStored, lastGoodDuration, lastVerified, stalled, scheduleDue, scheduleStalled,
	} {
		to <- d
	}
}

// Collect counts what there is.
func (m Metrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), listing) //nolint:forbidigo // a collector is given no context
	defer cancel()
	clusters, backups, schedules := &api.EtcdClusterList{}, &api.EtcdBackupList{}, &api.EtcdBackupScheduleList{}
	for _, list := range []client.ObjectList{clusters, backups, schedules} {
		if err := m.Reader.List(ctx, list); err != nil {
			to <- prometheus.NewInvalidMetric(lastGoodTime, err)
			return
		}
	}
	there := map[types.NamespacedName]*api.EtcdCluster{}
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.DeletionTimestamp.IsZero() {
			there[client.ObjectKeyFromObject(c)] = c
		}
	}
	for key, s := range summaries(there, backups.Items) {
		s.send(to, key)
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	for i := range schedules.Items {
		s := &schedules.Items[i]
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.ClusterRef.Name}
		if there[key] != nil && s.DeletionTimestamp.IsZero() {
			sendSchedule(to, key, s, now())
		}
	}
}

// sendSchedule sends when the schedule was last due. It asks the schedule, and not the EtcdBackups,
// so that an alert sees an EtcdBackup that the operator could not create.
func sendSchedule(to chan<- prometheus.Metric, key types.NamespacedName, s *api.EtcdBackupSchedule, now time.Time) {
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, key.Namespace, key.Name, s.Name)
	}
	gauge(scheduleStalled, oneIf(meta.IsStatusConditionTrue(s.Status.Conditions, api.ConditionStalled)))
	times, zone, err := parse(s)
	if err != nil || s.Spec.Suspend {
		return
	}
	due := 0.0
	if at := last(times, s.CreationTimestamp.Time, now.In(zone)); !at.IsZero() {
		due = float64(at.Unix())
	}
	gauge(scheduleDue, due)
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// summary is what there is to say of the snapshots of one cluster.
type summary struct {
	stored  *api.EtcdBackup // the one that was taken last
	good    *api.EtcdBackup // the verified one that was taken last
	stalled int
}

// summaries are those of the clusters that are there. A snapshot from before a restore is of
// another etcd cluster: it does not have what has been written since.
func summaries(there map[types.NamespacedName]*api.EtcdCluster, backups []api.EtcdBackup) map[types.NamespacedName]*summary {
	all := map[types.NamespacedName]*summary{}
	for i := range backups {
		b := &backups[i]
		key := types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.ClusterRef.Name}
		c := there[key]
		if c == nil {
			continue
		}
		if all[key] == nil {
			all[key] = &summary{}
		}
		s := all[key]
		if isStalled(b) {
			s.stalled++
		}
		if b.Status.ClusterID != c.Status.ClusterID {
			continue
		}
		s.stored = later(s.stored, b)
		if b.Status.VerifiedAt != nil {
			s.good = later(s.good, b)
		}
	}
	return all
}

// later is the one of two whose snapshot was taken later; one that has none does not count.
func later(a, b *api.EtcdBackup) *api.EtcdBackup {
	if b.Status.TakenAt == nil || (a != nil && !snapshotTime(a).Before(snapshotTime(b))) {
		return a
	}
	return b
}

// snapshotTime is when the snapshot of an EtcdBackup was taken. The clock of its node may be wrong:
// what is before the EtcdBackup was made, or after it was ready, does not count, and the time when
// it was made does.
func snapshotTime(b *api.EtcdBackup) time.Time {
	made, taken := b.CreationTimestamp.Time, b.Status.TakenAt.Time
	ready := meta.FindStatusCondition(b.Status.Conditions, api.ConditionReady)
	late := ready != nil && ready.Status == metav1.ConditionTrue && taken.After(ready.LastTransitionTime.Time)
	if late || taken.Before(made) {
		return made
	}
	return taken
}

func (s *summary) send(to chan<- prometheus.Metric, key types.NamespacedName) {
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, key.Namespace, key.Name)
	}
	gauge(stalled, float64(s.stalled))
	if s.stored != nil {
		gauge(lastVerified, oneIf(s.stored.Status.VerifiedAt != nil))
	}
	if s.good == nil {
		return
	}
	good := s.good.Status
	gauge(lastGoodTime, float64(snapshotTime(s.good).Unix()))
	gauge(lastGoodSize, float64(good.Size))
	gauge(lastGoodStored, float64(good.StoredSize))
	if good.StartedAt != nil {
		gauge(lastGoodDuration, good.TakenAt.Sub(good.StartedAt.Time).Seconds())
	}
}
