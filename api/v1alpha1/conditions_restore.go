package v1alpha1

// Reasons of an EtcdRestore, beside those that it shares with an EtcdCluster.
const (
	// ReasonRestored: the cluster has formed from the snapshot, and clients can come.
	//
	// What to do: check the data, take a backup, and remove the manifest from Git. See
	// docs/restore.md#what-is-left-over.
	ReasonRestored = "Restored"
	// ReasonRestoreRefused: the cluster serves, and spec.whenServing is Refuse: it is never carried
	// out.
	//
	// What to do: to accept that loss, apply another EtcdRestore, with another name and
	// spec.whenServing: Replace.
	ReasonRestoreRefused = "RestoreRefused"
	// ReasonCarriedOut: an EtcdRestore of this name was carried out, or refused, before; or this
	// one had begun when its EtcdCluster was deleted.
	//
	// What to do: apply it again with another name. Where its EtcdCluster was deleted midway, first
	// see docs/restore.md#when-the-etcdcluster-is-deleted-midway.
	ReasonCarriedOut = "CarriedOut"
)
