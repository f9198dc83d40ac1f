package v1alpha1

// Reasons of an EtcdRestore, beside those that it shares with an EtcdCluster.
const (
	// ReasonRestored: the cluster has formed from the snapshot, and clients can come.
	ReasonRestored = "Restored"
	// ReasonRestoreRefused: the cluster serves, and spec.whenServing is Refuse: it is never carried out.
	ReasonRestoreRefused = "RestoreRefused"
	// ReasonCarriedOut: an EtcdRestore of this name was carried out, or refused, before; or this
	// one had begun when its EtcdCluster was deleted.
	ReasonCarriedOut = "CarriedOut"
)
