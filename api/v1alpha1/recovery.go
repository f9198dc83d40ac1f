package v1alpha1

// Recovery says when a member is given up and replaced, and what is done where the majority is
// lost.
type Recovery struct {
	// replaceAfter is how long a member may be down before another one takes its place, from 10s to
	// 24h. Never: it is waited for without a limit. The time is for what may still come back: a
	// node that does not answer, or data on which etcd does not start. A member whose volume is
	// gone is replaced at once, and one that only lacks an image or a place to run is waited for. A
	// member is given up only while the others are a quorum without it, and one after the other.
	// Default 5m: as long as Kubernetes by itself waits for a node before it gives its Pods up, and
	// longer than a node takes to boot.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="spec.recovery.replaceAfter must be a duration from 10s to 24h, for example 5m or 1m30s, or Never"
	ReplaceAfter *Duration `json:"replaceAfter,omitempty"`

	// replaceEmptyAfter is how long a member may be down whose volume came back empty, from 10s to
	// 24h: etcd was told to find its data there, and says that it found none. It is counted since
	// that was first seen (status.members[].emptySince). Waiting mends only a
	// volume that was mounted too late. A member is given up under the same conditions as with
	// replaceAfter, its successor's volume first, and where replaceAfter is shorter that counts. A
	// change restarts nothing. Default 30s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="spec.recovery.replaceEmptyAfter must be a duration from 10s to 24h, for example 30s or 1m30s"
	ReplaceEmptyAfter *Duration `json:"replaceEmptyAfter,omitempty"`

	// quorumLoss is what is done where the data of a majority of the members is gone for good:
	// their PersistentVolumeClaims are deleted, or came back empty. Members that may come back,
	// such as those of a node that is off, are waited for in any case. Manual (default): the status
	// says what is lost and what is left, and nothing is done. FromSurvivor: an EtcdRestore of the
	// data of the one member that is left is created; what the others had acknowledged without that
	// member is lost. FromBackup: an EtcdRestore of the newest verified snapshot of this etcd
	// cluster (status.clusterID) in spec.backup.store is created; what was written since is lost.
	// The EtcdRestore is created once for one loss, is named after the cluster and the time of the
	// loss, and keeps the volumes that are left. Deleting it before it is completed reverts it.
	// +optional
	// +kubebuilder:validation:Enum=Manual;FromSurvivor;FromBackup
	QuorumLoss QuorumLossPolicy `json:"quorumLoss,omitempty"`

	// quorumLossAfter is how long the data of a majority must be gone before quorumLoss is carried
	// out, from 10s to 24h. It is counted since the operator that leads has seen that itself: one
	// that takes over begins again. Default 10m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="spec.recovery.quorumLossAfter must be a duration from 10s to 24h, for example 10m or 1m30s"
	QuorumLossAfter *Duration `json:"quorumLossAfter,omitempty"`
}

// QuorumLossPolicy is what is done where the data of a majority is gone for good.
type QuorumLossPolicy string

// The policies.
const (
	QuorumLossManual       QuorumLossPolicy = "Manual"
	QuorumLossFromSurvivor QuorumLossPolicy = "FromSurvivor"
	QuorumLossFromBackup   QuorumLossPolicy = "FromBackup"
)
