package v1alpha1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster is one etcd cluster: its members, their volumes and the Services in front of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:ac:generate=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=etcdc,categories=etcd
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.ready`,description="Members that are healthy voters, of those that the spec asks for"
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Linearizable reads and writes are served now"
// +kubebuilder:printcolumn:name=Version,type=string,JSONPath=`.status.version`,description="The lowest etcd version that a member runs"
// +kubebuilder:printcolumn:name=Leader,type=string,JSONPath=`.status.leader`,priority=1
// +kubebuilder:printcolumn:name=DB-Size,type=string,JSONPath=`.status.dbSize`,priority=1
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56",fieldPath=".metadata",message="metadata.name is too long: at most 56 characters, because the Service <name>-client and the Pods <name>-<ordinal> must fit a DNS label of 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata",message="metadata.name must be a DNS label that starts with a letter (lower-case letters, digits and '-'): it becomes the name of a Service"
// +kubebuilder:validation:XValidation:rule="has(self.spec.bootstrap) == has(oldSelf.spec.bootstrap) && (!has(self.spec.bootstrap) || self.spec.bootstrap == oldSelf.spec.bootstrap) || has(self.spec.bootstrap) && has(oldSelf.spec.bootstrap) && !(has(self.status) && (has(self.status.restored) || has(self.status.clusterID))) || !has(self.spec.bootstrap) && has(self.status) && has(self.status.clusterID)",fieldPath=".spec.bootstrap",message="spec.bootstrap is how a new cluster begins, and this one has begun: it can be left out once the cluster has formed, and corrected while no snapshot was chosen (status.restored). To put this cluster back to a snapshot, make an EtcdRestore"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.clusterID) && !has(self.status.nextOrdinal) || has(self.spec.tls) && has(self.spec.tls.client) || !has(oldSelf.spec.tls) || !has(oldSelf.spec.tls.client) || has(self.status.tls) && self.status.tls.client.mode != 'Secret'",fieldPath=".spec.tls.client",message="spec.tls.client cannot be left out while its mode is Secret, because it names the Secrets: write spec.tls.client.mode Managed or Disabled for another mode"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.clusterID) && !has(self.status.nextOrdinal) || (has(self.spec.tls) && has(self.spec.tls.peer) ? self.spec.tls.peer.mode == (has(self.status.tls) ? self.status.tls.peer.mode : 'Disabled') || has(oldSelf.spec.tls) && has(oldSelf.spec.tls.peer) && self.spec.tls.peer.mode == oldSelf.spec.tls.peer.mode : !(has(oldSelf.spec.tls) && has(oldSelf.spec.tls.peer)) || has(self.status.tls) && self.status.tls.peer.mode != 'Secret')",fieldPath=".spec.tls.peer",message="spec.tls.peer.mode cannot be changed yet: write the one in force (status.tls.peer.mode). To change it, create another EtcdCluster with the mode that you want, and restore a snapshot of this one into it (spec.bootstrap.restore)"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.auth) || !has(self.status.auth.enabled) || !self.status.auth.enabled || !has(self.status.tls) || !has(self.spec.tls) || !has(self.spec.tls.client) || self.spec.tls.client.mode == self.status.tls.client.mode",fieldPath=".spec.tls.client.mode",message="spec.tls.client.mode cannot be changed while etcd authenticates clients (status.auth.enabled), because Quorate and the clients are the users that their certificates name: set spec.auth.enabled to false first"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.auth) || !self.spec.auth.enabled || !(self.metadata.name in ['root', 'quorate'])",fieldPath=".spec.auth.enabled",message="spec.auth.enabled: the certificates of the members have the name of the EtcdCluster, and root and quorate are users that may do everything. Create the EtcdCluster with another name, or leave spec.auth out"
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted state.
	// +required
	Spec EtcdClusterSpec `json:"spec"`

	// status is the observed state; only Quorate writes it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EtcdClusterStatus `json:"status,omitempty"`
}

// EtcdClusterList is a list of EtcdCluster.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdCluster `json:"items"`
}

// EtcdClusterSpec is the wanted state of an etcd cluster.
//
// +kubebuilder:validation:XValidation:rule="self.replicas > 0 || !has(self.storage.medium) || self.storage.medium != 'Memory'",fieldPath=".replicas",message="spec.replicas 0 hibernates the cluster on its volumes, but spec.storage.medium Memory has none: the data would be lost. Delete the EtcdCluster instead, or use spec.storage.medium Disk"
// +kubebuilder:validation:XValidation:rule="!has(self.options) || !has(self.options.quotaBackendSize) || !string(self.options.quotaBackendSize).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') || !string(self.storage.size).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') || quantity(string(self.options.quotaBackendSize)).isLessThan(quantity(string(self.storage.size)))",fieldPath=".options.quotaBackendSize",message="spec.options.quotaBackendSize must be smaller than spec.storage.size, best less than half of it: the volume also holds the write-ahead log, snapshots and the copy that a defragmentation makes"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrap) || has(self.bootstrap.restore.store) || has(self.backup) && has(self.backup.store)",fieldPath=".bootstrap.restore",message="spec.bootstrap.restore needs a store: set spec.bootstrap.restore.store, or spec.backup.store"
// +kubebuilder:validation:XValidation:rule="!has(self.recovery) || !has(self.recovery.quorumLoss) || self.recovery.quorumLoss == 'Manual' || !has(self.storage.medium) || self.storage.medium != 'Memory'",fieldPath=".recovery.quorumLoss",message="spec.recovery.quorumLoss keeps the volumes that are left, and with spec.storage.medium Memory there are none: leave it out"
// +kubebuilder:validation:XValidation:rule="!has(self.recovery) || !has(self.recovery.quorumLoss) || self.recovery.quorumLoss != 'FromBackup' || has(self.backup) && has(self.backup.store)",fieldPath=".recovery.quorumLoss",message="spec.recovery.quorumLoss FromBackup needs spec.backup.store, which is where the snapshot is: set it, or write FromSurvivor or Manual"
// +kubebuilder:validation:XValidation:rule="!has(self.recovery) || !has(self.recovery.quorumLoss) || self.recovery.quorumLoss != 'FromBackup' || !has(self.backup) || !has(self.backup.encryption) || has(self.backup.identity)",fieldPath=".recovery.quorumLoss",message="spec.recovery.quorumLoss FromBackup must be able to read what spec.backup.encryption has encrypted: set spec.backup.identity to the Secret with an age identity of one of its recipients, or write FromSurvivor or Manual"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || !self.auth.enabled || !has(self.tls) || !has(self.tls.client) || self.tls.client.mode != 'Disabled'",fieldPath=".auth.enabled",message="spec.auth.enabled needs TLS for clients, because Quorate connects as the user that its certificate names: set spec.tls.client.mode to Managed or Secret, or spec.auth.enabled to false"
type EtcdClusterSpec struct {
	// replicas is the number of voting members, 0 to 9. Odd numbers are best: an even one tolerates
	// no more failures than the odd one below it. 0 hibernates the cluster: its Pods are stopped,
	// its volumes and identity are kept, and setting the number back starts the same cluster again.
	// Default 3. It can be changed at any time, and the last value wins: members are added one by
	// one as learners, which have no vote until they have caught up, and removed one by one: first
	// those without data, then those that do not serve, those whose volumes are being deleted or
	// are not as the spec asks, those of an earlier spec, and then the highest number. No change is
	// made after which the members that serve would be no quorum.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Replicas *int32 `json:"replicas,omitempty"`

	// version is the etcd version as MAJOR.MINOR.PATCH, for example 3.6.16; a leading "v" is
	// accepted. The minors 3.5, 3.6 and 3.7 are supported, 3.5 from 3.5.19 on (the first patch
	// whose readiness check knows learners). It can be changed at any time. Members change one
	// after the other, the leader last, one minor at a time: from 3.5 to 3.7 the cluster passes
	// through 3.6 by itself. A version that cannot be reached from the one that runs is reported as
	// Stalled with the way there is, and an image that does not come up is rolled back on the first
	// member; what runs goes on. A version of the minor below is a downgrade, which etcd prepares
	// first.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}$')",message="spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+$') || self.matches('^v?3[.][567][.][0-9]{1,3}$')",message="spec.version: Quorate runs etcd 3.5, 3.6 and 3.7; write one of their patches, for example 3.5.35, 3.6.16 or 3.7.3"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v?3[.]5[.]([0-9]|1[0-8])$')",message="spec.version: etcd 3.5 is supported from 3.5.19 on (earlier patches lack the readiness check that Quorate relies on, and 3.5.0 to 3.5.2 can corrupt data); write 3.5.35"
	Version string `json:"version"`

	// image says where the etcd image comes from. By default the project's own,
	// gcr.io/etcd-development/etcd, with the tag v<version>. A change is carried out as one of the
	// version is: member after member, in place.
	// +optional
	Image *Image `json:"image,omitempty"`

	// storage is what every member keeps its data on.
	// +required
	Storage Storage `json:"storage"`

	// resources are the cpu and memory of each member's container. Nothing is requested by default.
	// A change is carried out member after member, while they run where Kubernetes allows it, and
	// else by recreating the Pod over its volume.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// options configure etcd itself. A change recreates the Pods over their volumes, member after
	// member, the leader last.
	// +optional
	Options *Options `json:"options,omitempty"`

	// scheduling says on which nodes members run. By default members prefer different nodes and
	// spread over zones. A change recreates the Pods over their volumes, member after member, the
	// leader last.
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`

	// pod configures the Pods of the members: labels, annotations, ServiceAccount, users and
	// groups. A change of its metadata is applied at once and restarts nothing. Any other change
	// recreates the Pods over their volumes, member after member, the leader last.
	// +optional
	Pod *Pod `json:"pod,omitempty"`

	// services are the Services of the cluster. A change is applied at once and restarts nothing.
	// +optional
	Services *Services `json:"services,omitempty"`

	// disruptionBudget keeps drains of nodes from evicting a quorum of the members.
	// +optional
	DisruptionBudget *DisruptionBudget `json:"disruptionBudget,omitempty"`

	// additionalMetadata is added to everything that Quorate creates for this cluster. A change is
	// applied at once and restarts nothing.
	// +optional
	AdditionalMetadata *Metadata `json:"additionalMetadata,omitempty"`

	// recovery says when a member is given up and replaced, and what is done where the majority is
	// lost.
	// +optional
	Recovery *Recovery `json:"recovery,omitempty"`

	// backup says where snapshots of this cluster are stored, and how they are encrypted. An
	// EtcdBackup takes a snapshot, and Quorate takes one before the version changes. Changing
	// spec.backup restarts no member.
	// +optional
	Backup *Backup `json:"backup,omitempty"`

	// bootstrap says how a new cluster begins. By default it begins empty. It can be corrected
	// until status.restored is set, and left out once the cluster has formed.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// tls says how the connections to the members, and among them, are encrypted and authenticated.
	// A new cluster that says nothing here has TLS on both ports, with certificates that Quorate
	// issues. What is in force is in status.tls. The mode for peers cannot be changed once members
	// have started.
	// +optional
	TLS *TLS `json:"tls,omitempty"`

	// auth has etcd authenticate its clients, so that each may do what its user may. The users and
	// roles are objects: EtcdUser and EtcdRole. It can be enabled and disabled while the cluster
	// serves, and restarts nothing. Default: Quorate does not look at it.
	// +optional
	Auth *Auth `json:"auth,omitempty"`

	// suspend stops every change of this cluster, its members, volumes and Secrets, for a person to
	// work on it by hand. What runs goes on running, and the status says that it is suspended.
	// EtcdBackups and EtcdBackupSchedules go on: a schedule has a suspend of its own. Default
	// false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Auth is whether etcd authenticates its clients.
type Auth struct {
	// enabled is whether etcd authenticates clients. true: a client may do what the user may that
	// it is, by the common name of its certificate or by a password; a client that is no user may
	// do nothing. That begins once the cluster is healthy, and every EtcdRole and EtcdUser of it is
	// Ready. It needs spec.tls.client.mode Managed or Secret, which cannot be changed meanwhile.
	// false: each client that connects may do everything. Users and roles stay. To remove spec.auth
	// is the same as false.
	// +required
	Enabled bool `json:"enabled"`

	// rootSecretRef is the Secret, in the namespace of the EtcdCluster, with the password of the
	// user root: the key password, of 1 to 72 bytes. Quorate never connects with it. A change of
	// the Secret is applied within five minutes. Default: a random password that is stored nowhere.
	// +optional
	RootSecretRef *SecretReference `json:"rootSecretRef,omitempty"`
}

// Backup says where snapshots of a cluster are stored, for which recipients they are encrypted, and
// with which identity they are decrypted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.beforeChange) || has(self.store)",fieldPath=".beforeChange",message="spec.backup.beforeChange needs spec.backup.store, which is where the snapshot before a change of the version goes: set spec.backup.store, or leave spec.backup.beforeChange out"
type Backup struct {
	// store is the store of every EtcdBackup of this cluster that names none itself. A change is
	// for those that are begun after it: what is stored stays where it is.
	// +optional
	Store *BackupStore `json:"store,omitempty"`

	// encryption encrypts every snapshot of this cluster before it leaves the Pod that takes it: of
	// EtcdBackups, whatever their store, of schedules, and those before a change of the version. An
	// EtcdBackup with spec.encryption of its own is encrypted as that says instead. A change of
	// this field applies to snapshots that are begun after it. Default none.
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// identity is the Secret with the private key that decrypts snapshots when this cluster is
	// restored. It is the default for spec.source.identity of an EtcdRestore, also of one that
	// spec.recovery.quorumLoss FromBackup has created, and for spec.bootstrap.restore.identity.
	// Nothing else reads it. Default none: then the private key need not be in Kubernetes until you
	// restore a snapshot.
	// +optional
	Identity *AgeIdentity `json:"identity,omitempty"`

	// beforeChange is whether a snapshot is taken before the members come to another version, up or
	// down. Require (default where there is a store): an EtcdBackup of the cluster is created, and
	// no member is changed before its snapshot is stored, restored and compared. It is one for each
	// generation of the spec that asks for another version, and none for a change back in the
	// middle of one. It is kept when the cluster is deleted, and Quorate never deletes it.
	// Disabled: the change begins without a snapshot.
	// +optional
	// +kubebuilder:validation:Enum=Require;Disabled
	BeforeChange BeforeChange `json:"beforeChange,omitempty"`
}

// BeforeChange is whether a snapshot is taken before the members come to another version.
type BeforeChange string

// The values of BeforeChange.
const (
	BeforeChangeRequire  BeforeChange = "Require"
	BeforeChangeDisabled BeforeChange = "Disabled"
)

// Image says where the etcd image comes from.
type Image struct {
	// repository is the image name without tag or digest. Default gcr.io/etcd-development/etcd.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9.]*|[[][0-9a-fA-F:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$')",message="spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version"
	Repository string `json:"repository,omitempty"`

	// tag is the template of the image's tag: {version} in it stands for the etcd version of the
	// member, as MAJOR.MINOR.PATCH. Default v{version}. A change from 3.5 to 3.7 needs an image for
	// a version of 3.6 as well.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.contains('{version}')",message="spec.image.tag must contain {version}, which stands for the etcd version of the member: while the version changes, members run images of several versions. Write for example v{version} or {version}-hardened"
	// +kubebuilder:validation:XValidation:rule="!self.contains('{version}') || self.matches('^([A-Za-z0-9_]([-A-Za-z0-9_.]*[-A-Za-z_])?|[A-Za-z_])?[{]version[}]([-A-Za-z_.][-A-Za-z0-9_.]*)?$') && !self.matches('[0-9]+[.][0-9]+[.][0-9]+')",message="spec.image.tag is made of letters, digits, '-', '_' and '.' around one {version}, without a digit beside it and without another version, for example v{version} or {version}-hardened"
	Tag string `json:"tag,omitempty"`

	// digests pin the image of a version to one content. The tag stays in the image's name; the
	// digest decides what runs. A version without a digest runs what its tag holds. A change from
	// 3.5 to 3.7 also runs an image of 3.6: pin that version too. Default none.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=16
	Digests []ImageDigest `json:"digests,omitempty"`

	// pullPolicy is when the kubelet pulls the image. Default IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`

	// pullSecrets are Secrets of the same namespace with credentials for the registry.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	PullSecrets []SecretReference `json:"pullSecrets,omitempty"`
}

