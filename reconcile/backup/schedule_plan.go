package backup

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// Scheduled is all that a step of a schedule is decided by.
type Scheduled struct {
	Schedule *api.EtcdBackupSchedule
	// Backups are those that it has made and that are there.
	Backups []api.EtcdBackup
	// Needed are the names of those whose snapshots a restore has yet to read.
	Needed map[string]bool
	Now    time.Time
	// Skew is how far Now is ahead of the API server's time, or behind it, where that is too much
	// to go by; else 0.
	Skew time.Duration
}

// ScheduleStep is what is done next, and what is said of it.
type ScheduleStep struct {
	// Make is the time for which an EtcdBackup is made; zero: none is.
	Make time.Time
	// Drop are the EtcdBackups that are deleted.
	Drop []api.EtcdBackup
	// Stalled is whether a person must act.
	Stalled bool
	Reason  string
	Message string
	// Next is when it is time again; zero: never.
	Next time.Time
	// Look is when to look again before that; zero: not before.
	Look time.Time
}

// PlanSchedule decides the next step.
func PlanSchedule(o Scheduled) ScheduleStep {
	s := o.Schedule
	times, zone, err := parse(s)
	if err != nil {
		return ScheduleStep{Stalled: true, Reason: api.ReasonInvalidSchedule, Message: err.Error()}
	}
	next := times.Next(o.Now.In(zone))
	if next.IsZero() {
		return ScheduleStep{
			Stalled: true, Reason: api.ReasonNeverFires,
			Message: fmt.Sprintf("spec.schedule %q names no time in the next five years: look at the day of the month and the month", s.Spec.Schedule),
		}
	}
	if s.Spec.Suspend {
		return ScheduleStep{Reason: api.ReasonSuspended, Message: "spec.suspend is true: no EtcdBackup is made, and none is deleted"}
	}
	if o.Skew != 0 {
		return skewed(o, next)
	}
	step := ScheduleStep{Reason: api.ReasonScheduled, Message: "an EtcdBackup is made when it is time", Next: next, Drop: dropped(o, zone)}
	if newest := newestOf(o.Backups); newest != nil {
		if c := stalledWith(newest); c != nil {
			step.Stalled, step.Reason, step.Message = true, c.Reason, "EtcdBackup "+newest.Name+": "+c.Message
		}
	}
	if b := undeletable(o.Backups); b != nil && !step.Stalled {
		step.Stalled, step.Reason, step.Message = true, api.ReasonDeletionFailed, "EtcdBackup "+b.Name+": "+stalledWith(b).Message
	}
	runs := active(o.Backups)
	if runs == nil {
		step.Make = due(s, times, o.Now.In(zone))
		return step
	}
	if late := missed(s, runs, times, o.Now.In(zone)).Add(tolerated); late.After(o.Now) {
		step.Look = late
	} else if !step.Stalled {
		step.Stalled, step.Reason = true, api.ReasonStillRuns
		step.Message = "EtcdBackup " + runs.Name + " has not ended, and another one has been due for more than an hour: look at its conditions and its Job, or delete it"
	}
	return step
}

// skewed: what is made or deleted by a wrong clock is not taken back when the clock is right.
func skewed(o Scheduled, next time.Time) ScheduleStep {
	way := "ahead of"
	if o.Skew < 0 {
		way = "behind"
	}
	return ScheduleStep{
		Stalled: true, Reason: api.ReasonClockSkew, Next: next, Look: o.Now.Add(betweenRefusals),
		Message: "the clock of the operator is more than an hour " + way + " that of the API server: no EtcdBackup is made, and none is deleted. Set the clock of the operator's node",
	}
}

// stalledWith is what keeps an EtcdBackup, where a person must act; else nil.
func stalledWith(b *api.EtcdBackup) *metav1.Condition {
	if !isStalled(b) {
		return nil
	}
	return meta.FindStatusCondition(b.Status.Conditions, api.ConditionStalled)
}

// undeletable is an EtcdBackup that is to be deleted, and cannot be; nil where there is none.
func undeletable(backups []api.EtcdBackup) *api.EtcdBackup {
	for i := range backups {
		if b := &backups[i]; !b.DeletionTimestamp.IsZero() && isStalled(b) {
			return b
		}
	}
	return nil
}

// tolerated is how long a time of a schedule may wait for the EtcdBackup of an earlier one, before
// that is told.
const tolerated = time.Hour

