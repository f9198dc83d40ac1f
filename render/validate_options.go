package render

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	api "quorate.dev/api/v1alpha1"
)

var (
	durationForm  = regexp.MustCompile(`^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$`)
	revisionsForm = regexp.MustCompile(`^[1-9][0-9]*$`)
)

// etcd's own, and those of the API.
const (
	defaultHeartbeat = 100 * time.Millisecond
	defaultElection  = time.Second
)

// optionsProblems says what is wrong with the options on every version of etcd.
func optionsProblems(o *api.Options) []string {
	if o == nil {
		return nil
	}
	var problems []string
	heartbeat, ok := duration(o.HeartbeatInterval, defaultHeartbeat, time.Millisecond, 10*time.Second)
	if !ok {
		problems = append(problems, "spec.options.heartbeatInterval must be a duration of whole milliseconds from 1ms to 10s, for example 100ms")
	}
	election, ok := duration(o.ElectionTimeout, defaultElection, 10*time.Millisecond, 50*time.Second)
	if !ok {
		problems = append(problems, "spec.options.electionTimeout must be a duration of whole milliseconds from 10ms to 50s, for example 1s")
	}
	if len(problems) == 0 && election < 5*heartbeat { // said only of what is well-formed
		problems = append(problems, "spec.options.electionTimeout (default 1s) must be at least five times spec.options.heartbeatInterval (default 100ms): etcd does not start otherwise; raise the one or lower the other")
	}
	if n := o.SnapshotCount; n != nil && (*n < 100 || *n > 1000000) {
		problems = append(problems, "spec.options.snapshotCount must be from 100 to 1000000")
	}
	if a := o.AutoCompaction; a != nil && !validCompaction(a) {
		problems = append(problems, "spec.options.autoCompaction.retention: with mode Periodic write a duration of at least 1m, for example 8h or 1h30m; with mode Revision a number of revisions, for example 1000")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Flags)) {
		problems = append(problems, refused(name)...)
		if len(o.Flags[name]) > 1024 {
			problems = append(problems, "spec.options.flags: a value has at most 1024 characters")
		}
	}
	return problems
}

func validCompaction(a *api.AutoCompaction) bool {
	switch a.Mode {
	case api.CompactionPeriodic:
		kept := api.Duration(a.Retention)
		_, ok := duration(&kept, 0, time.Minute, math.MaxInt64)
		return ok
	case api.CompactionRevision:
		return revisionsForm.MatchString(a.Retention)
	default:
		return false
	}
}

// duration reads a duration of the API, or takes the default; false where it is malformed or out of
// bounds.
func duration(d *api.Duration, otherwise, least, most time.Duration) (time.Duration, bool) {
	if d == nil {
		return otherwise, true
	}
	if !durationForm.MatchString(string(*d)) {
		return 0, false
	}
	span, err := time.ParseDuration(string(*d))
	return span, err == nil && span >= least && span <= most
}
