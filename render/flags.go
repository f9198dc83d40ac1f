package render

import (
	"fmt"
	"maps"
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

// The flags of etcd 3.5, 3.6 and 3.7 that are not refused on all of them. Within a minor, no patch
// from 3.5.19, 3.6.0 and 3.7.0 on has added or removed one.
var (
	// steady have one name on all minors.
	steady = map[string]check{
		"backend-batch-interval":        isDuration,
		"backend-batch-limit":           isInt,
		"backend-bbolt-freelist-type":   isOneOf("array", "map"),
		"cors":                          isAnything,
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
		if len(refused(name)) > 0 { // said by optionsProblems, for all versions
			continue
		}
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
		return fmt.Sprintf("etcd %s has no flag %s, it came with 3.%d; %s", v, name, s.from, advice)
	}
	if !s.in(v) {
		return fmt.Sprintf("etcd %s has no flag %s, it went with 3.%d; %s", v, name, s.before, advice)
	}
	if want, ok := s.check(value); !ok {
		return fmt.Sprintf("%s must be %s, not %q", name, want, value)
	}
	return ""
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

func isDuration(value string) (string, bool) {
	_, err := time.ParseDuration(value)
	return "a duration, for example 500ms or 10m", err == nil
}

func isOneOf(values ...string) check {
	return func(value string) (string, bool) {
		return "one of " + strings.Join(values, ", "), slices.Contains(values, value)
	}
}