// ImageDigest pins the image of one version of etcd to one content.
type ImageDigest struct {
	// version of etcd as MAJOR.MINOR.PATCH, without a leading "v".
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^3[.][567][.](0|[1-9][0-9]{0,2})$')",message="spec.image.digests: version must be MAJOR.MINOR.PATCH of etcd 3.5, 3.6 or 3.7, without a leading v, for example 3.6.16"
	Version string `json:"version"`

	// digest of the image, as sha256:<64 hexadecimal digits>.
	// +required
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="spec.image.digests: digest must be sha256: and 64 lower-case hexadecimal digits"
	Digest string `json:"digest"`
}

// SecretReference names a Secret in the namespace of the EtcdCluster.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// LabelValue is the value of a label: a plain string, whose name carries the bound into the schema.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue = string

// Labels are labels as Kubernetes takes them.
//
// +kubebuilder:object:generate=false
// +kubebuilder:validation:MaxProperties=32
// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && !format.labelValue().validate(self[k]).hasValue())",message="a key is an optional DNS prefix with a slash, and a name; name and value have at most 63 ASCII letters, digits, '-', '_' and '.', and start and end with a letter or digit"
type Labels map[string]LabelValue

// DeepCopy is written by hand, because controller-gen does not know aliases as values of maps.
func (in Labels) DeepCopy() Labels { return maps.Clone(in) }

// Metadata is labels and annotations to add to objects that Quorate creates.
type Metadata struct {
	// labels to add. Keys under etcd.quorate.dev and app.kubernetes.io are Quorate's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.quorate.dev/') && !k.startsWith('app.kubernetes.io/'))",message="keys under etcd.quorate.dev/ and app.kubernetes.io/ are written by Quorate; use another prefix"
	Labels Labels `json:"labels,omitempty"`

	// annotations to add. Keys under etcd.quorate.dev are Quorate's. A value has at most 4096
	// characters, and all keys and values together have at most 16384.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.quorate.dev/'))",message="keys under etcd.quorate.dev/ are written by Quorate; use another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue())",message="a key is an optional DNS prefix with a slash, and a name of at most 63 ASCII letters, digits, '-', '_' and '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 4096)",message="a value has at most 4096 characters"
	// +kubebuilder:validation:XValidation:rule="self.map(k, k.size() + self[k].size()).sum() <= 16384",message="all keys and values together have at most 16384 characters: leave some out"
	Annotations map[string]string `json:"annotations,omitempty"`
}
