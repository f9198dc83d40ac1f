package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

// Member is what the objects of one member depend on beside the spec.
type Member struct {
	// Name of the member: its Pod, its claim and its name in etcd.
	Name string
	// Version that the Pod is to run, as MAJOR.MINOR.PATCH.
	Version string
	// Ran is the version that goes on the claim as the last one that ran on it; empty: Version.
	// Next goes there beside it while the member is changed to another version, and has not
	// answered from it yet, and NextWith beside that.
	Ran, Next, NextWith string
	// Replays goes on the claim (AnnotationReplays), and so does Served (AnnotationServed).
	Replays, Served string
	// Out keeps the Service for clients from leading to the Pod, ready or not (api.LabelClients).
	Out bool
	// Previous goes on the Pod while its image is changed under it (AnnotationPrevious).
	Previous string

	// Proved: the spec is one with which a member has served, or that it is being changed to, as
	// its volume says. It was found right then, and is not judged again: a Pod that is gone comes
	// back, whatever the live spec or a later Quorate makes of it.
	Proved bool

	// InitialCluster is made by Bootstrap, Join or Resume; InitialClusterState is "new" with the
	// first and "existing" with the others.
	InitialCluster, InitialClusterState string
	// InitialCorruptCheck makes the member compare its data with the others' before it serves. It
	// waits up to seven seconds for each that does not answer, so it is for a member that joins a
	// serving quorum: where all start at once each waits for the others, compares nothing in the
	// end, and the cluster is down for that much longer.
	InitialCorruptCheck bool
	// Token and BootstrapSize are those of the first start; with them all first members agree about
	// the cluster's ID. Members that came later have none.
	Token         string
	BootstrapSize int
	// BootstrapBase is the ordinal of the first of them.
	BootstrapBase int

	// Snapshot goes on the claim of a first member that is restored (AnnotationSnapshot), and
	// Restore on its Pod until the cluster has formed (AnnotationRestore). AgentImage is needed
	// with that.
	Snapshot, Restore, AgentImage string

	// Again: the Pod of a first member was there before, and its etcd may have ended before it had
	// voted. Its data directory is removed then (ContainerClearUnvoted), with AgentImage.
	Again bool

	// Join is JoinPending on the claim of a member to come, and then the ID of the member that
	// joined with it; empty on all other claims. Retired: its member was removed, and the claim is
	// only kept.
	Join    string
	Retired bool

	// ClusterID and MemberID are etcd's own, in hexadecimal, as the claim's data is known to carry
	// them; empty before.
	ClusterID, MemberID string

	// VolumeUID goes on a claim that has these (AnnotationVolumeUID). A CopyJob is of the claim
	// that has it, and of no later one.
	VolumeUID string

	// Storage goes on a claim that is there (AnnotationStorage); on a new one goes what the spec
	// says.
	Storage string

	// TLS goes on a claim that is there (AnnotationTLS), unless other modes are in force; on a new
	// one go these.
	TLS string

	// VolumeSize is what the live claim requests, so that applying it again never resizes it; nil
	// where there is none yet.
	VolumeSize *resource.Quantity
	// Capacity is what the volume has, on which the limit of the database depends; nil: what the
	// spec says.
	Capacity *resource.Quantity
	// VolumeClass is the class of the live claim: a retained one keeps its class, whatever the spec
	// says now.
	VolumeClass *string
}

// The values of --initial-cluster-state.
const (
	StateNew      = "new"
	StateExisting = "existing"
)

// Bootstrap is the initial cluster of the first start: all first members with their peer URLs. All
// must be given the same, in any order; it is written in the order of their ordinals.
func Bootstrap(c *api.EtcdCluster, members []string) string {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b string) int {
		x, _ := c.Ordinal(a)
		y, _ := c.Ordinal(b)
		if x != y {
			return x - y
		}
		return strings.Compare(a, b)
	})
	for i, member := range sorted {
		sorted[i] = peer(c, member)
	}
	return strings.Join(sorted, ",")
}

// Join is the initial cluster of a member that joins: all members with their peer URLs verbatim as
// etcd lists them, itself included. etcd compares it with its list, by peer URL, and exits where
// they differ. A member that has not started yet has no name in the list, and gets that of its Pod.
func Join(names map[string]string) string {
	peers := make([]string, 0, len(names))
	for url, name := range names {
		peers = append(peers, name+"="+url)
	}
	slices.Sort(peers)
	return strings.Join(peers, ",")
}

// Resume is the initial cluster of every later start: the member alone. With the state "existing"
// it is a fence.
//
// An etcd that finds its data ignores both. One that finds an empty directory looks for the cluster
// to join among the other members named here, finds none and exits ("cannot fetch cluster info from
// peer urls"). With the list of the first start it would come up empty under an identity that the
// others have counted votes of: raft then loses acknowledged writes, or panics
// (https://github.com/etcd-io/etcd/issues/10254, https://github.com/etcd-io/etcd/issues/13509).
func Resume(c *api.EtcdCluster, member string) string { return peer(c, member) }

func peer(c *api.EtcdCluster, member string) string { return member + "=" + c.PeerURL(member) }
