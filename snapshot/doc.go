// Package snapshot saves, verifies, restores, lists and prunes snapshots of etcd. It knows no
// Kubernetes: the same code runs in the Jobs of the operator, in the init containers of a restored
// cluster, and in "quorate snapshot" by hand.
//
// A snapshot NAME is up to three objects of a store, below its prefix:
//
//	NAME.db.zst         the stream of etcd's Snapshot call, unmodified, compressed
//	NAME.db.zst.age     instead of it, where it is encrypted
//	NAME.manifest.json  what it is (Manifest); written last: without it a snapshot does not count
//	NAME.verified.json  that it was restored and served, or its hash was compared (Verification)
//
// Between a store and an etcd there is a plain file, NAME.db: the stream as etcd sent it, which
// etcdutl can read as well. Fetch makes it of what is stored, Describe reads it, Restore makes a
// data directory of it. A snapshot is verified by all of that, and by an etcd that serves the data:
// VerifyServed says what is compared.
//
// SaveStopped makes one of the data directory of a member that does not run, where a cluster has
// lost its majority for good: an etcd is started on a copy, whose log counts as committed.
//
// Nothing here reads a whole database into memory.
//
// No object is ever overwritten. Deleting begins with the manifest, so that what is left
// half-deleted does not count either.
package snapshot
