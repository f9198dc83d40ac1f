package render

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// check tells what a value must be, and whether it is.
type check func(value string) (want string, ok bool)

// setting is a flag that spec.options.flags may set.
type setting struct {
	check check
	// from and before are the minors of etcd 3 that bound its life; 0: older, or still there.
	from, before uint
	// other is what the same setting is called where this name is not known.
	other string
}

// The flags of etcd 3.5, 3.6 and 3.7 that the schema does not refuse. Within a minor, no patch
// from 3.5.19, 3.6.0 and 3.7.0 on has added or removed one.
var (
	// steady have one name on all minors.
	steady = map[string]check{
		"backend-batch-interval":        isDuration,
		"backend-batch-limit":           isInt,
		"backend-bbolt-freelist-type":   isOneOf("array", "map"),
		"cors":                          isOrigins,
		"enable-grpc-gateway":           isBool,
		"enable-pprof":                  isBool,
		"grpc-keepalive-interval":       isDuration,
		"grpc-keepalive-min-time":       isDuration,
		"grpc-keepalive-timeout":        isDuration,
		"host-whitelist":                isAnything,
		"initial-election-tick-advance": isBool,
		"log-level":                     isOneOf("debug", "info", "warn", "error", "panic", "fatal"),
		"max-concurrent-streams":        isUint32,
		"max-request-bytes":             isUint,
		"max-snapshots":                 isUint,
		"max-txn-ops":                   isUint,
		"max-wals":                      isUint,
		"metrics":                       isOneOf("basic", "extensive"),
		"pre-vote":                      isBool,
		"raft-read-timeout":             isDuration,
		"raft-write-timeout":            isDuration,
		"socket-reuse-address":          isBool,
		"socket-reuse-port":             isBool,
	}

	// renamed got their names with 3.6. Before, and on 3.6 still, they are also known with
	// experimental- in front; 3.7 does not start with those.
	renamed = map[string]check{
		"bootstrap-defrag-threshold-megabytes": isUint,
		"compact-hash-check-time":              isDuration,
		"compaction-batch-limit":               isInt,
		"compaction-sleep-interval":            isDuration,
		"corrupt-check-time":                   isDuration,
		"distributed-tracing-address":          isAnything,
		"distributed-tracing-instance-id":      isAnything,
		"distributed-tracing-sampling-rate":    isInt,
		"distributed-tracing-service-name":     isAnything,
		"downgrade-check-time":                 isDuration,
		"enable-distributed-tracing":           isBool,
		"memory-mlock":                         isBool,
		"snapshot-catchup-entries":             isUint,
		"warning-apply-duration":               isDuration,
		"watch-progress-notify-interval":       isDuration,
	}

	// passing came or went without another name. Those that went with 3.7 became feature gates.
	passing = map[string]setting{
		"experimental-enable-lease-checkpoint":           {check: isBool, before: 7},
		"experimental-enable-lease-checkpoint-persist":   {check: isBool, before: 7},
		"experimental-stop-grpc-service-on-defrag":       {check: isBool, before: 7},
		"experimental-txn-mode-write-with-shared-buffer": {check: isBool, before: 7},
		"experimental-warning-unary-request-duration":    {check: isDuration, from: 6, before: 7, other: "warning-unary-request-duration"},
		"log-format":                     {check: isOneOf("json", "console"), from: 6},
		"warning-unary-request-duration": {check: isDuration, from: 6},
	}
)

// useful are the flags of which etcd takes values with which it ends, lives on and does not serve,
// keeps a processor busy, or serves only while there is little to do, by their newest names:
// docs/options.md has what it does with the ends of each flag. What members have served with stays
// as it is.
var useful = map[string]check{
	"backend-batch-interval":            isPause(time.Millisecond),
	"compact-hash-check-time":           isTime(time.Millisecond),
	"compaction-batch-limit":            isBetween(0, 100_000), // 0 is etcd's own; less than that never ends
	"compaction-sleep-interval":         isUpTo(time.Minute),   // between two batches
	"corrupt-check-time":                isPause(time.Millisecond),
	"downgrade-check-time":              isPause(time.Millisecond),
	"distributed-tracing-sampling-rate": isBetween(0, 1_000_000), // of a million; with tracing alone
	"max-concurrent-streams":            isStreams,
	"max-request-bytes":                 isBetween(leastRequest, math.MaxUint32),
	"max-snapshots":                     isBetween(0, math.MaxInt64),
	"max-txn-ops":                       isBetween(1, math.MaxInt64),
	"snapshot-catchup-entries":          isBetween(0, 1_000_000), // all are in memory; as spec.options.snapshotCount
	// etcd adds up to a tenth, and ends at the first watch where that is too much for a time.
	"watch-progress-notify-interval": isUpTo(100 * 365 * 24 * time.Hour),
}

// leastRequest is what max-request-bytes is at least. A member writes its name and its address for
// clients first, which takes up to 300 bytes, and serves no client before.
const leastRequest = 512

const experimental = "experimental-"

// find looks a flag up under the names it has on any minor.
func find(name string) (setting, bool) {
	if check, ok := steady[name]; ok {
		return setting{check: check}, true
	}
	if check, ok := renamed[name]; ok {
		return setting{check: check, from: 6, other: experimental + name}, true
	}
	if later, ok := strings.CutPrefix(name, experimental); ok && renamed[later] != nil {
		return setting{check: renamed[later], before: 7, other: later}, true
	}
	s, ok := passing[name]
	return s, ok
}

