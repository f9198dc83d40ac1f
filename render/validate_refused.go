package render

import (
	"regexp"
	"slices"
	"strings"
)

// refusal is a family of flags that spec.options.flags may not set, on any version of etcd.
type refusal struct {
	refuses func(flag string) bool
	message string
}

// refusals are those of the schema, in its order and with its words. Families are refused by
// pattern, so that what a later etcd adds to one is refused too.
var refusals = []refusal{
	{malformed, "spec.options.flags: write the names as etcd --help does, without the dashes in front, for example max-request-bytes"},
	{identity, "spec.options.flags: Quorate decides the identity of a member, where it keeps its data, which addresses it has and how the cluster forms; leave out name, data-dir, wal-dir, config-file, version, help and every *-urls, initial-cluster*, discovery* and proxy*"},
	{among(
		"force-new-cluster", "unsafe-no-fsync", "strict-reconfig-check", "max-learners", "feature-gates",
		"experimental-initial-corrupt-check", "experimental-compact-hash-check-enabled",
		"enable-v2", "experimental-enable-v2v3", "v2-deprecation",
	), "spec.options.flags: Quorate keeps the checks on that protect the data, and changes members by itself; leave out force-new-cluster, unsafe-no-fsync, strict-reconfig-check, max-learners, feature-gates, experimental-initial-corrupt-check, experimental-compact-hash-check-enabled, enable-v2, experimental-enable-v2v3 and v2-deprecation"},
	{among(
		"logger", "log-outputs", "enable-log-rotation", "log-rotation-config-json",
	), "spec.options.flags: members log to standard error, where kubectl logs finds it; leave out logger, log-outputs, enable-log-rotation and log-rotation-config-json (log-level can be set)"},
	{among(
		"heartbeat-interval", "election-timeout", "quota-backend-bytes",
		"auto-compaction-mode", "auto-compaction-retention", "snapshot-count",
	), "spec.options.flags: heartbeat-interval, election-timeout, quota-backend-bytes, auto-compaction-mode, auto-compaction-retention and snapshot-count have fields of their own: spec.options.heartbeatInterval, spec.options.electionTimeout, spec.options.quotaBackendSize, spec.options.autoCompaction and spec.options.snapshotCount"},
	{securityFlag.MatchString, "spec.options.flags: TLS is configured in spec.tls, and authentication is not supported yet; leave out every auth-*, cert-*, key-*, client-*, peer-*, tls-* and auto-tls, bcrypt-cost, cipher-suites, self-signed-cert-validity, trusted-ca-file and experimental-peer-skip-client-san-verification"},
}

var (
	flagName     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	securityFlag = regexp.MustCompile(`^(auth-|auto-tls|bcrypt-|cert-|cipher-|client-|experimental-peer-|key-|peer-|self-signed-|tls-|trusted-)`)
)

func malformed(flag string) bool { return len(flag) > 64 || !flagName.MatchString(flag) }

func identity(flag string) bool {
	return slices.Contains([]string{"name", "data-dir", "wal-dir", "config-file", "help", "h", "version"}, flag) ||
		strings.HasSuffix(flag, "-urls") ||
		strings.HasPrefix(flag, "initial-cluster") ||
		strings.HasPrefix(flag, "discovery") ||
		strings.HasPrefix(flag, "proxy")
}

func among(flags ...string) func(string) bool {
	return func(flag string) bool { return slices.Contains(flags, flag) }
}

// refused says why a flag may not be set; it is empty for one that may.
func refused(flag string) []string {
	var messages []string
	for _, r := range refusals {
		if r.refuses(flag) {
			messages = append(messages, r.message)
		}
	}
	return messages
}
