package render

import (
	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// RestoreAfterLoss is the EtcdRestore that is created where a majority is lost for good: of the one
// member that is left, or of the newest snapshot of this very etcd cluster: without a person,
// nothing tells that the data of an earlier one of this name is wanted. It goes with the
// EtcdCluster.
func RestoreAfterLoss(c *api.EtcdCluster, policy api.QuorumLossPolicy) *apiac.EtcdRestoreApplyConfiguration {
	labels := Labels(c, "")
	labels["app.kubernetes.io/name"] = "etcd-restore"
	labels[api.LabelQuorumLoss] = string(c.UID)
	spec := apiac.EtcdRestoreSpec().WithClusterRef(apiac.ClusterReference().WithName(c.Name))
	source := apiac.RestoreSource().WithClusterID(c.Status.ClusterID)
	if policy == api.QuorumLossFromSurvivor {
		source = apiac.RestoreSource().WithSurvivor(apiac.Survivor())
	}
	spec.WithSource(source)
	restore := apiac.EtcdRestore(c.QuorumLossRestoreName(), c.Namespace).WithLabels(labels).WithOwnerReferences(owner(c)...).WithSpec(spec)
	if own := annotations(c, nil); len(own) > 0 {
		restore.WithAnnotations(own)
	}
	return restore
}
