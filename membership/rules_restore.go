package membership

import (
	"fmt"
	"strings"
)

// The rules of a cluster that starts from a stored snapshot (spec.bootstrap.restore). The snapshot
// is chosen before anything is made, and once: two members that were restored from different
// snapshots have one cluster ID and different data, and etcd does not notice. A cluster that has
// formed is past all this: it is never restored, whatever the spec says.

// Snapshot is a stored snapshot from which a cluster is to start.
type Snapshot struct {
	Name   string
	SHA256 string // of the data; of that of a member the UID of its volume (DataOf)
	// About is its revision and its time, as they are told to people; empty where they are not
	// known.
	About     string
	Version   Version // of the etcd that it was taken from; zero: not known
	Size      int64   // of the data, in bytes
	Encrypted bool
}

// memberPrefix begins the name of a Snapshot that is the data of a member.
const memberPrefix = "member/"

// DataOf is what a member has on the volume with that UID, as a Snapshot from which a cluster is
// restored in place.
func DataOf(member, volumeUID string) Snapshot {
	return Snapshot{Name: memberPrefix + member, SHA256: volumeUID}
}

// member is the one whose data it is; empty where it is a stored snapshot.
func (s Snapshot) member() string {
	member, is := strings.CutPrefix(s.Name, memberPrefix)
	if !is {
		return ""
	}
	return member
}

// ID tells one snapshot from every other. It is what a volume says that it was restored from.
func (s Snapshot) ID() string {
	if s.Name == "" {
		return ""
	}
	return s.SHA256 + " " + s.Name
}

// ParseSnapshot reads what ID wrote.
func ParseSnapshot(id string) Snapshot {
	sum, name, _ := strings.Cut(id, " ")
	return Snapshot{Name: name, SHA256: sum}
}

// String is the snapshot for people.
func (s Snapshot) String() string {
	said := "snapshot " + s.Name
	if member := s.member(); member != "" {
		said = "the data of " + member
	}
	if s.About == "" {
		return said
	}
	return said + " (" + s.About + ")"
}

// from says from which snapshot the members of a first start are restored; nothing where they start
// empty.
func (o Observed) from(f First) string {
	if f.Snapshot == "" {
		return ""
	}
	s := o.Snapshot
	if s.ID() != f.Snapshot {
		s = ParseSnapshot(f.Snapshot)
	}
	return ", restored from " + s.String()
}

// Search is what is known of the search for a snapshot.
type Search struct {
	Begun bool
	// Found is the result; the zero Snapshot while there is none.
	Found Snapshot
	// Problem is why there is none, in words that a person can act on. The search goes on.
	Problem string
}

// spareForWAL is what a restored member needs on its volume beside the data: the file of its log,
// and the next one, which etcd allocates at once (SegmentSizeBytes in server/storage/wal).
const spareForWAL = 128 << 20

// firstOfWAL is the least size of the write-ahead log of a member: one segment.
const firstOfWAL = 64 << 20

// chooseSnapshot: the snapshot for all first members, before there is anything of them.
func chooseSnapshot(d Desired, o Observed) (Step, bool) {
	f := first(d, o)
	if !d.Restore && f.Snapshot == "" {
		return Step{}, false
	}
	stall := func(message string) (Step, bool) {
		return Step{Action: Stall, Reason: RestoreFailed, Message: message}, true
	}
	found := o.Search.Found
	switch {
	case f.Snapshot == "" && (f.Token != d.Token || o.Bootstrapping != nil):
		return stall("members of this cluster have been started without a snapshot, and spec.bootstrap.restore cannot be carried out over their data; delete the EtcdCluster and its PersistentVolumeClaims, and apply it again, or leave spec.bootstrap out")
	case f.Snapshot != "" && !d.Restore:
		return stall("the first members of this cluster are being restored from a snapshot, and spec.bootstrap.restore does not say where it is; revert it, or delete the EtcdCluster and its PersistentVolumeClaims, and apply it again")
	case f.Snapshot != "":
		if why := unusable(d, o, o.Snapshot); why != "" && o.Snapshot.ID() == f.Snapshot {
			return stall(why)
		}
		return Step{}, false
	case !o.Search.Begun:
		return Step{Action: Find, Reason: Restoring, Message: "looking for the snapshot to start from"}, true
	case o.Search.Problem != "":
		return stall("no snapshot to start from: " + o.Search.Problem + ". No member was made yet, and spec.bootstrap.restore can be corrected")
	case found == Snapshot{}:
		return Step{Action: Wait, Reason: Restoring, Message: "looking for the snapshot to start from"}, true
	}
	if why := unusable(d, o, found); why != "" {
		return stall(why + ". No member was made yet, and spec.bootstrap.restore can be corrected")
	}
	return Step{Action: Choose, Snapshot: found, Reason: Restoring, Message: "restoring " + found.String()}, true
}

// unusable is why no member as the spec asks for can start from a snapshot; empty where one can, as
// far as is known.
func unusable(d Desired, o Observed, s Snapshot) string {
	needs := 2*s.Size + spareForWAL // a member that is sent the data later keeps its own beside it
	if s.member() != "" {
		needs += firstOfWAL // the copy of its volume is read there first, with its log
	}
	switch {
	case s.Version.Minor > d.Version.Minor && s.member() != "":
		return fmt.Sprintf("%s is of etcd %s, and etcd %s cannot read it: set spec.version to %d.%d or newer", s, s.Version, d.Version, s.Version.Major, s.Version.Minor)
	case s.Version.Minor > d.Version.Minor:
		return fmt.Sprintf("%s was taken from etcd %s, and etcd %s cannot read its data: set spec.version to %d.%d or newer, or choose an earlier snapshot", s, s.Version, d.Version, s.Version.Major, s.Version.Minor)
	case s.Encrypted && !d.Identity && o.InPlace.Name != "":
		return fmt.Sprintf("%s is encrypted: set spec.backup.identity of the EtcdCluster to the Secret that has the age identity which can read it, or delete EtcdRestore %s, and apply it again with spec.source.identity", s, o.InPlace.Name)
	case s.Encrypted && !d.Identity:
		return fmt.Sprintf("%s is encrypted: set spec.bootstrap.restore.identity, or spec.backup.identity, to the Secret that has the age identity which can read it", s)
	case d.Room > 0 && s.Size > d.Room:
		return fmt.Sprintf("%s has %s, and the database may have %s: set spec.storage.size to twice as much at least, or spec.options.quotaBackendSize", s, mebibytes(s.Size), mebibytes(d.Room))
	case d.Volume > 0 && needs > d.Volume:
		return fmt.Sprintf("%s has %s, and the volumes have %s: set spec.storage.size to at least %s, twice the data and what the write-ahead log needs", s, mebibytes(s.Size), mebibytes(d.Volume), mebibytes(needs))
	default:
		return ""
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }
