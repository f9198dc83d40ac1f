package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdClusterStatus is the observed state of an etcd cluster.
type EtcdClusterStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Available and Degraded, always; Reconciling and Stalled, only while
	// True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// replicas is the number of members that have a Pod; with readyReplicas and selector it serves
	// the scale subresource.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of members that are healthy voters.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// ready is readyReplicas of the members that the spec asks for, such as 3/3, for people to
	// read. The condition Ready says whether the spec is carried out.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Ready string `json:"ready,omitempty"`

	// endpoints are the URLs at which clients inside of the Kubernetes cluster reach etcd: that of
	// the Service <name>-client.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=512
	Endpoints []string `json:"endpoints,omitempty"`

	// selector selects the Pods of the members.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Selector string `json:"selector,omitempty"`

	// clusterID is etcd's own ID of this cluster, in hexadecimal. Once it is set, no member is ever
	// started empty again.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// restored is the snapshot that the cluster was started from (spec.bootstrap.restore, or an
	// EtcdRestore). Once it is set, only an EtcdRestore changes it.
	// +optional
	Restored *RestoredSnapshot `json:"restored,omitempty"`

	// restore is the EtcdRestore that is carried out, or was carried out last.
	// +optional
	Restore *ClusterRestore `json:"restore,omitempty"`

	// carriedOut are the names of the EtcdRestores that were carried out or refused, the last 16.
	// An EtcdRestore of one of these names is not carried out.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	CarriedOut []string `json:"carriedOut,omitempty"`

	// quorumLoss is since when the data of a majority is gone for good; empty where it is not.
	// +optional
	QuorumLoss *QuorumLoss `json:"quorumLoss,omitempty"`

	// firstOrdinal is the lowest ordinal that a member can have. Pods and PersistentVolumeClaims
	// with a lower one are of former members, which an EtcdRestore has replaced.
	// +optional
	FirstOrdinal int32 `json:"firstOrdinal,omitempty"`

	// tls has the modes of TLS that are in force, and the authorities that the members trust.
	// +optional
	TLS *TLSStatus `json:"tls,omitempty"`

	// auth is what is known of etcd's users, where spec.auth is set or was.
	// +optional
	Auth *AuthStatus `json:"auth,omitempty"`

	// version is the lowest etcd version that a member was seen to run.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Version string `json:"version,omitempty"`

	// leader is the name of the member that leads.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Leader string `json:"leader,omitempty"`

	// dbSize is the size of the largest member's database, rounded up. It does not fall while a
	// member does not answer.
	// +optional
	DBSize *resource.Quantity `json:"dbSize,omitempty"`

	// members are the members that exist, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Members []MemberStatus `json:"members,omitempty"`

	// nextOrdinal is the ordinal of the next new member. It only grows: no name is used twice.
	// +optional
	NextOrdinal int32 `json:"nextOrdinal,omitempty"`

	// failedChange is the update that the spec asks for, if it failed on one member and was rolled
	// back there. The update is tried again when the spec changes.
	// +optional
	FailedChange *FailedChange `json:"failedChange,omitempty"`

	// operation is what was decided and is not yet seen to be done. It is written before the first
	// effect, so that after a crash it is plain what may have happened.
	// +optional
	Operation *Operation `json:"operation,omitempty"`
}

// AuthStatus is what is known of etcd's users.
type AuthStatus struct {
	// enabled is whether etcd authenticates clients. It is written before that begins, and after it
	// has ended.
	// +optional
	Enabled bool `json:"enabled"`

	// user is Quorate's own user in etcd, which has the role root: the common name of the
	// certificate with which Quorate and its Jobs connect.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	User string `json:"user,omitempty"`

	// rootPassword is which password root was given last: generated, or UID and resourceVersion of
	// the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RootPassword string `json:"rootPassword,omitempty"`

	// clusterID is etcd's own ID of the cluster of which this was found: after a restore it is
	// another one, and root is given its password again.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// unmanaged are the users in etcd that are neither an EtcdUser nor root nor Quorate's own: made
	// by hand, or come back with a snapshot. Quorate leaves them alone. The first 32, by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	Unmanaged []string `json:"unmanaged,omitempty"`
}

// QuorumLoss is a loss of the data of a majority.
type QuorumLoss struct {
	// clusterID is etcd's own ID of the cluster that was lost, in hexadecimal.
	// +required
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID"`

	// since is when it was first seen.
	// +required
	Since metav1.Time `json:"since"`

	// lostSince is when the data of a majority was last found to be gone. Later than since where an
	// EtcdRestore was created for it, and the data of a majority was there again before that began;
	// empty while it is.
	// +optional
	LostSince *metav1.Time `json:"lostSince,omitempty"`

	// restore is the name of the EtcdRestore that was created for it (spec.recovery.quorumLoss). No
	// other one is created for this loss, also where a person has deleted that.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Restore string `json:"restore,omitempty"`
}

