package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Duration is a duration in the format of Go, in whole milliseconds: 100ms, 5m, 1m30s, 1.5h. Each
// field says its bounds.
//
// +kubebuilder:validation:MaxLength=16
type Duration string

// Never is what spec.recovery.replaceAfter takes beside a duration.
const Never Duration = "Never"

// Options configure etcd itself: the well-known ones by name and type, the rest as flags. All
// members get the same.
//
// +kubebuilder:validation:XValidation:rule="[has(self.heartbeatInterval) ? self.heartbeatInterval : '100ms'].all(h, [has(self.electionTimeout) ? self.electionTimeout : '1s'].all(e, !h.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') || !e.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') || duration(h) + duration(h) + duration(h) + duration(h) + duration(h) <= duration(e)))",fieldPath=".electionTimeout",message="spec.options.electionTimeout (default 1s) must be at least five times spec.options.heartbeatInterval (default 100ms): etcd does not start otherwise; raise the one or lower the other"
type Options struct {
	// heartbeatInterval is how often the leader tells the others that it lives; about the
	// round-trip time between members. Default 100ms, 1ms to 10s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('1ms') && duration(self) <= duration('10s')",message="spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms"
	HeartbeatInterval *Duration `json:"heartbeatInterval,omitempty"`

	// electionTimeout is how long a member waits for the leader before it calls an election; ten
	// round trips or more, at least five heartbeats. Default 1s, 100ms to 50s. With a shorter one,
	// a busy disk or processor is taken for a lost leader, and etcd elects again and again.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) >= duration('100ms') && duration(self) <= duration('50s')",message="spec.options.electionTimeout must be a duration of whole milliseconds from 100ms to 50s, for example 1s"
	ElectionTimeout *Duration `json:"electionTimeout,omitempty"`

	// quotaBackendSize is the database size at which etcd refuses writes until space is freed, 16Mi
	// to 100Gi. It must be smaller than storage.size; keep it below half of that: snapshots and
	// defragmentation need room for a copy. Default: 2Gi, which is etcd's own, or half of
	// storage.size where that is less.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,18}[.]?[0-9]{0,9}([numk]|[KMGTPE]i?)?$') && quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('100Gi')) <= 0",message="spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi"
	QuotaBackendSize *resource.Quantity `json:"quotaBackendSize,omitempty"`

	// autoCompaction makes etcd forget old revisions by itself. Default none: a Kubernetes API
	// server compacts its etcd.
	// +optional
	AutoCompaction *AutoCompaction `json:"autoCompaction,omitempty"`

	// snapshotCount is the number of transactions after which a member snapshots its raft log.
	// Default: 10000, on every minor (etcd 3.5 alone would take 100000 and the memory that goes
	// with it).
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000000
	SnapshotCount *int64 `json:"snapshotCount,omitempty"`

	// flags are further flags of etcd, by name without dashes, for example max-request-bytes:
	// "3145728". A flag that Quorate sets by itself, that would endanger data, or that has a field
	// of its own is refused; one that this etcd version does not know is reported as Stalled.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 1024)",message="spec.options.flags: a value has at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && k.matches('^[a-z0-9]+(-[a-z0-9]+)*$'))",message="spec.options.flags: write the names as etcd --help does, without the dashes in front, for example max-request-bytes"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['name', 'data-dir', 'wal-dir', 'config-file', 'help', 'h', 'version']) && !k.endsWith('-urls') && !k.startsWith('initial-cluster') && !k.startsWith('discovery') && !k.startsWith('proxy'))",message="spec.options.flags: Quorate decides the identity of a member, where it keeps its data, which addresses it has and how the cluster forms; leave out name, data-dir, wal-dir, config-file, version, help and every *-urls, initial-cluster*, discovery* and proxy*"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['force-new-cluster', 'unsafe-no-fsync', 'strict-reconfig-check', 'max-learners', 'feature-gates', 'experimental-initial-corrupt-check', 'experimental-compact-hash-check-enabled', 'enable-v2', 'experimental-enable-v2v3', 'v2-deprecation']))",message="spec.options.flags: Quorate keeps the checks on that protect the data, and changes members by itself; leave out force-new-cluster, unsafe-no-fsync, strict-reconfig-check, max-learners, feature-gates, experimental-initial-corrupt-check, experimental-compact-hash-check-enabled, enable-v2, experimental-enable-v2v3 and v2-deprecation"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['logger', 'log-outputs', 'enable-log-rotation', 'log-rotation-config-json']))",message="spec.options.flags: members log to standard error, where kubectl logs finds it; leave out logger, log-outputs, enable-log-rotation and log-rotation-config-json (log-level can be set)"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['heartbeat-interval', 'election-timeout', 'quota-backend-bytes', 'auto-compaction-mode', 'auto-compaction-retention', 'snapshot-count']))",message="spec.options.flags: heartbeat-interval, election-timeout, quota-backend-bytes, auto-compaction-mode, auto-compaction-retention and snapshot-count have fields of their own: spec.options.heartbeatInterval, spec.options.electionTimeout, spec.options.quotaBackendSize, spec.options.autoCompaction and spec.options.snapshotCount"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(auth-|auto-tls|bcrypt-|cert-|cipher-|client-|experimental-peer-|key-|peer-|self-signed-|tls-|trusted-)'))",message="spec.options.flags: TLS is configured in spec.tls, and authentication in spec.auth; leave out every auth-*, cert-*, key-*, client-*, peer-*, tls-* and auto-tls, bcrypt-cost, cipher-suites, self-signed-cert-validity, trusted-ca-file and experimental-peer-skip-client-san-verification"
	Flags map[string]string `json:"flags,omitempty"`
}

// CompactionMode is how etcd decides which revisions are old.
type CompactionMode string

// The compaction modes.
const (
	CompactionPeriodic CompactionMode = "Periodic"
	CompactionRevision CompactionMode = "Revision"
)

// AutoCompaction makes etcd forget old revisions by itself.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Periodic' ? self.retention.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self.retention) >= duration('1m') : self.retention.matches('^[1-9][0-9]*$')",message="spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000"
type AutoCompaction struct {
	// mode is Periodic (keep a time) or Revision (keep a number of revisions).
	// +required
	// +kubebuilder:validation:Enum=Periodic;Revision
	Mode CompactionMode `json:"mode"`

	// retention is what is kept: for Periodic a time of at least 1m such as 8h or 1h30m, for
	// Revision a number such as 1000.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	Retention string `json:"retention"`
}
