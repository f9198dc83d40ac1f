package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
)

// TestTimes: which times a schedule has where clocks are set, at midnight too: all that are, and
// none that is not.
func TestTimes(t *testing.T) {
	t.Parallel()
	type args struct {
		zone, schedule string
		from           string
	}
	cases := map[string]struct {
		reason string
		args   args
		want   []string
	}{
		"Cairo":       {reason: "there is no midnight on that Friday, and there is 05:00", args: args{"Africa/Cairo", "0 5 * * 5", "2026-04-20T00:00:00+02:00"}, want: []string{"2026-04-24T05:00:00+03:00", "2026-05-01T05:00:00+03:00"}},
		"CairoBefore": {reason: "the hours of that Friday are not those of Thursday", args: args{"Africa/Cairo", "0 5 * * 4", "2026-04-23T10:00:00+02:00"}, want: []string{"2026-04-30T05:00:00+03:00"}},
		"CairoHours":  {reason: "only 00:30 is left out", args: args{"Africa/Cairo", "30 * * * *", "2026-04-23T22:45:00+02:00"}, want: []string{"2026-04-23T23:30:00+02:00", "2026-04-24T01:30:00+03:00"}},
		"Beirut":      {reason: "there is no midnight on that Sunday", args: args{"Asia/Beirut", "0 3 * * 0", "2026-03-24T00:00:00+02:00"}, want: []string{"2026-03-29T03:00:00+03:00", "2026-04-05T03:00:00+03:00"}},
		"Santiago":    {reason: "nor on this one", args: args{"America/Santiago", "0 5 * * 0", "2026-08-31T00:00:00-04:00"}, want: []string{"2026-09-06T05:00:00-03:00"}},
		"Azores":      {reason: "nor on this one", args: args{"Atlantic/Azores", "0 3 * * 0", "2026-03-24T00:00:00-01:00"}, want: []string{"2026-03-29T03:00:00Z"}},
		"Havana":      {reason: "nor on this one", args: args{"America/Havana", "0 3 * * 0", "2026-03-03T00:00:00-05:00"}, want: []string{"2026-03-08T03:00:00-04:00"}},
		"FirstOfMonth": {
			reason: "a month that begins without a midnight (Paraguay, 2017)", args: args{"America/Asuncion", "0 5 1 10 *", "2017-09-01T00:00:00-04:00"},
			want: []string{"2017-10-01T05:00:00-03:00"},
		},
		"Berlin":   {reason: "02:30 is left out", args: args{"Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00+01:00"}, want: []string{"2026-03-28T02:30:00+01:00", "2026-03-30T02:30:00+02:00"}},
		"Change":   {reason: "the first minute with other clocks", args: args{"Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00+01:00"}, want: []string{"2026-03-29T03:00:00+02:00"}},
		"Autumn":   {reason: "a time that comes twice is due twice", args: args{"Europe/Berlin", "30 2 * * *", "2026-10-25T00:00:00+02:00"}, want: []string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		"HalfHour": {reason: "clocks are set by half an hour", args: args{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00:00+10:30"}, want: []string{"2026-10-03T02:15:00+10:30", "2026-10-05T02:15:00+11:00"}},
		"LeapYear": {reason: "many changes of clocks are passed", args: args{"Europe/Berlin", "0 12 29 2 *", "2024-03-01T00:00:00+01:00"}, want: []string{"2028-02-29T12:00:00+01:00"}},
		"Never":    {reason: "there is no such day", args: args{"Europe/Berlin", "0 0 31 2 *", "2026-03-28T00:00:00+01:00"}, want: []string{""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &api.EtcdBackupSchedule{}
			s.Spec.Schedule, s.Spec.TimeZone = tc.args.schedule, tc.args.zone
			times, zone, err := parse(s)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, tc.args.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			at = at.In(zone)
			for range tc.want {
				if at = times.Next(at); at.IsZero() {
					got = append(got, "")
					break
				}
				got = append(got, at.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
