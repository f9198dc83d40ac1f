package backup

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "quorate.dev/api/v1alpha1"
)

// nightly is a schedule that was created at 07:50, and is looked at at 09:30.
func nightly() Scheduled {
	return Scheduled{
		Schedule: &api.EtcdBackupSchedule{
			ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", Generation: 1, CreationTimestamp: metav1.NewTime(born)},
			Spec:       api.EtcdBackupScheduleSpec{ClusterRef: api.ClusterReference{Name: "db"}, Schedule: "0 * * * *"},
		},
		Now: clock(9, 30),
	}
}

func clock(hour, minute int) time.Time { return time.Date(2026, 11, 25, hour, minute, 0, 0, time.UTC) }

// good is an EtcdBackup that was taken and verified then.
func good(name string, at time.Time) api.EtcdBackup {
	return api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)},
		Status:     api.EtcdBackupStatus{ClusterID: "cd", SHA256: "6b86", TakenAt: instant(at), VerifiedAt: instant(at)},
	}
}

// takenAt is the same by the clock of a node.
func takenAt(b api.EtcdBackup, at time.Time) api.EtcdBackup {
	b.Status.TakenAt = instant(at)
	return b
}

// bad is one that was given up.
func bad(name string, at time.Time) api.EtcdBackup {
	b := api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}}
	b.Status.ClusterID = "cd"
	b.Status.Failure = &api.BackupFailure{Reason: "StoreFull", Message: "full"}
	b.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: "StoreFull", Message: "full"}}
	return b
}

// started is one that runs.
func started(name string, at time.Time) api.EtcdBackup {
	return api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at)}, Status: api.EtcdBackupStatus{Attempt: 1}}
}

