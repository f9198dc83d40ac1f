package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

func TestBackupBeforeChange(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
	}{
		"beforechange": {
			reason: "the store is that of the cluster",
			args:   `spec: {version: 3.7.3, storage: {size: 1Gi}, backup: {store: {s3: {bucket: etcd-backups}}}}`,
		},
		"beforechange-metadata": {
			reason: "it has spec.additionalMetadata like all that is created for a cluster",
			args:   `spec: {version: v3.7.3, storage: {size: 1Gi}, additionalMetadata: {labels: {team: a}, annotations: {note: x}}, backup: {store: {s3: {bucket: etcd-backups}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{}
			if err := yaml.UnmarshalStrict([]byte(tc.args), c); err != nil {
				t.Fatal(err)
			}
			c.Name, c.Namespace, c.Generation, c.UID = "db", "team-a", 5, "1a2b3c4d-0000-4000-8000-000000000002"
			golden(t, "etcdbackup/"+name+".yaml", written(t, []runtime.ApplyConfiguration{BackupBeforeChange(c)}))
		})
	}
}
