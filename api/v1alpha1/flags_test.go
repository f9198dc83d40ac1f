package v1alpha1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every flag of etcd 3.5.19 to 3.5.35, 3.6.0 to 3.6.16 and 3.7.0 to 3.7.3 is in exactly one row.
func TestFlags(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
		want   []string
	}{
		"Identity": {
			reason: "these make a member of this cluster out of an etcd process",
			args: `
				name data-dir wal-dir config-file
				listen-peer-urls listen-client-urls listen-client-http-urls listen-metrics-urls
				advertise-client-urls initial-advertise-peer-urls
				initial-cluster initial-cluster-state initial-cluster-token
				discovery discovery-token discovery-endpoints discovery-dial-timeout discovery-request-timeout
				discovery-keepalive-time discovery-keepalive-timeout discovery-insecure-transport
				discovery-insecure-skip-tls-verify discovery-cert discovery-key discovery-cacert discovery-user
				discovery-password discovery-fallback discovery-proxy discovery-srv discovery-srv-name
				proxy proxy-failure-wait proxy-refresh-interval proxy-dial-timeout proxy-write-timeout proxy-read-timeout
				version help h`,
			want: []string{"spec.options.flags: Quorate decides the identity of a member, where it keeps its data, which addresses it has and how the cluster forms; leave out name, data-dir, wal-dir, config-file, version, help and every *-urls, initial-cluster*, discovery* and proxy*"},
		},
		"Safety": {
			reason: "these give up what keeps the data safe, or count on members that Quorate decides about",
			args: `
				force-new-cluster unsafe-no-fsync strict-reconfig-check max-learners feature-gates
				experimental-initial-corrupt-check experimental-compact-hash-check-enabled
				enable-v2 experimental-enable-v2v3 v2-deprecation`,
			want: []string{"spec.options.flags: Quorate keeps the checks on that protect the data, and changes members by itself; leave out force-new-cluster, unsafe-no-fsync, strict-reconfig-check, max-learners, feature-gates, experimental-initial-corrupt-check, experimental-compact-hash-check-enabled, enable-v2, experimental-enable-v2v3 and v2-deprecation"},
		},
		"Logs": {
			reason: "a log in a file inside a container is a log that is not read, on a file system that is read-only",
			args:   `logger log-outputs enable-log-rotation log-rotation-config-json`,
			want:   []string{"spec.options.flags: members log to standard error, where kubectl logs finds it; leave out logger, log-outputs, enable-log-rotation and log-rotation-config-json (log-level can be set)"},
		},
		"OwnFields": {
			reason: "a setting has one place",
			args: `
				heartbeat-interval election-timeout quota-backend-bytes auto-compaction-mode auto-compaction-retention
				snapshot-count`,
			want: []string{"spec.options.flags: heartbeat-interval, election-timeout, quota-backend-bytes, auto-compaction-mode, auto-compaction-retention and snapshot-count have fields of their own: spec.options.heartbeatInterval, spec.options.electionTimeout, spec.options.quotaBackendSize, spec.options.autoCompaction and spec.options.snapshotCount"},
		},
		"TLSAndAuth": {
			reason: "these need files in the Pod and a client of Quorate's that knows of them",
			args: `
				cert-file key-file client-cert-auth client-cert-file client-key-file client-crl-file
				client-cert-allowed-hostname trusted-ca-file auto-tls
				peer-cert-file peer-key-file peer-client-cert-auth peer-client-cert-file peer-client-key-file
				peer-trusted-ca-file peer-auto-tls peer-crl-file peer-cert-allowed-cn peer-cert-allowed-hostname
				self-signed-cert-validity cipher-suites tls-min-version tls-max-version
				peer-skip-client-san-verification experimental-peer-skip-client-san-verification
				auth-token auth-token-ttl bcrypt-cost`,
			want: []string{"spec.options.flags: TLS is configured in spec.tls, and authentication in spec.auth; leave out every auth-*, cert-*, key-*, client-*, peer-*, tls-* and auto-tls, bcrypt-cost, cipher-suites, self-signed-cert-validity, trusted-ca-file and experimental-peer-skip-client-san-verification"},
		},
		"Malformed": {
			reason: "these would not reach etcd as the flag that was meant",
			args:   `--max-txn-ops -max-txn-ops max-txn-ops=1 MaxTxnOps max_txn_ops max--txn max- ETCD_NAME ä ` + strings.Repeat("a", 65),
			want:   []string{"spec.options.flags: write the names as etcd --help does, without the dashes in front, for example max-request-bytes"},
		},
		"Allowed": {
			reason: "these tune a member and can do no harm that Quorate could not see",
			args: `
				backend-batch-interval backend-batch-limit backend-bbolt-freelist-type
				bootstrap-defrag-threshold-megabytes experimental-bootstrap-defrag-threshold-megabytes
				compact-hash-check-time experimental-compact-hash-check-time
				compaction-batch-limit experimental-compaction-batch-limit
				compaction-sleep-interval experimental-compaction-sleep-interval
				corrupt-check-time experimental-corrupt-check-time cors
				distributed-tracing-address experimental-distributed-tracing-address
				distributed-tracing-instance-id experimental-distributed-tracing-instance-id
				distributed-tracing-sampling-rate experimental-distributed-tracing-sampling-rate
				distributed-tracing-service-name experimental-distributed-tracing-service-name
				downgrade-check-time experimental-downgrade-check-time
				enable-distributed-tracing experimental-enable-distributed-tracing
				enable-grpc-gateway enable-pprof
				experimental-enable-lease-checkpoint experimental-enable-lease-checkpoint-persist
				experimental-stop-grpc-service-on-defrag experimental-txn-mode-write-with-shared-buffer
				grpc-keepalive-interval grpc-keepalive-min-time grpc-keepalive-timeout host-whitelist
				initial-election-tick-advance log-format log-level max-concurrent-streams max-request-bytes
				max-snapshots max-txn-ops max-wals memory-mlock experimental-memory-mlock metrics pre-vote
				raft-read-timeout raft-write-timeout snapshot-catchup-entries experimental-snapshot-catchup-entries
				socket-reuse-address socket-reuse-port
				warning-apply-duration experimental-warning-apply-duration
				warning-unary-request-duration experimental-warning-unary-request-duration
				watch-progress-notify-interval experimental-watch-progress-notify-interval`,
		},
	}
	for name, tc := range cases {
		for flag := range strings.FieldsSeq(tc.args) {
			t.Run(name+"/"+flag, func(t *testing.T) {
				t.Parallel()
				var want []string
				for _, message := range tc.want {
					want = append(want, "spec.options.flags: Invalid value: "+message)
				}
				got := admit(t, minimal, args{object: fmt.Sprintf("spec: {options: {flags: {%q: 'true'}}}", flag)})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}
