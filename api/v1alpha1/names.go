package v1alpha1

import (
	"strconv"
	"strings"
)

// Manager is the field manager of everything that Quorate applies, and the value of the managed-by
// label.
const Manager = "quorate"

// Labels and annotations that Quorate writes. Selectors use LabelCluster, LabelMember and
// LabelClients only: the app.kubernetes.io labels are for people and their tools.
const (
	LabelCluster = "etcd.quorate.dev/cluster"
	LabelMember  = "etcd.quorate.dev/member"

	// LabelClients says, on a Pod, whether the Service for clients leads to it while it is ready:
	// ClientsIn or ClientsOut. A Pod of an earlier release gets it while it runs.
	LabelClients = "etcd.quorate.dev/clients"

	// LabelBackup says, on a Job and its Pods, to which EtcdBackup they belong. They carry no
	// LabelCluster: the Services and the disruption budget of the cluster would select them.
	LabelBackup = "etcd.quorate.dev/backup"

	// LabelSchedule says, on an EtcdBackup, which EtcdBackupSchedule made it. There is no owner
	// reference: it stays when the schedule is deleted.
	LabelSchedule = "etcd.quorate.dev/schedule"

	// LabelBeforeChange says, on an EtcdBackup, that it was taken before the version of an
	// EtcdCluster changed, and is the UID of that. LabelCluster beside it is its name. There is no
	// owner reference: it stays when the EtcdCluster is deleted.
	LabelBeforeChange = "etcd.quorate.dev/before-change"
	// LabelQuorumLoss says, on an EtcdRestore, that it was created because the majority of its
	// cluster was lost. Its value is the UID of the EtcdCluster.
	LabelQuorumLoss = "etcd.quorate.dev/quorum-loss"

	// AnnotationTakenFor says, on such an EtcdBackup, for which generation of the spec it is taken,
	// where that was edited while the snapshot was under way. Its name has the generation that it
	// was made for.
	AnnotationTakenFor = "etcd.quorate.dev/taken-for"

	// FinalizerSnapshot keeps an EtcdBackup with deletionPolicy Delete until its snapshot is
	// deleted in the store.
	FinalizerSnapshot = "etcd.quorate.dev/snapshot"

	// FinalizerUsers keeps an EtcdRole or an EtcdUser until etcd has it no more.
	FinalizerUsers = "etcd.quorate.dev/users"

	// SecretPassword is the key of a Secret with the password of a user.
	SecretPassword = "password"

	// AnnotationClusterID and AnnotationMemberID say, on a PersistentVolumeClaim, whose data it
	// holds, as etcd's own hexadecimal IDs. They are written only after the member itself has
	// answered with these IDs from this volume.
	AnnotationClusterID = "etcd.quorate.dev/cluster-id"
	AnnotationMemberID  = "etcd.quorate.dev/member-id"

	// AnnotationVolumeUID says, beside these two, which PersistentVolumeClaim they were written on.
	// Where it names another one, the claim was restored or copied, and no member is started on it.
	// Without it a claim is trusted: Quorate rewrites it.
	AnnotationVolumeUID = "etcd.quorate.dev/volume-uid"

	// AnnotationBootstrap says, on a PersistentVolumeClaim, for which first start it was made:
	// token, slash, size, and after another slash the ordinal of the first member where that is not
	// 0. An interrupted first start goes on with the same two, so that all first members agree
	// about the cluster's ID.
	AnnotationBootstrap = "etcd.quorate.dev/bootstrap"

	// AnnotationSnapshot says, on a PersistentVolumeClaim, from which snapshot its member is
	// restored at its first start, as "<SHA-256> <name>". It is written before that, with
	// AnnotationBootstrap, and stays.
	AnnotationSnapshot = "etcd.quorate.dev/snapshot"

	// AnnotationRestore is, on the Pod of a first member, the same until the cluster has formed.
	// The kubelet reads it again each time it starts the init container, which restores nothing
	// without it.
	AnnotationRestore = "etcd.quorate.dev/restore"

	// AnnotationVersion says, on a PersistentVolumeClaim, which etcd version ran on it last.
	AnnotationVersion = "etcd.quorate.dev/version"

	// AnnotationNext says, on a PersistentVolumeClaim, to which etcd version its member is being
	// changed, until the member has answered from it, and been ready for a while. It may be the one
	// that it has. AnnotationNextWith says the same of the parts of the spec, as JSON: until then
	// its Pod is made of these, whatever the spec says by now.
	AnnotationNext     = "etcd.quorate.dev/next-version"
	AnnotationNextWith = "etcd.quorate.dev/next-with"

	// AnnotationServed says, on a PersistentVolumeClaim, with which parts of the spec its member
	// has served last, as JSON. When the member is not being changed its Pod is made of these. It
	// also names the labels and annotations of the spec with which the Pod was created. A Pod is
	// created with those only where the API server refuses the ones that the spec asks for.
	AnnotationServed = "etcd.quorate.dev/served-with"

	// AnnotationTLS says, on a PersistentVolumeClaim, which modes of TLS are in force on the two
	// ports, such as client=Managed,peer=Managed. It decides where the status is lost and the spec
	// says nothing. Where a claim has none either, its cluster has no TLS: an earlier version,
	// whose default was Disabled, made the claim.
	AnnotationTLS = "etcd.quorate.dev/tls"

	// AnnotationReplays says, on a PersistentVolumeClaim, how far the member is whose log may have
	// entries of etcd 3.5, which 3.7 cannot read (membership.Volume.Replays): any, risen or past.
	AnnotationReplays = "etcd.quorate.dev/replays"

	// AnnotationJoin says, on a PersistentVolumeClaim that was made for a member to come,
	// JoinPending while nothing has run on it, and then the ID of the member that joined with it.
	// From then on it belongs to that member alone.
	AnnotationJoin = "etcd.quorate.dev/join"

	// AnnotationRetired says, on a PersistentVolumeClaim, that its member was removed from the
	// cluster. It is kept for a person to look at, and never used again.
	AnnotationRetired = "etcd.quorate.dev/retired"

	// AnnotationSetAside says, on a PersistentVolumeClaim, for which EtcdRestore, by its UID, it
	// was set aside: it has the data of a former member. No member starts on it, unless the
	// EtcdRestore is taken back.
	AnnotationSetAside = "etcd.quorate.dev/set-aside"

	// AnnotationStorage says, on a PersistentVolumeClaim, of which spec.storage it was made: the
	// size, and the storage class where one was named; nothing once it has been asked to grow. What
	// a policy of the API server has made of that is as good.
	AnnotationStorage = "etcd.quorate.dev/storage"

	// AnnotationProvisions says, on a Pod, that no etcd runs in it: it is there for a volume to be
	// made and the image to be pulled where a member is about to run.
	AnnotationProvisions = "etcd.quorate.dev/provisions"

	// AnnotationInitialCluster and AnnotationInitialClusterState are, on a Pod, what etcd is told
	// at its start. They are read again by the kubelet each time the container starts, so that a
	// running Pod can be told never to start empty.
	AnnotationInitialCluster      = "etcd.quorate.dev/initial-cluster"
	AnnotationInitialClusterState = "etcd.quorate.dev/initial-cluster-state"
	// AnnotationCheckAtStart and AnnotationCheckCompacted are, on a Pod and in the same way, the
	// flags with which its version of etcd compares its data with the other members', before it
	// serves and later on.
	AnnotationCheckAtStart   = "etcd.quorate.dev/check-at-start"
	AnnotationCheckCompacted = "etcd.quorate.dev/check-compacted"
	// AnnotationInitialCorruptCheck is what AnnotationCheckAtStart says, true or false, for Pods of
	// Quorate's first days.
	AnnotationInitialCorruptCheck = "etcd.quorate.dev/initial-corrupt-check"

	// AnnotationPrevious says, on a Pod whose image was changed under it and that has not answered
	// from the new one yet, which container ran before, and from which image: "<container ID>
	// <image>". The image is the one that was asked for; where a policy of the API server had made
	// another one of it, that follows: "<container ID> <image> <image that ran>".
	AnnotationPrevious = "etcd.quorate.dev/previous"

	// AnnotationApplied says, on a Pod, what was asked for in it, whatever a policy of the API
	// server has made of that: the image, and a hash of what cannot change with the image under a
	// Pod, which are arguments, pull policy and pull secrets: "<image> <hash>". Pods of earlier
	// releases do not have it.
	AnnotationApplied = "etcd.quorate.dev/applied"

	// AnnotationRevision says, on a Pod, of which parts of the spec it was made, as a hash for
	// each. That of "metadata" tells with which labels and annotations it was created; it may have
	// others by now.
	AnnotationRevision = "etcd.quorate.dev/revision"
)

