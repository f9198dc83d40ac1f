package backup

import (
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
		return &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"}}
	}
	backup := func(name, of string, taken time.Time, more func(*api.EtcdBackup)) client.Object {
		b := &api.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"},
			Spec:       api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: of}},
			Status:     api.EtcdBackupStatus{StartedAt: instant(taken.Add(-4 * time.Second)), TakenAt: instant(taken), Size: 2048, StoredSize: 512},
		}
		more(b)
		return b
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
# HELP quorate_backup_stalled EtcdBackups for which a person must act.
# TYPE quorate_backup_stalled gauge
quorate_backup_stalled{cluster="db",namespace="team-a"} 1
`,
		},
		"ClusterGone": {
			reason: "An alert on the age must not go on for a cluster that was deleted",
			args:   []client.Object{backup("a", "db", born, good)},
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
			if err := testutil.CollectAndCompare(Metrics{Reader: reader}, strings.NewReader(tc.want)); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