// missed is the first time for which an EtcdBackup could not be made, or cannot be, while that one
// runs.
func missed(s *api.EtcdBackupSchedule, runs *api.EtcdBackup, times cron.Schedule, now time.Time) time.Time {
	since := runs.CreationTimestamp.Time
	if last := lastMade(s, now); last != nil && last.After(since) {
		since = last.Time
	}
	return times.Next(since.In(now.Location()))
}

// lastMade is the last time for which an EtcdBackup was made; nil where that is not known. An
// operator whose clock was ahead may have written down a time that is yet to come.
func lastMade(s *api.EtcdBackupSchedule, now time.Time) *metav1.Time {
	if made := s.Status.LastScheduleTime; made != nil && !made.After(now) {
		return made
	}
	return nil
}

// parse what the schema has let pass. A duration such as @every 1h depends on when the operator was
// started, and is none.
func parse(s *api.EtcdBackupSchedule) (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(s.Spec.TimeZone) // UTC where it is empty
	if err != nil {
		return nil, nil, fmt.Errorf("spec.timeZone %q is not known: write a name of the IANA database, for example Europe/Berlin", s.Spec.TimeZone)
	}
	times, err := cron.ParseStandard(s.Spec.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.schedule: %w: write five fields, minute, hour, day of the month, month, day of the week, for example 0 */6 * * *", err)
	}
	if _, ok := times.(*cron.SpecSchedule); !ok {
		return nil, nil, fmt.Errorf("spec.schedule %q: write five fields, minute, hour, day of the month, month, day of the week, for example 0 */6 * * *", s.Spec.Schedule)
	}
	return byTheClock{times}, zone, nil
}

// byTheClock are the times of a schedule by the clocks of a zone: all that are, also on a day that
// begins without a midnight, which package cron takes for the day before, and none that is not. A
// time that comes twice counts twice.
type byTheClock struct{ times cron.Schedule }

// Next looks at one span after the other in which the clocks are not set.
func (b byTheClock) Next(t time.Time) time.Time {
	zone, span, last := t.Location(), t, t.Year()+5 // as far as package cron looks
	for span.Year() <= last {
		_, offset := span.Zone()
		next := b.times.Next(t.In(time.FixedZone("", offset)))
		_, end := span.ZoneBounds()
		if next.IsZero() || end.IsZero() || next.Before(end) {
			return next.In(zone)
		}
		span, t = end, end.Add(-1) // the end itself is in the next span
	}
	return time.Time{}
}

// lookBack are how far it is looked for a time that was missed: little for a schedule that is due
// often.
var lookBack = []time.Duration{time.Hour, 24 * time.Hour, 31 * 24 * time.Hour, 366 * 24 * time.Hour}

// due is the last time that has come since the one for which an EtcdBackup was made, and for which
// it is not too late; zero where there is none.
func due(s *api.EtcdBackupSchedule, times cron.Schedule, now time.Time) time.Time {
	since := s.CreationTimestamp.Time
	if made := lastMade(s, now); made != nil {
		since = made.Time
	}
	if s.Spec.StartingDeadline != nil {
		late, err := time.ParseDuration(string(*s.Spec.StartingDeadline))
		if earliest := now.Add(-late); err == nil && earliest.After(since) {
			since = earliest
		}
	}
	return last(times, since, now)
}

// last is the last time that has come since then; zero where there is none.
func last(times cron.Schedule, since, now time.Time) time.Time {
	for _, far := range lookBack {
		from := now.Add(-far)
		if from.Before(since) {
			from = since.In(now.Location())
		}
		var found time.Time
		for at := times.Next(from); !at.IsZero() && !at.After(now); at = times.Next(at) {
			found = at
		}
		if !found.IsZero() {
			return found
		}
	}
	return time.Time{}
}

// active is an EtcdBackup that has not ended, or is being deleted while it runs. One that is being
// deleted, and cannot be before a person acts, is not waited for.
func active(backups []api.EtcdBackup) *api.EtcdBackup {
	for i := range backups {
		if b := &backups[i]; !settled(b) && (b.DeletionTimestamp.IsZero() || !isStalled(b)) {
			return b
		}
	}
	return nil
}

// newestOf is the one that was made last.
func newestOf(backups []api.EtcdBackup) *api.EtcdBackup {
	var newest *api.EtcdBackup
	for i := range backups {
		if b := &backups[i]; newest == nil || newest.CreationTimestamp.Before(&b.CreationTimestamp) {
			newest = b
		}
	}
	return newest
}