func TestPlanSchedule(t *testing.T) {
	t.Parallel()
	const makes = "an EtcdBackup is made when it is time"
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   func(*Scheduled)
		want   ScheduleStep
	}{
		"Due": {
			reason: "Of two times that have come the last is made up for",
			args:   func(*Scheduled) {},
			want:   ScheduleStep{Make: clock(9, 0), Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
		"NotYet": {
			reason: "What came before the schedule is none of its times",
			args:   func(o *Scheduled) { o.Now = clock(7, 55) },
			want:   ScheduleStep{Reason: api.ReasonScheduled, Message: makes, Next: clock(8, 0)},
		},
		"Made": {
			reason: "One time is made one EtcdBackup of",
			args:   func(o *Scheduled) { o.Schedule.Status.LastScheduleTime = instant(clock(9, 0)) },
			want:   ScheduleStep{Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
		"MadeInTheFuture": {
			reason: "The clock of an operator was ahead: what it wrote down does not end the backups for a year",
			args:   func(o *Scheduled) { o.Schedule.Status.LastScheduleTime = instant(clock(9, 0).AddDate(1, 0, 0)) },
			want:   ScheduleStep{Make: clock(9, 0), Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
		"RunsTooLongInTheFuture": {
			reason: "Nor does it hide that one has not ended",
			args: func(o *Scheduled) {
				o.Now, o.Backups = clock(10, 0), []api.EtcdBackup{started("a", clock(8, 0))}
				o.Schedule.Status.LastScheduleTime = instant(clock(9, 0).AddDate(1, 0, 0))
			},
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonStillRuns, Next: clock(11, 0),
				Message: "EtcdBackup a has not ended, and another one has been due for more than an hour: look at its conditions and its Job, or delete it",
			},
		},
		"ClockAhead": {
			reason: "By a clock that is a year ahead all are too old, and a time would be written down that is yet to come",
			args: func(o *Scheduled) {
				o.Schedule.Spec.Retention = &api.BackupRetention{MaxAge: new(api.Duration("720h"))}
				o.Backups = []api.EtcdBackup{good("a", clock(7, 0)), good("b", clock(8, 0))}
				o.Now, o.Skew = clock(9, 30).AddDate(1, 0, 0), 365*24*time.Hour
			},
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonClockSkew, Next: clock(10, 0).AddDate(1, 0, 0), Look: clock(9, 31).AddDate(1, 0, 0),
				Message: "the clock of the operator is more than an hour ahead of that of the API server: no EtcdBackup is made, and none is deleted. Set the clock of the operator's node",
			},
		},
		"ClockBehind": {
			reason: "It is as wrong",
			args:   func(o *Scheduled) { o.Skew = -2 * time.Hour },
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonClockSkew, Next: clock(10, 0), Look: clock(9, 31),
				Message: "the clock of the operator is more than an hour behind that of the API server: no EtcdBackup is made, and none is deleted. Set the clock of the operator's node",
			},
		},
		"OnTheMinute": {
			reason: "It is made at its time, not after it",
			args:   func(o *Scheduled) { o.Now, o.Schedule.Status.LastScheduleTime = clock(10, 0), instant(clock(9, 0)) },
			want:   ScheduleStep{Make: clock(10, 0), Reason: api.ReasonScheduled, Message: makes, Next: clock(11, 0)},
		},
		"StillRuns": {
			reason: "Only one at a time, and an hour is waited before that is told",
			args:   func(o *Scheduled) { o.Backups = []api.EtcdBackup{started("a", clock(8, 0))} },
			want:   ScheduleStep{Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0), Look: clock(10, 0)},
		},
		"RunsTooLong": {
			reason: "The one that should have been made at 9:00 has waited for an hour",
			args: func(o *Scheduled) {
				o.Now, o.Backups = clock(10, 0), []api.EtcdBackup{started("a", clock(8, 0))}
				o.Schedule.Status.LastScheduleTime = instant(clock(8, 0))
			},
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonStillRuns, Next: clock(11, 0),
				Message: "EtcdBackup a has not ended, and another one has been due for more than an hour: look at its conditions and its Job, or delete it",
			},
		},
		"RunsTooLongStalled": {
			reason: "What it says itself is told instead",
			args: func(o *Scheduled) {
				b := started("a", clock(8, 0))
				b.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonPodPending, Message: "no Secret"}}
				o.Now, o.Backups = clock(12, 0), []api.EtcdBackup{b}
			},
			want: ScheduleStep{Stalled: true, Reason: api.ReasonPodPending, Message: "EtcdBackup a: no Secret", Next: clock(13, 0)},
		},
		"RanLong": {
			reason: "When the first has ended the next one follows, late",
			args: func(o *Scheduled) {
				o.Backups = []api.EtcdBackup{good("a", clock(8, 0))}
				o.Schedule.Status.LastScheduleTime = instant(clock(8, 0))
			},
			want: ScheduleStep{Make: clock(9, 0), Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
		"TooLate": {
			reason: "After the deadline a time is left out",
			args:   func(o *Scheduled) { o.Schedule.Spec.StartingDeadline = new(api.Duration("29m")) },
			want:   ScheduleStep{Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
		"InTime": {
			reason: "Up to the deadline it is made",
			args:   func(o *Scheduled) { o.Schedule.Spec.StartingDeadline = new(api.Duration("31m")) },
			want:   ScheduleStep{Make: clock(9, 0), Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
		"YearsAgo": {
			reason: "An operator that was away for long makes one, and counts no minute twice",
			args: func(o *Scheduled) {
				o.Schedule.Spec.Schedule, o.Schedule.CreationTimestamp = "* * * * *", metav1.NewTime(born.AddDate(-20, 0, 0))
			},
			want: ScheduleStep{Make: clock(9, 30), Reason: api.ReasonScheduled, Message: makes, Next: clock(9, 31)},
		},
		"Seldom": {
			reason: "A time that was missed months ago is found",
			args: func(o *Scheduled) {
				o.Schedule.Spec.Schedule, o.Schedule.CreationTimestamp = "0 0 1 3 *", metav1.NewTime(born.AddDate(-1, 0, 0))
			},
			want: ScheduleStep{
				Make: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Reason: api.ReasonScheduled, Message: makes,
				Next: time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC),
			},
		},
		"TimeZone": {
			reason: "Ten o'clock in Berlin is nine o'clock in winter",
			args: func(o *Scheduled) {
				o.Schedule.Spec.Schedule, o.Schedule.Spec.TimeZone = "0 10 * * *", "Europe/Berlin"
			},
			want: ScheduleStep{Make: clock(9, 0).In(berlin), Reason: api.ReasonScheduled, Message: makes, Next: clock(9, 0).AddDate(0, 0, 1).In(berlin)},
		},
		"Suspended": {
			reason: "Nothing is made, and nothing is deleted",
			args: func(o *Scheduled) {
				o.Schedule.Spec.Suspend, o.Schedule.Spec.Retention = true, &api.BackupRetention{Last: 1}
				o.Backups = []api.EtcdBackup{good("a", clock(7, 0)), good("b", clock(8, 0))}
			},
			want: ScheduleStep{Reason: api.ReasonSuspended, Message: "spec.suspend is true: no EtcdBackup is made, and none is deleted"},
		},
		"NeverFires": {
			reason: "There is no 31 February",
			args:   func(o *Scheduled) { o.Schedule.Spec.Schedule = "0 0 31 2 *" },
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonNeverFires,
				Message: `spec.schedule "0 0 31 2 *" names no time in the next five years: look at the day of the month and the month`,
			},
		},
		"NoCron": {
			reason: "The schema counts fields, and does not read them",
			args:   func(o *Scheduled) { o.Schedule.Spec.Schedule = "61 * * * *" },
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonInvalidSchedule,
				Message: "spec.schedule: end of range (61) above maximum (59): 61: write five fields, minute, hour, day of the month, month, day of the week, for example 0 */6 * * *",
			},
		},
		"NoZone": {
			reason: "The schema does not know the cities",
			args:   func(o *Scheduled) { o.Schedule.Spec.TimeZone = "Europe/Atlantis" },
			want: ScheduleStep{
				Stalled: true, Reason: api.ReasonInvalidSchedule,
				Message: `spec.timeZone "Europe/Atlantis" is not known: write a name of the IANA database, for example Europe/Berlin`,
			},
		},
		"LastFailed": {
			reason: "It shows on the schedule, and the next one is made all the same",
			args:   func(o *Scheduled) { o.Backups = []api.EtcdBackup{good("a", clock(7, 0)), bad("b", clock(8, 0))} },
			want:   ScheduleStep{Make: clock(9, 0), Stalled: true, Reason: "StoreFull", Message: "EtcdBackup b: full", Next: clock(10, 0)},
		},
		"CannotDelete": {
			reason: "The store fills, and no person looks at each EtcdBackup",
			args: func(o *Scheduled) {
				b := good("a", clock(7, 0))
				b.DeletionTimestamp = instant(clock(9, 0))
				b.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonDeletionFailed, Message: "refused"}}
				o.Backups = []api.EtcdBackup{b, good("b", clock(8, 0))}
			},
			want: ScheduleStep{Make: clock(9, 0), Stalled: true, Reason: api.ReasonDeletionFailed, Message: "EtcdBackup a: refused", Next: clock(10, 0)},
		},
		"HangsAndGoes": {
			reason: "It was deleted while its Pod hangs on a node that is off: nothing goes on until a person acts, and the next one is made",
			args: func(o *Scheduled) {
				b := started("a", clock(7, 0))
				b.DeletionTimestamp = instant(clock(9, 0))
				b.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonTerminating, Message: "Pod a-x hangs"}}
				o.Backups = []api.EtcdBackup{b}
			},
			want: ScheduleStep{Make: clock(9, 0), Stalled: true, Reason: api.ReasonTerminating, Message: "EtcdBackup a: Pod a-x hangs", Next: clock(10, 0)},
		},
		"Goes": {
			reason: "It was deleted while it runs: it is stopped first",
			args: func(o *Scheduled) {
				b := started("a", clock(8, 0))
				b.DeletionTimestamp = instant(clock(9, 0))
				o.Backups = []api.EtcdBackup{b}
			},
			want: ScheduleStep{Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0), Look: clock(10, 0)},
		},
		"FailedBefore": {
			reason: "What was mended is over",
			args:   func(o *Scheduled) { o.Backups = []api.EtcdBackup{bad("a", clock(7, 0)), good("b", clock(8, 0))} },
			want:   ScheduleStep{Make: clock(9, 0), Reason: api.ReasonScheduled, Message: makes, Next: clock(10, 0)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := nightly()
			tc.args(&o)
			if diff := cmp.Diff(tc.want, PlanSchedule(o)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	days := func(n int) time.Time { return clock(9, 0).AddDate(0, 0, -n) }
	cases := map[string]struct {
		reason string
		rules  *api.BackupRetention
		args   []api.EtcdBackup
		needed map[string]bool
		want   []string
	}{
		"None": {
			reason: "Without a retention all stay",
			args:   []api.EtcdBackup{good("a", days(900)), good("b", days(0))},
		},
		"Last": {
			reason: "Those that are given up do not count, and go when a newer one is good",
			rules:  &api.BackupRetention{Last: 2},
			args:   []api.EtcdBackup{good("a", days(4)), good("b", days(3)), bad("c", days(2)), good("d", days(1))},
			want:   []string{"c", "a"},
		},
		"LastGood": {
			reason: "The last good one stays, however old it is, and what has failed since tells why",
			rules:  &api.BackupRetention{MaxAge: new(api.Duration("24h"))},
			args:   []api.EtcdBackup{good("a", days(40)), good("b", days(30)), bad("c", days(20)), bad("d", days(1))},
			want:   []string{"a"},
		},
		"Weekly": {
			reason: "The newest of each week: 25 November 2026 is a Wednesday",
			rules:  &api.BackupRetention{Weekly: 2},
			args:   []api.EtcdBackup{good("a", days(10)), good("b", days(3)), good("c", days(2)), good("d", days(0))},
			want:   []string{"c", "a"},
		},
		"Monthly": {
			reason: "The newest of each month, and one of another week does not count",
			rules:  &api.BackupRetention{Monthly: 2},
			args:   []api.EtcdBackup{good("a", days(30)), good("b", days(9)), good("c", days(0))},
			want:   []string{"b"},
		},
		"NoneGood": {
			reason: "Nothing is deleted before one is good",
			rules:  &api.BackupRetention{Last: 1},
			args:   []api.EtcdBackup{bad("a", days(3)), bad("b", days(2))},
		},
		"Running": {
			reason: "One that runs, and one that is being deleted already, are left alone",
			rules:  &api.BackupRetention{Last: 1},
			args: func() []api.EtcdBackup {
				going := good("b", days(2))
				going.DeletionTimestamp = instant(days(0))
				return []api.EtcdBackup{started("a", days(3)), going, good("c", days(1))}
			}(),
		},
		"FewAtOnce": {
			reason: "Each deletion has a Job: three at a time, and one is under way",
			rules:  &api.BackupRetention{Last: 1},
			args: func() []api.EtcdBackup {
				going := good("a", days(9))
				going.DeletionTimestamp = instant(days(0))
				return []api.EtcdBackup{going, good("b", days(8)), good("c", days(7)), good("d", days(6)), good("e", days(5))}
			}(),
			want: []string{"d", "c"},
		},
		"Needed": {
			reason: "A restore has yet to read one; it counts like the others, and holds up no other deletion",
			rules:  &api.BackupRetention{Last: 2},
			args: []api.EtcdBackup{
				good("a", days(9)), good("b", days(8)), good("c", days(7)), good("d", days(6)), good("e", days(5)), good("f", days(4)),
			},
			needed: map[string]bool{"d": true, "e": true},
			want:   []string{"c", "b", "a"},
		},
		"Daily": {
			reason: "A day begins in the time zone of the schedule",
			rules:  &api.BackupRetention{Daily: 2},
			args: []api.EtcdBackup{
				good("a", time.Date(2026, 11, 23, 22, 30, 0, 0, time.UTC)), // the 23rd in Berlin too
				good("b", time.Date(2026, 11, 23, 23, 30, 0, 0, time.UTC)), // the 24th
				good("c", clock(8, 0)),
			},
			want: []string{"a"},
		},
		"NodeAhead": {
			reason: "Three were taken on a node whose clock is a month ahead: the one that was made last is the newest all the same",
			rules:  &api.BackupRetention{Last: 2},
			args: []api.EtcdBackup{
				takenAt(good("a", days(4)), days(-26)), takenAt(good("b", days(3)), days(-27)), takenAt(good("c", days(2)), days(-28)), good("d", days(1)),
			},
			want: []string{"b", "a"},
		},
		"SameSecond": {
			reason: "The API server says of both that they were made in the same second: the name has the time that each is for",
			rules:  &api.BackupRetention{Last: 1},
			args:   []api.EtcdBackup{takenAt(good("nightly-1", days(1)), days(-1)), takenAt(good("nightly-2", days(1)), days(-1))},
			want:   []string{"nightly-1"},
		},
		"NodeALittleAhead": {
			reason: "The clock is two hours ahead, and what it says is over by now",
			rules:  &api.BackupRetention{Last: 1},
			args:   []api.EtcdBackup{takenAt(good("a", clock(6, 0)), clock(8, 0)), good("b", clock(7, 0))},
			want:   []string{"a"},
		},
		"NodeBehind": {
			reason: "The newest was taken on a node whose clock is a month behind",
			rules:  &api.BackupRetention{MaxAge: new(api.Duration("240h"))},
			args:   []api.EtcdBackup{good("a", days(20)), good("b", days(2)), takenAt(good("c", days(1)), days(31))},
			want:   []string{"a"},
		},
		"TakenLate": {
			reason: "It waited for its cluster: how old a snapshot is counts from when it was taken",
			rules:  &api.BackupRetention{MaxAge: new(api.Duration("240h"))},
			args:   []api.EtcdBackup{takenAt(good("a", days(12)), days(9)), good("b", days(1))},
		},
		"OtherCluster": {
			reason: "After a restore the cluster is another one: the last good one of the first stays too",
			rules:  &api.BackupRetention{Last: 1},
			args: func() []api.EtcdBackup {
				b := good("b", days(1))
				b.Status.ClusterID = "ef"
				return []api.EtcdBackup{good("a", days(2)), b}
			}(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := nightly()
			o.Backups, o.Schedule.Spec.Retention, o.Schedule.Spec.TimeZone = tc.args, tc.rules, "Europe/Berlin"
			o.Needed = tc.needed
			var got []string
			for _, b := range PlanSchedule(o).Drop {
				got = append(got, b.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestScheduleStatus(t *testing.T) {
	t.Parallel()
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1}
	}
	const (
		makes = "an EtcdBackup is made when it is time"
		never = `spec.schedule "0 0 31 2 *" names no time in the next five years: look at the day of the month and the month`
	)
	cases := map[string]struct {
		reason  string
		args    func(*Scheduled)
		want    api.EtcdBackupScheduleStatus
		current kstatus.Status
	}{
		"Made": {
			reason: "What is made now is active, and written down",
			args:   func(*Scheduled) {},
			want: api.EtcdBackupScheduleStatus{
				ObservedGeneration: 1, Active: "nightly-29926620", LastScheduleTime: instant(clock(9, 0)), NextScheduleTime: instant(clock(10, 0)),
				Conditions: []metav1.Condition{condition(api.ConditionReady, metav1.ConditionTrue, api.ReasonScheduled, makes)},
			},
			current: kstatus.CurrentStatus,
		},
		"Ended": {
			reason: "The newest good one is told, whichever is listed last",
			args: func(o *Scheduled) {
				o.Schedule.Status.LastScheduleTime = instant(clock(9, 0))
				o.Backups = []api.EtcdBackup{good("b", clock(9, 0)), good("a", clock(8, 0))}
			},
			want: api.EtcdBackupScheduleStatus{
				ObservedGeneration: 1, LastScheduleTime: instant(clock(9, 0)), LastSuccessfulTime: instant(clock(9, 0)), NextScheduleTime: instant(clock(10, 0)),
				Conditions: []metav1.Condition{condition(api.ConditionReady, metav1.ConditionTrue, api.ReasonScheduled, makes)},
			},
			current: kstatus.CurrentStatus,
		},
		"Failed": {
			reason: "A person must act",
			args: func(o *Scheduled) {
				o.Schedule.Status.LastScheduleTime = instant(clock(9, 0))
				o.Backups = []api.EtcdBackup{bad("a", clock(9, 0))}
			},
			want: api.EtcdBackupScheduleStatus{
				ObservedGeneration: 1, LastScheduleTime: instant(clock(9, 0)), NextScheduleTime: instant(clock(10, 0)),
				Conditions: []metav1.Condition{
					condition(api.ConditionReady, metav1.ConditionFalse, "StoreFull", "EtcdBackup a: full"),
					condition(api.ConditionStalled, metav1.ConditionTrue, "StoreFull", "EtcdBackup a: full"),
				},
			},
			current: kstatus.FailedStatus,
		},
		"NeverFires": {
			reason: "A person must act, and what was made stays",
			args: func(o *Scheduled) {
				o.Schedule.Spec.Schedule, o.Schedule.Spec.Retention = "0 0 31 2 *", &api.BackupRetention{Last: 1}
				o.Backups = []api.EtcdBackup{good("b", clock(9, 0)), good("a", clock(8, 0))}
			},
			want: api.EtcdBackupScheduleStatus{
				ObservedGeneration: 1, LastSuccessfulTime: instant(clock(9, 0)),
				Conditions: []metav1.Condition{
					condition(api.ConditionReady, metav1.ConditionFalse, api.ReasonNeverFires, never),
					condition(api.ConditionStalled, metav1.ConditionTrue, api.ReasonNeverFires, never),
				},
			},
			current: kstatus.FailedStatus,
		},
		"Suspended": {
			reason: "It is as it is to be",
			args:   func(o *Scheduled) { o.Schedule.Spec.Suspend = true },
			want: api.EtcdBackupScheduleStatus{
				ObservedGeneration: 1,
				Conditions:         []metav1.Condition{condition(api.ConditionReady, metav1.ConditionTrue, api.ReasonSuspended, "spec.suspend is true: no EtcdBackup is made, and none is deleted")},
			},
			current: kstatus.CurrentStatus,
		},
		"Mended": {
			reason: "What kept it is over",
			args: func(o *Scheduled) {
				o.Schedule.Status.LastScheduleTime = instant(clock(9, 0))
				o.Schedule.Status.Conditions = []metav1.Condition{
					condition(api.ConditionReady, metav1.ConditionFalse, api.ReasonNeverFires, never),
					condition(api.ConditionStalled, metav1.ConditionTrue, api.ReasonNeverFires, never),
				}
			},
			want: api.EtcdBackupScheduleStatus{
				ObservedGeneration: 1, LastScheduleTime: instant(clock(9, 0)), NextScheduleTime: instant(clock(10, 0)),
				Conditions: []metav1.Condition{condition(api.ConditionReady, metav1.ConditionTrue, api.ReasonScheduled, makes)},
			},
			current: kstatus.CurrentStatus,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := nightly()
			tc.args(&o)
			got := scheduleStatus(o, PlanSchedule(o))
			for i := range got.Conditions {
				got.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			o.Schedule.Status = got
			raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Schedule)
			if err != nil {
				t.Fatal(err)
			}
			if judged, err := kstatus.Compute(&unstructured.Unstructured{Object: raw}); err != nil || judged.Status != tc.current {
				t.Errorf("%s: kstatus: want %s, got %v, %v", tc.reason, tc.current, judged, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
