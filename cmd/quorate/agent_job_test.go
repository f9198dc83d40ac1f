package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestAgentOfJobs: every container of the Jobs of an EtcdBackup is a command of the agent, with
// flags that it has.
func TestAgentOfJobs(t *testing.T) {
	t.Parallel()
	const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	cases := map[string]struct {
		reason string
		args   api.EtcdBackupSpec
		want   int // containers, besides etcd, of both Jobs
	}{
		"Restore": {
			reason: "save, fetch, restore, verify; delete",
			args:   api.EtcdBackupSpec{},
			want:   5,
		},
		"Encrypted": {
			reason: "save, verify-hash, restore, verify; delete",
			args:   api.EtcdBackupSpec{Encryption: &api.BackupEncryption{Recipients: []api.AgeRecipient{recipient}}},
			want:   5,
		},
		"Hash": {
			reason: "save, verify-hash; delete",
			args:   api.EtcdBackupSpec{Verify: api.VerifyHash},
			want:   3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"}, Status: api.EtcdClusterStatus{ClusterID: "cd", Version: "3.6.16"}}
			b := &api.EtcdBackup{
				ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", UID: "1a2b3c4d-0000"},
				Spec:       tc.args,
				Status: api.EtcdBackupStatus{
					Attempt: 1, ClusterID: "cd", Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: "backups"}},
				},
			}
			b.Status.Name = b.SnapshotName(1)
			checked := 0
			for _, rendered := range []func(*api.EtcdBackup, *api.EtcdCluster, string) (*batchv1ac.JobApplyConfiguration, error){render.BackupJob, render.DeletionJob} {
				job, err := rendered(b, c, "quorate:dev")
				if err != nil {
					t.Fatal(err)
				}
				pod := job.Spec.Template.Spec
				for _, container := range append(pod.InitContainers, pod.Containers...) {
					if *container.Name == render.Container {
						continue
					}
					cmd, flags, err := root().Find(container.Args)
					if err == nil {
						err = cmd.ParseFlags(flags)
					}
					if err != nil || cmd.Parent().Name() != "agent" || len(cmd.Flags().Args()) > 0 {
						t.Errorf("%s: container %s: %v: %v", tc.reason, *container.Name, container.Args, err)
					}
					checked++
				}
			}
			if checked != tc.want {
				t.Errorf("%s: want %d containers, got %d", tc.reason, tc.want, checked)
			}
		})
	}
}