// The values of LabelClients. A member is out from before a planned change of it until it serves
// again, and is never taken out by hand: what Quorate finds so it writes back.
const (
	ClientsIn  = "true"
	ClientsOut = "false"
)

// ClientsShut is what the Service for clients selects by LabelClients while clients are shut out.
// No Pod has it.
const ClientsShut = "shut"

// JoinPending is the value of AnnotationJoin before a member has it.
const JoinPending = "pending"

// Ports of every member. The metrics port serves /metrics, /livez and /readyz in plain HTTP, so
// that probes and scrapers need no client certificate.
const (
	PortClient  = 2379
	PortPeer    = 2380
	PortMetrics = 2381
)

// MaxNameLength bounds the name of an EtcdCluster: the longest name made of it, "<name>-client" or
// a member's with a six-digit ordinal, must fit a DNS label of 63 characters.
const MaxNameLength = 56

// MaxOrdinal is the largest ordinal that a member can have, with six digits.
const MaxOrdinal = 999_999

// MemberName is the name of a member: its Pod, its PersistentVolumeClaim and its name in etcd.
func (c *EtcdCluster) MemberName(ordinal int) string { return c.Name + "-" + strconv.Itoa(ordinal) }

// Ordinal is the inverse of MemberName; false where the name is none of this cluster's members.
func (c *EtcdCluster) Ordinal(member string) (int, bool) {
	digits, ok := strings.CutPrefix(member, c.Name+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || c.MemberName(n) != member { // the second test refuses "+1" and "01"
		return 0, false
	}
	return n, 0 <= n && n <= MaxOrdinal
}

// PeerURL is where the other members reach a member. Ordinals are never used again, so it names one
// incarnation.
func (c *EtcdCluster) PeerURL(member string) string {
	return scheme(c.PeerTLS()) + c.MemberHost(member) + ":" + strconv.Itoa(PortPeer)
}

// ClientURL is where clients inside the Kubernetes cluster reach one member.
func (c *EtcdCluster) ClientURL(member string) string {
	return scheme(c.ClientTLS()) + c.MemberHost(member) + ":" + strconv.Itoa(PortClient)
}

// FindJobName is the Job that looks for the snapshot from which the cluster is to start.
func (c *EtcdCluster) FindJobName() string { return c.Name + "-find" }

// CopyJobName is the Job that makes the data of the first member of what a former member has, in a
// restore in place.
func (c *EtcdCluster) CopyJobName() string { return c.Name + "-copy" }

// QuorumLossRestoreName is the EtcdRestore that is created where the majority is lost
// (spec.recovery.quorumLoss), such as db-lost-20261126t030000z: each loss has its own. Empty where
// nothing is lost.
func (c *EtcdCluster) QuorumLossRestoreName() string {
	if c.Status.QuorumLoss == nil {
		return ""
	}
	return c.Name + "-lost-" + c.Status.QuorumLoss.Since.UTC().Format("20060102t150405z")
}

// RestoreSource is what first members start from, or a snapshot is looked for: that of the
// EtcdRestore that goes on, or else spec.bootstrap.restore; nil where there is neither.
func (c *EtcdCluster) RestoreSource() *BootstrapRestore {
	r := c.Status.Restore
	switch {
	case r != nil && (r.Phase == RestoreRestoring || r.Asked() && c.Status.ClusterID != ""):
		return &r.Source
	case c.Spec.Bootstrap != nil:
		return &c.Spec.Bootstrap.Restore
	default:
		return nil
	}
}

// RestoreStore is the store that RestoreSource names, or means; nil where there is none.
func (c *EtcdCluster) RestoreStore() *BackupStore {
	source := c.RestoreSource()
	switch {
	case source != nil && source.Store != nil:
		return source.Store
	case c.Spec.Backup != nil:
		return c.Spec.Backup.Store
	default:
		return nil
	}
}

// RestoreIdentity is the identity of RestoreSource, else spec.backup.identity; nil where both are
// empty.
func (c *EtcdCluster) RestoreIdentity() *AgeIdentity {
	source := c.RestoreSource()
	switch {
	case source != nil && source.Identity != nil:
		return source.Identity
	case c.Spec.Backup != nil:
		return c.Spec.Backup.Identity
	default:
		return nil
	}
}

// ClientServiceName is the Service that clients use.
func (c *EtcdCluster) ClientServiceName() string { return c.Name + "-client" }

// ClientServiceURL is where clients inside the Kubernetes cluster reach any member, with TLS or
// without.
func (c *EtcdCluster) ClientServiceURL(encrypted bool) string {
	return scheme(encrypted) + c.ClientServiceName() + "." + c.Namespace + ".svc:" + strconv.Itoa(PortClient)
}
