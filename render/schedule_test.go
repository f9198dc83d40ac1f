package render

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

func TestScheduledBackup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
	}{
		"minimal": {
			reason: "with a schedule, what is stored goes with the EtcdBackup",
			args:   `spec: {clusterRef: {name: db}, schedule: '@daily'}`,
		},
		"everything": {
			reason: "the template is copied, and its label cannot be taken away",
			args: `spec: {clusterRef: {name: db}, schedule: '@daily', template: {
				metadata: {labels: {tier: gold, etcd.quorate.dev/schedule: other}, annotations: {note: x}},
				spec: {verify: Hash, deletionPolicy: Retain, store: {gcs: {bucket: etcd-backups}}, encryption: {recipients: [age1]}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &api.EtcdBackupSchedule{}
			if err := yaml.UnmarshalStrict([]byte(tc.args), s); err != nil {
				t.Fatal(err)
			}
			s.Name, s.Namespace = "nightly", "team-a"
			b, err := ScheduledBackup(s, time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			golden(t, "etcdbackupschedule/"+name+".yaml", written(t, []runtime.ApplyConfiguration{b}))
		})
	}
}
