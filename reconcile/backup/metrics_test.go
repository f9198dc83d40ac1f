package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "quorate.dev/api/v1alpha1"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	cluster := func(name string) client.Object {
		return &api.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"}, Status: api.EtcdClusterStatus{ClusterID: "cd"},
		}
	}
	going := func(name string) client.Object {
		c := cluster(name)
		c.SetDeletionTimestamp(instant(born))
		c.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
		return c
	}
	backup := func(name, of string, taken time.Time, more func(*api.EtcdBackup)) client.Object {
		b := &api.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"},
			Spec:       api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: of}},
			Status:     api.EtcdBackupStatus{ClusterID: "cd", StartedAt: instant(taken.Add(-4 * time.Second)), TakenAt: instant(taken), Size: 2048, StoredSize: 512},
		}
		more(b)
		return b
	}
	schedule := func(times string, more func(*api.EtcdBackupSchedule)) client.Object {
		s := nightly().Schedule
		s.Spec.Schedule = times
		more(s)
		return s
	}
	good := func(b *api.EtcdBackup) { b.Status.VerifiedAt = instant(born.Add(time.Hour)) }
	cases := map[string]struct {
		reason string
		args   []client.Object
		want   string
	}{
		"None": {
			reason: "A cluster without backups has no series",
			args:   []client.Object{cluster("db")},
		},
		"Newest": {
			reason: "The last good one counts, and whether a newer one is not verified",
			args: []client.Object{
				cluster("db"),
				backup("a", "db", born.Add(-time.Hour), good),
				backup("b", "db", born, good),
				backup("c", "db", born.Add(time.Minute), func(b *api.EtcdBackup) {
					b.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue}}
				}),
				backup("d", "db", born, func(b *api.EtcdBackup) { b.Status = api.EtcdBackupStatus{} }),
			},
			want: `
# HELP quorate_backup_last_good_duration_seconds How long etcd took to send the last verified snapshot.
# TYPE quorate_backup_last_good_duration_seconds gauge
quorate_backup_last_good_duration_seconds{cluster="db",namespace="team-a"} 4
# HELP quorate_backup_last_good_size_bytes Size of the last verified snapshot, as etcd sent it.
# TYPE quorate_backup_last_good_size_bytes gauge
quorate_backup_last_good_size_bytes{cluster="db",namespace="team-a"} 2048
# HELP quorate_backup_last_good_stored_bytes Size of the last verified snapshot in its store.
# TYPE quorate_backup_last_good_stored_bytes gauge
quorate_backup_last_good_stored_bytes{cluster="db",namespace="team-a"} 512
# HELP quorate_backup_last_good_timestamp_seconds When the last verified snapshot was taken, in seconds since 1970.
# TYPE quorate_backup_last_good_timestamp_seconds gauge
quorate_backup_last_good_timestamp_seconds{cluster="db",namespace="team-a"} 1.795593e+09
# HELP quorate_backup_last_verified 1 where the snapshot that was stored last is verified, 0 where it is not.
# TYPE quorate_backup_last_verified gauge
quorate_backup_last_verified{cluster="db",namespace="team-a"} 0
# HELP quorate_backup_stalled Number of EtcdBackups that are Stalled.
# TYPE quorate_backup_stalled gauge
quorate_backup_stalled{cluster="db",namespace="team-a"} 1
`,
		},
		"Restored": {
			reason: "What was taken before a restore does not have what has been written since; one that fails still shows",
			args: []client.Object{
				cluster("db"),
				backup("a", "db", born, func(b *api.EtcdBackup) {
					good(b)
					b.Status.ClusterID = "c0"
					b.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue}}
				}),
			},
			want: `
# HELP quorate_backup_stalled Number of EtcdBackups that are Stalled.
# TYPE quorate_backup_stalled gauge
quorate_backup_stalled{cluster="db",namespace="team-a"} 1
`,
		},
		"ClusterGone": {
			reason: "An alert on the age must not go on for a cluster that was deleted",
			args:   []client.Object{backup("a", "db", born, good), schedule("0 * * * *", func(*api.EtcdBackupSchedule) {})},
		},
		"ClusterGoes": {
			reason: "Nor for one that is being deleted, which may take long: no backup of it is taken any more",
			args:   []client.Object{going("db"), backup("a", "db", born, good), schedule("0 * * * *", func(*api.EtcdBackupSchedule) {})},
		},
		"Due": {
			reason: "A time counts when it has come, whether an EtcdBackup was made of it or not",
			args: []client.Object{cluster("db"), schedule("0 * * * *", func(s *api.EtcdBackupSchedule) {
				s.Status.LastScheduleTime = instant(clock(8, 0))
				s.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue}}
			})},
			want: scheduleSeries(clock(9, 0).Unix(), 1),
		},
		"DueInItsZone": {
			reason: "A schedule is meant in its time zone: 10 o'clock in Berlin is 9 o'clock UTC",
			args: []client.Object{cluster("db"), schedule("0 10 * * *", func(s *api.EtcdBackupSchedule) {
				s.Spec.TimeZone = "Europe/Berlin"
			})},
			want: scheduleSeries(clock(9, 0).Unix(), 0),
		},
		"NotYetDue": {
			reason: "A time from before the schedule was created is none of its times",
			args:   []client.Object{cluster("db"), schedule("0 7 * * *", func(*api.EtcdBackupSchedule) {})},
			want:   scheduleSeries(0, 0),
		},
		"Suspended": {
			reason: "Nothing is due while it is suspended",
			args:   []client.Object{cluster("db"), schedule("0 * * * *", func(s *api.EtcdBackupSchedule) { s.Spec.Suspend = true })},
			want:   scheduleSeries(-1, 0),
		},
		"InvalidSchedule": {
			reason: "A time zone that is not known gives no time, and the condition tells so",
			args: []client.Object{cluster("db"), schedule("0 * * * *", func(s *api.EtcdBackupSchedule) {
				s.Spec.TimeZone = "Europe/Atlantis"
				s.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue}}
			})},
			want: scheduleSeries(-1, 1),
		},
		"ScheduleDeleted": {
			reason: "A schedule that is being deleted makes no EtcdBackup",
			args: []client.Object{cluster("db"), schedule("0 * * * *", func(s *api.EtcdBackupSchedule) {
				s.DeletionTimestamp, s.Finalizers = instant(clock(9, 0)), []string{"example.com/keep"}
			})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := api.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.args...).Build()
			if err := testutil.CollectAndCompare(Metrics{Reader: reader, Now: func() time.Time { return clock(9, 30) }}, strings.NewReader(tc.want)); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// scheduleSeries are those of the schedule nightly; without the time where that is negative.
func scheduleSeries(due int64, stalled int) string {
	const labels = `{cluster="db",namespace="team-a",schedule="nightly"}`
	series := fmt.Sprintf(`
# HELP quorate_backup_schedule_stalled 1 where the EtcdBackupSchedule is Stalled, else 0.
# TYPE quorate_backup_schedule_stalled gauge
quorate_backup_schedule_stalled%s %d
`, labels, stalled)
	if due < 0 {
		return series
	}
	return fmt.Sprintf(`
# HELP quorate_backup_schedule_due_timestamp_seconds When an EtcdBackupSchedule that is not suspended was last due, in seconds since 1970; 0 where it was not due since it was created.
# TYPE quorate_backup_schedule_due_timestamp_seconds gauge
quorate_backup_schedule_due_timestamp_seconds%s %d`, labels, due) + series
}
