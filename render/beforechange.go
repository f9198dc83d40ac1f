package render

import (
	"strconv"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// BackupBeforeChange is the EtcdBackup of this generation of the spec, which is taken before the
// version changes. It has no owner, and its deletion leaves the snapshot in the store.
func BackupBeforeChange(c *api.EtcdCluster) *apiac.EtcdBackupApplyConfiguration {
	return beforeChange(c, c.BackupBeforeChangeName(), annotations(c, nil))
}

// BackupTakenFor is the EtcdBackup of that name, which is under way for an earlier generation of
// the spec, and is taken for this one from now on.
func BackupTakenFor(c *api.EtcdCluster, name string) *apiac.EtcdBackupApplyConfiguration {
	return beforeChange(c, name, annotations(c, map[string]string{api.AnnotationTakenFor: strconv.FormatInt(c.Generation, 10)}))
}

func beforeChange(c *api.EtcdCluster, name string, annotations map[string]string) *apiac.EtcdBackupApplyConfiguration {
	labels := untracked(c, "")
	labels["app.kubernetes.io/name"] = "etcd-backup"
	labels[api.LabelBeforeChange] = string(c.UID)
	b := apiac.EtcdBackup(name, c.Namespace).WithLabels(labels).WithSpec(apiac.EtcdBackupSpec().
		WithClusterRef(apiac.ClusterReference().WithName(c.Name)).
		WithVerify(api.VerifyRestore).
		WithDeletionPolicy(api.RetentionRetain))
	if len(annotations) > 0 {
		b.WithAnnotations(annotations)
	}
	return b
}