// flagProblems says what is wrong with further flags for one version of etcd, in the order of their
// names.
func flagProblems(flags map[string]string, v *version.Version) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if problem := problemOn(v, name, flags[name]); problem != "" {
			problems = append(problems, "spec.options.flags: "+problem)
		}
	}
	return problems
}

func problemOn(v *version.Version, name, value string) string {
	s, ok := find(name)
	if !ok {
		return fmt.Sprintf("etcd %s has no flag %s; leave it out", v, name)
	}
	advice := "leave it out"
	if other, ok := find(s.other); ok && other.in(v) {
		advice = "write " + s.other
	}
	if v.Minor() < s.from {
		return fmt.Sprintf("etcd %s has no flag %s, it was added in 3.%d; %s", v, name, s.from, advice)
	}
	if !s.in(v) {
		return fmt.Sprintf("etcd %s has no flag %s, it was removed in 3.%d; %s", v, name, s.before, advice)
	}
	if want, ok := s.check(value); !ok {
		return fmt.Sprintf("%s must be %s, not %q", name, want, value)
	}
	return ""
}

// uselessProblems says which flags have values that no member is to be given, but for those that
// members have served with.
func uselessProblems(flags, served map[string]string) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		value := flags[name]
		check, ok := useful[strings.TrimPrefix(name, experimental)]
		s, known := find(name)
		if before, had := served[name]; !ok || !known || had && before == value {
			continue
		}
		if _, parsed := s.check(value); !parsed { // said by flagProblems
			continue
		}
		if want, ok := check(value); !ok {
			problems = append(problems, fmt.Sprintf("spec.options.flags: %s must be %s, not %q: etcd can hang, exit or use a whole cpu with that (docs/options.md)", name, want, value))
		}
	}
	return problems
}

// nameOn is what a flag of spec.version is called on the version of etcd that a member runs for
// now; false where that version has no such setting.
func nameOn(v *version.Version, name string) (string, bool) {
	s, known := find(name)
	if !known || s.in(v) {
		return name, true
	}
	other, ok := find(s.other)
	return s.other, ok && other.in(v)
}

func (s setting) in(v *version.Version) bool {
	return v.Minor() >= s.from && (s.before == 0 || v.Minor() < s.before)
}

// The checks parse as etcd does.

func isAnything(string) (string, bool) { return "", true }

// isOrigins is for a list of origins that a browser may come from. etcd wants their ports too, and
// what it says where one is missing is lost above its usage.
func isOrigins(value string) (string, bool) {
	const want = "* or URLs with a port, separated by commas, for example https://example.com:443"
	if value == "*" {
		return want, true
	}
	for origin := range strings.SplitSeq(value, ",") {
		u, err := url.Parse(strings.TrimSpace(origin))
		if err != nil || u.Path != "" || u.Scheme != "http" && u.Scheme != "https" {
			return want, false
		}
		if _, _, err := net.SplitHostPort(u.Host); err != nil {
			return want, false
		}
	}
	return want, true
}

func isBool(value string) (string, bool) {
	_, err := strconv.ParseBool(value)
	return "true or false", err == nil
}

func isInt(value string) (string, bool) {
	_, err := strconv.ParseInt(value, 0, 64)
	return "an integer", err == nil
}

func isUint(value string) (string, bool) {
	_, err := strconv.ParseUint(value, 0, 64)
	return "an integer of at least 0", err == nil
}

func isUint32(value string) (string, bool) {
	_, err := strconv.ParseUint(value, 0, 32)
	return "an integer from 0 to 4294967295", err == nil
}

// isBetween is for numbers that etcd goes on to use as signed ones.
func isBetween(least, most uint64) check {
	return func(value string) (string, bool) {
		n, err := strconv.ParseUint(value, 0, 64)
		return fmt.Sprintf("an integer from %d to %d", least, most), err == nil && n >= least && n <= most
	}
}

// isStreams: of one connection. A watch takes one, leases that are kept alive take one, and both
// are to leave one.
func isStreams(value string) (string, bool) {
	n, err := strconv.ParseUint(value, 0, 32)
	return "0, for no limit, or an integer from 3 to 4294967295", err == nil && (n == 0 || n >= 3)
}

func isDuration(value string) (string, bool) {
	_, err := time.ParseDuration(value)
	return "a duration, for example 500ms or 10m", err == nil
}

// isTime is for what etcd does each time that so much has passed.
func isTime(least time.Duration) check {
	return func(value string) (string, bool) {
		span, err := time.ParseDuration(value)
		return fmt.Sprintf("a duration of at least %s", least), err == nil && span >= least
	}
}

// isPause is isTime for what etcd has a default for, or switches off, with 0.
func isPause(least time.Duration) check {
	return func(value string) (string, bool) {
		span, err := time.ParseDuration(value)
		return fmt.Sprintf("0s, or a duration of at least %s", least), err == nil && (span == 0 || span >= least)
	}
}

func isUpTo(most time.Duration) check {
	return func(value string) (string, bool) {
		span, err := time.ParseDuration(value)
		return fmt.Sprintf("a duration of at most %s", most), err == nil && span <= most
	}
}

func isOneOf(values ...string) check {
	return func(value string) (string, bool) {
		return "one of " + strings.Join(values, ", "), slices.Contains(values, value)
	}
}
