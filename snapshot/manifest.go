package snapshot

import "time"

// Format is the version of the layout that this package writes. Snapshots of a higher one are
// refused.
const Format = 1

// Manifest says what a snapshot is. It is the last object that a save writes, and it is never
// changed.
type Manifest struct {
	Format int    `json:"format"`
	Name   string `json:"name"`

	// Cluster is what its owner calls the cluster: "namespace/name" of an EtcdCluster, or what
	// --cluster said. It may be empty.
	Cluster string `json:"cluster,omitempty"`
	// ClusterID and MemberID are etcd's, in hexadecimal digits without a prefix, as etcdctl prints
	// them.
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
	// Member is etcd's name of the member that the snapshot was taken from.
	Member string `json:"member"`
	// EtcdVersion is the version of that member, such as 3.6.16.
	EtcdVersion string `json:"etcdVersion"`

	// Revision is the revision of the data, TotalKeys the number of all keys with all their
	// revisions.
	Revision  int64 `json:"revision"`
	TotalKeys int64 `json:"totalKeys"`

	// Object is the key of the data in the store. Size and SHA256 are of the stream as etcd sent
	// it, with etcd's own hash at its end; StoredSize and StoredSHA256 are of the object,
	// compressed and possibly encrypted.
	Object       string `json:"object"`
	Size         int64  `json:"size"`
	SHA256       string `json:"sha256"`
	StoredSize   int64  `json:"storedSize"`
	StoredSHA256 string `json:"storedSHA256"`
	// Encrypted is whether the object is encrypted to age recipients.
	Encrypted bool `json:"encrypted,omitempty"`

	// StartedAt is when the stream was asked for, TakenAt when it had ended, both in UTC. Every
	// write that was acknowledged before StartedAt is in the snapshot.
	StartedAt time.Time `json:"startedAt"`
	TakenAt   time.Time `json:"takenAt"`
}

// Mode is how a snapshot is verified.
type Mode string

const (
	// ModeHash reads the stored object again and compares every size and hash, etcd's own at the
	// end of the stream among them.
	ModeHash Mode = "Hash"
	// ModeRestore restores the stored object as well, starts an etcd of its version on it, and
	// compares the hash of all keys.
	ModeRestore Mode = "Restore"
)

// Verification records that a snapshot was verified. It stands beside the manifest and is never
// changed.
type Verification struct {
	Format int       `json:"format"`
	Name   string    `json:"name"`
	Mode   Mode      `json:"mode"`
	At     time.Time `json:"at"`
	// SHA256 is that of the manifest's stream: a verification of another snapshot of the same name
	// does not count.
	SHA256 string `json:"sha256"`
	// EtcdVersion is the version of the etcd that served the data, Hash what its HashKV answered at
	// the revision of the snapshot. Both are empty for ModeHash.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	Hash        uint32 `json:"hash,omitempty"`
}
