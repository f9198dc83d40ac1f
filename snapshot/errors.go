package snapshot

import (
	"errors"
	"fmt"
)

// What a caller may branch on, beside ErrNotFound and ErrExists. Each says why, and of what.
var (
	// ErrNoManifest is the error of a snapshot without a manifest: its save has not ended, or its
	// deletion has begun.
	ErrNoManifest = errors.New("no manifest")
	// ErrDamaged is the error of a snapshot that is not what its manifest, or etcd's own hash,
	// says. See Damage.
	ErrDamaged = errors.New("damaged")
	// ErrOtherCluster is the error of an etcd that belongs to another cluster than was asked for.
	ErrOtherCluster = errors.New("another cluster")
	// ErrTooOld is the error of an etcd that is older than the snapshot.
	ErrTooOld = errors.New("etcd is older than the snapshot")
	// ErrTooLarge is the error of a snapshot that is larger than the quota of the etcd which would
	// serve it.
	ErrTooLarge = errors.New("larger than the quota")
	// ErrIdentity is the error of an encrypted snapshot that the given identities do not decrypt.
	// The snapshot may be good.
	ErrIdentity = errors.New("give the identity (AGE-SECRET-KEY-...) of one of its recipients")
	// ErrNoMember is the error of a cluster none of whose members a snapshot can be taken from.
	ErrNoMember = errors.New("no member to take a snapshot from")
)

// Check is one of the things by which a snapshot is known to be whole.
type Check string

// The checks, in the order in which they are made.
const (
	CheckManifest     Check = "manifest"      // it can be read, and is of this snapshot
	CheckStoredSize   Check = "stored size"   // of the object in the store
	CheckStoredSHA256 Check = "stored sha256" // of the object in the store
	CheckEncryption   Check = "encryption"
	CheckCompression  Check = "compression"
	CheckSize         Check = "size"     // of the stream
	CheckTrailer      Check = "trailer"  // etcd's own sha256 at the end of the stream
	CheckSHA256       Check = "sha256"   // of the stream
	CheckDatabase     Check = "database" // it can be read as etcd's
	CheckServed       Check = "served"   // what a running etcd says of the data
)

// Damage is the ErrDamaged that says which check failed.
type Damage struct {
	Name   string // of the snapshot, or its file
	Check  Check
	Detail string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("snapshot %s is damaged: %s: %s", d.Name, d.Check, d.Detail)
}

// Is makes errors.Is(err, ErrDamaged) true.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }
