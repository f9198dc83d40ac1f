package render

import (
	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// BackupBeforeChange is the EtcdBackup of this generation of the spec, which is taken before the
// version changes. It has no owner, and its deletion leaves the snapshot in the store.
func BackupBeforeChange(c *api.EtcdCluster) *apiac.EtcdBackupApplyConfiguration {
	labels := Labels(c, "")
	labels["app.kubernetes.io/name"] = "etcd-backup"
	labels[api.LabelBeforeChange] = string(c.UID)
	b := apiac.EtcdBackup(c.BackupBeforeChangeName(), c.Namespace).WithLabels(labels).WithSpec(apiac.EtcdBackupSpec().
		WithClusterRef(apiac.ClusterReference().WithName(c.Name)).
		WithVerify(api.VerifyRestore).
		WithDeletionPolicy(api.RetentionRetain))
	if all := annotations(c, nil); len(all) > 0 {
		b.WithAnnotations(all)
	}
	return b
}
