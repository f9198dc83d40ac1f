package v1alpha1

import (
	"strings"
	"testing"
)

func TestAdmitOptions(t *testing.T) {
	t.Parallel()
	admission(t, map[string]admissionCase{
		"HeartbeatFifthOfDefault": {
			reason: "five heartbeats are just enough",
			args:   args{object: `spec: {options: {heartbeatInterval: 200ms}}`},
		},
		"ElectionFiveDefaults": {
			reason: "five default heartbeats are just enough",
			args:   args{object: `spec: {options: {electionTimeout: 500ms}}`},
		},
		"TimesLongest": {
			reason: "seconds as well as milliseconds",
			args:   args{object: `spec: {options: {heartbeatInterval: 10s, electionTimeout: 50000ms}}`},
		},
		"TimesShortest": {
			reason: "for members in one rack",
			args:   args{object: `spec: {options: {heartbeatInterval: 20ms, electionTimeout: 100ms}}`},
		},
		"QuotaSmallest": {
			reason: "for tests",
			args:   args{object: `spec: {options: {quotaBackendSize: 16Mi}}`},
		},
		"QuotaLargest": {
			reason: "on a volume that has room",
			args:   args{object: `spec: {options: {quotaBackendSize: 100Gi}, storage: {size: 250Gi}}`},
		},
		"CompactionPeriodic": {
			reason: "a time",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Periodic, retention: 8h}}}`},
		},
		"CompactionRevision": {
			reason: "a number",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Revision, retention: '1000'}}}`},
		},
		"SnapshotCount": {
			reason: "etcd 3.5's own default",
			args:   args{object: `spec: {options: {snapshotCount: 100000}}`},
		},
		"FlagsFull": {
			reason: "several, with values of all kinds",
			args:   args{object: `spec: {options: {flags: {max-request-bytes: '3145728', cors: 'https://example.com:443', enable-pprof: 'true', host-whitelist: ''}}}`},
		},
		"Durations": {
			reason: "as Go writes them",
			args:   args{object: `spec: {options: {heartbeatInterval: 0.1s, electionTimeout: 1s500ms, autoCompaction: {mode: Periodic, retention: 1h30m}}}`},
		},
		"HeartbeatZero": {
			reason: "a heartbeat takes time",
			args:   args{object: `spec: {options: {heartbeatInterval: 0ms}}`},
			want:   []string{`spec.options.heartbeatInterval: Invalid value: "0ms": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`},
		},
		"HeartbeatNoUnit": {
			reason: "a unit is needed",
			args:   args{object: `spec: {options: {heartbeatInterval: '100'}}`},
			want:   []string{`spec.options.heartbeatInterval: Invalid value: "100": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`},
		},
		"HeartbeatFraction": {
			reason: "etcd takes whole milliseconds",
			args:   args{object: `spec: {options: {heartbeatInterval: 0.5ms}}`},
			want:   []string{`spec.options.heartbeatInterval: Invalid value: "0.5ms": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`},
		},
		"HeartbeatNegative": {
			reason: "there is no such time",
			args:   args{object: `spec: {options: {heartbeatInterval: -1s}}`},
			want:   []string{`spec.options.heartbeatInterval: Invalid value: "-1s": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`},
		},
		"HeartbeatLong": {
			reason: "so slow a cluster would take minutes to elect a leader",
			args:   args{object: `spec: {options: {heartbeatInterval: 11s, electionTimeout: 50s}}`},
			want: []string{
				`spec.options.electionTimeout: Invalid value: spec.options.electionTimeout (default 1s) must be at least five times spec.options.heartbeatInterval (default 100ms): etcd does not start otherwise; raise the one or lower the other`,
				`spec.options.heartbeatInterval: Invalid value: "11s": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`,
			},
		},
		"HeartbeatOverflow": {
			reason: "more than fits a duration",
			args:   args{object: `spec: {options: {heartbeatInterval: 999999999999s}}`},
			want:   []string{`spec.options.heartbeatInterval: Invalid value: "999999999999s": spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms`},
		},
		"ElectionGarbage": {
			reason: "a word is no time",
			args:   args{object: `spec: {options: {electionTimeout: soon}}`},
			want:   []string{`spec.options.electionTimeout: Invalid value: "soon": spec.options.electionTimeout must be a duration of whole milliseconds from 100ms to 50s, for example 1s`},
		},
		"ElectionShort": {
			reason: "less than a busy disk or processor takes: etcd elects all the time",
			args:   args{object: `spec: {options: {heartbeatInterval: 1ms, electionTimeout: 99ms}}`},
			want:   []string{`spec.options.electionTimeout: Invalid value: "99ms": spec.options.electionTimeout must be a duration of whole milliseconds from 100ms to 50s, for example 1s`},
		},
		"ElectionLong": {
			reason: "etcd refuses more than 50 s",
			args:   args{object: `spec: {options: {electionTimeout: 51s}}`},
			want:   []string{`spec.options.electionTimeout: Invalid value: "51s": spec.options.electionTimeout must be a duration of whole milliseconds from 100ms to 50s, for example 1s`},
		},
		"ElectionUnderFiveHeartbeats": {
			reason: "both given",
			args:   args{object: `spec: {options: {heartbeatInterval: 300ms, electionTimeout: 1499ms}}`},
			want:   []string{`spec.options.electionTimeout: Invalid value: spec.options.electionTimeout (default 1s) must be at least five times spec.options.heartbeatInterval (default 100ms): etcd does not start otherwise; raise the one or lower the other`},
		},
		"ElectionUnderFiveDefaultHeartbeats": {
			reason: "the heartbeat is 100ms by default",
			args:   args{object: `spec: {options: {electionTimeout: 499ms}}`},
			want:   []string{`spec.options.electionTimeout: Invalid value: spec.options.electionTimeout (default 1s) must be at least five times spec.options.heartbeatInterval (default 100ms): etcd does not start otherwise; raise the one or lower the other`},
		},
		"DefaultElectionUnderFiveHeartbeats": {
			reason: "the election timeout is 1s by default",
			args:   args{object: `spec: {options: {heartbeatInterval: 201ms}}`},
			want:   []string{`spec.options.electionTimeout: Invalid value: spec.options.electionTimeout (default 1s) must be at least five times spec.options.heartbeatInterval (default 100ms): etcd does not start otherwise; raise the one or lower the other`},
		},
		"QuotaTiny": {
			reason: "no data would fit",
			args:   args{object: `spec: {options: {quotaBackendSize: 15Mi}}`},
			want:   []string{`spec.options.quotaBackendSize: Invalid value: "15Mi": spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi`},
		},
		"QuotaZero": {
			reason: "etcd would read 0 as its default",
			args:   args{object: `spec: {options: {quotaBackendSize: 0}}`},
			want:   []string{`spec.options.quotaBackendSize: Invalid value: 0: spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi`},
		},
		"QuotaNegative": {
			reason: "etcd would read it as none",
			args:   args{object: `spec: {options: {quotaBackendSize: -1}}`},
			want:   []string{`spec.options.quotaBackendSize: Invalid value: -1: spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi`},
		},
		"QuotaHuge": {
			reason: "a database so large takes hours to copy",
			args:   args{object: `spec: {options: {quotaBackendSize: 101Gi}, storage: {size: 1Ti}}`},
			want:   []string{`spec.options.quotaBackendSize: Invalid value: "101Gi": spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi`},
		},
		"QuotaGarbage": {
			reason: "a unit that is none",
			args:   args{object: `spec: {options: {quotaBackendSize: 2GB}}`},
			want: []string{
				`spec.options.quotaBackendSize: Invalid value: "2GB": spec.options.quotaBackendSize in body should match ` + quantityPattern,
				`spec.options.quotaBackendSize: Invalid value: "2GB": spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi`,
			},
		},
		"QuotaAsStorage": {
			reason: "the log and snapshots need room too",
			args:   args{object: `spec: {options: {quotaBackendSize: 1Gi}}`},
			want:   []string{`spec.options.quotaBackendSize: Invalid value: spec.options.quotaBackendSize must be smaller than spec.storage.size, best less than half of it: the volume also holds the write-ahead log, snapshots and the copy that a defragmentation makes`},
		},
		"CompactionIncomplete": {
			reason: "both or none",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Periodic}}}`},
			want:   []string{`spec.options.autoCompaction.retention: Required value`},
		},
		"CompactionModeUnknown": {
			reason: "upper case, as all our words",
			args:   args{object: `spec: {options: {autoCompaction: {mode: periodic, retention: 8h}}}`},
			want:   []string{`spec.options.autoCompaction.mode: Unsupported value: "periodic": supported values: "Periodic", "Revision"`},
		},
		"PeriodicRevisions": {
			reason: "a number would be hours to etcd, and seldom to a person",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Periodic, retention: '1000'}}}`},
			want:   []string{`spec.options.autoCompaction: Invalid value: spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000`},
		},
		"PeriodicZero": {
			reason: "0h switches compaction off, silently",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Periodic, retention: 0h}}}`},
			want:   []string{`spec.options.autoCompaction: Invalid value: spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000`},
		},
		"PeriodicSeconds": {
			reason: "seconds would compact all the time",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Periodic, retention: 30s}}}`},
			want:   []string{`spec.options.autoCompaction: Invalid value: spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000`},
		},
		"RevisionTime": {
			reason: "a time is no number",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Revision, retention: 8h}}}`},
			want:   []string{`spec.options.autoCompaction: Invalid value: spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000`},
		},
		"RevisionZero": {
			reason: "0 switches compaction off, silently",
			args:   args{object: `spec: {options: {autoCompaction: {mode: Revision, retention: '0'}}}`},
			want:   []string{`spec.options.autoCompaction: Invalid value: spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000`},
		},
		"SnapshotCountSmall": {
			reason: "a snapshot at every write",
			args:   args{object: `spec: {options: {snapshotCount: 99}}`},
			want:   []string{`spec.options.snapshotCount: Invalid value: 99: spec.options.snapshotCount in body should be greater than or equal to 100`},
		},
		"SnapshotCountLarge": {
			reason: "the log is kept in memory",
			args:   args{object: `spec: {options: {snapshotCount: 1000001}}`},
			want:   []string{`spec.options.snapshotCount: Invalid value: 1000001: spec.options.snapshotCount in body should be less than or equal to 1000000`},
		},
		"FlagValueLong": {
			reason: "a value is short",
			args:   args{object: "spec: {options: {flags: {log-level: " + strings.Repeat("a", 1025) + "}}}"},
			want:   []string{`spec.options.flags: Invalid value: spec.options.flags: a value has at most 1024 characters`},
		},
		"FlagValueNotAString": {
			reason: "YAML reads 1 without quotes as a number",
			args:   args{object: `spec: {options: {flags: {max-txn-ops: 1}}}`},
			want:   []string{`spec.options.flags.max-txn-ops: Invalid value: "integer": spec.options.flags.max-txn-ops in body must be of type string: "integer"`},
		},
	})
}