// MemberRole is the part a member plays in raft.
type MemberRole string

// The roles.
const (
	RoleLeader   MemberRole = "Leader"
	RoleFollower MemberRole = "Follower"
	RoleLearner  MemberRole = "Learner"
	RoleUnknown  MemberRole = "Unknown"
)

// MemberHealth is how a member answered when it was last asked.
type MemberHealth string

// The health of a member.
const (
	// HealthHealthy: it answers, has a leader and no alarm.
	HealthHealthy MemberHealth = "Healthy"
	// HealthNoLeader: it answers, but knows no leader.
	HealthNoLeader MemberHealth = "NoLeader"
	// HealthAlarm: it answers, with an alarm raised.
	HealthAlarm MemberHealth = "Alarm"
	// HealthUnreachable: its Pod exists and does not answer.
	HealthUnreachable MemberHealth = "Unreachable"
	// HealthStopped: it has no Pod.
	HealthStopped MemberHealth = "Stopped"
	// HealthLost: its data is gone.
	HealthLost MemberHealth = "Lost"
)

// MemberStatus is one member as it was last seen.
type MemberStatus struct {
	// name of the member: its Pod, its volume and its name in etcd.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// id is etcd's own ID of the member, in hexadecimal; empty until it is known.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ID string `json:"id,omitempty"`

	// version is the etcd version that the member says it runs.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Version string `json:"version,omitempty"`

	// role is Leader, Follower, Learner or Unknown.
	// +optional
	// +kubebuilder:validation:Enum=Leader;Follower;Learner;Unknown
	Role MemberRole `json:"role,omitempty"`

	// health is Healthy, NoLeader, Alarm, Unreachable, Stopped or Lost.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;NoLeader;Alarm;Unreachable;Stopped;Lost
	Health MemberHealth `json:"health,omitempty"`

	// message says why the member does not serve, where its Pod tells; empty while it is healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// node is the node that its Pod runs on; empty where it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// zone is the zone of that node, as the label topology.kubernetes.io/zone of its Pod says it.
	// Kubernetes writes this label from 1.35 on.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// volume is the name of its PersistentVolumeClaim; empty with storage.medium Memory, or when it
	// is gone.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Volume string `json:"volume,omitempty"`

	// downSince is when its Pod was first found not to run; empty again once the member answers, or
	// its kubelet finds it ready. Where another container or a readiness gate keeps the Pod from
	// being ready, or its node does not answer, spec.recovery.replaceAfter runs since then at the
	// earliest.
	// +optional
	DownSince *metav1.Time `json:"downSince,omitempty"`

	// emptySince is when its volume was first found to have come back empty; empty again once etcd
	// has got further. spec.recovery.replaceEmptyAfter runs since then at the earliest.
	// +optional
	EmptySince *metav1.Time `json:"emptySince,omitempty"`
}

// FailedChange is an update that failed on one member, which was rolled back.
type FailedChange struct {
	// generation of the spec that asks for it.
	// +required
	Generation int64 `json:"generation"`

	// message says which member was updated to what, and how that failed.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// Operation is what was decided and is not yet seen to be done.
type Operation struct {
	// step is what is being done: Bootstrap, Stop, AddLearner, Promote, Remove, MoveLeader,
	// Discard, Update, PutBack, Downgrade or CancelDowngrade.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Step string `json:"step"`

	// generation of the spec that led to it.
	// +required
	Generation int64 `json:"generation"`

	// memberID is etcd's own ID of the member that is promoted, removed, or to lead.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	MemberID string `json:"memberID,omitempty"`

	// holder is the process that carries it out.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Holder string `json:"holder,omitempty"`

	// since is when it was decided. A request to etcd is given up long before another operation may
	// take its place.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// targets are the objects it acts on.
	// +optional
	// +listType=map
	// +listMapKey=member
	// +kubebuilder:validation:MaxItems=32
	Targets []OperationTarget `json:"targets,omitempty"`
}

// OperationTarget is one object that an operation acts on.
type OperationTarget struct {
	// member it belongs to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member"`

	// uid of its Pod (Stop, Update, PutBack, Downgrade, CancelDowngrade), or else of its volume;
	// empty where it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
}
