package reconcile

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "quorate.dev/api/v1alpha1"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	const head = `
# HELP quorate_cluster_condition 1 for each condition in the status of an EtcdCluster, with the status and the reason that it has.
# TYPE quorate_cluster_condition gauge
`
	cases := map[string]struct {
		reason string
		args   func(*api.EtcdCluster)
		want   string

		have, wait []types.NamespacedName
	}{
		"NotLookedAt": {
			reason: "Nothing is said of a cluster that was not looked at yet",
			args:   func(c *api.EtcdCluster) { c.Status = api.EtcdClusterStatus{ObservedGeneration: -1} },
		},
		"Conditions": {
			reason: "A condition that is absent has no series, and one that is there has one",
			args: func(c *api.EtcdCluster) {
				c.Status.Conditions = []metav1.Condition{
					{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: api.ReasonQuorumLost},
					{Type: api.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: api.ReasonUnreachable},
				}
			},
			want: head + `quorate_cluster_condition{cluster="db",condition="Available",namespace="team-a",reason="Unreachable",status="Unknown"} 1
quorate_cluster_condition{cluster="db",condition="Ready",namespace="team-a",reason="QuorumLost",status="False"} 1
`,
		},
		"Database": {
			reason: "The size comes with the quota that it is measured against: half of a small volume",
			args: func(c *api.EtcdCluster) {
				c.Spec.Storage.Size, c.Status.DBSize = resource.MustParse("1Gi"), new(resource.MustParse("64Mi"))
			},
			want: `
# HELP quorate_cluster_database_quota_bytes Size of the database at which etcd refuses writes, from the spec.
# TYPE quorate_cluster_database_quota_bytes gauge
quorate_cluster_database_quota_bytes{cluster="db",namespace="team-a"} 5.36870912e+08
# HELP quorate_cluster_database_size_bytes Size of the largest member's database, rounded up by at most one eighth from 8 MiB on.
# TYPE quorate_cluster_database_size_bytes gauge
quorate_cluster_database_size_bytes{cluster="db",namespace="team-a"} 6.7108864e+07
`,
		},
		"Turns": {
			reason: "It shows which clusters keep which others waiting",
			args:   func(*api.EtcdCluster) {},
			have:   []types.NamespacedName{{Namespace: "team-a", Name: "db"}},
			wait:   []types.NamespacedName{{Namespace: "team-b", Name: "db"}},
			want: `
# HELP quorate_cluster_turn 1 for each EtcdCluster that has a turn to change (--max-changing), 0 for each that waits for one.
# TYPE quorate_cluster_turn gauge
quorate_cluster_turn{cluster="db",namespace="team-a"} 1
quorate_cluster_turn{cluster="db",namespace="team-b"} 0
`,
		},
		"TurnOfDeleted": {
			reason: "The series of a cluster that is gone, or goes, end with it, whether its turn was given back yet or not",
			args: func(c *api.EtcdCluster) {
				c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"example.com/keep"}
			},
			have: []types.NamespacedName{{Namespace: "team-a", Name: "db"}},
			wait: []types.NamespacedName{{Namespace: "team-a", Name: "gone"}},
		},
		"Deleted": {
			reason: "A cluster that is being deleted is not ready, and that is what was asked for",
			args: func(c *api.EtcdCluster) {
				c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"example.com/keep"}
				c.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: api.ReasonDeleting}}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := api.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"}}
			tc.args(c)
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c, &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-b"}}).Build()
			turns := func() (have, wait []types.NamespacedName) { return tc.have, tc.wait }
			if err := testutil.CollectAndCompare(Metrics{Reader: reader, Turns: turns}, strings.NewReader(tc.want)); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
