package snapshot

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon of a day of November 2026; the 23rd is a Monday.
func noon(day int) time.Time { return time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC) }

// ok is a verified snapshot, and raw one that was not verified.
func ok(name string, at time.Time) Stored {
	s := raw(name, at)
	s.Verification = &Verification{Name: name, Mode: ModeRestore}
	return s
}

func raw(name string, at time.Time) Stored {
	return Stored{Manifest: Manifest{Name: name, ClusterID: "aaaa", TakenAt: at}}
}

func of(clusterID string, s Stored) Stored { s.Manifest.ClusterID = clusterID; return s }
func damaged(s Stored) Stored              { s.Damaged = errors.New("half of it"); return s }

// days has one verified snapshot at noon of each day, with the day as its name.
func days(from, to int) []Stored {
	var all []Stored
	for day := from; day <= to; day++ {
		all = append(all, ok(time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC).Format("01-02"), noon(day)))
	}
	return all
}

func TestRetain(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("Tokyo", 9*3600)
	for name, tc := range map[string]struct {
		reason string
		stored []Stored
		rules  Retention
		keep   string // names, newest first
	}{
		"NoRules":      {"all of it zero keeps everything", days(20, 25), Retention{}, "11-25 11-24 11-23 11-22 11-21 11-20"},
		"Nothing":      {"there is nothing", nil, Retention{Last: 3}, ""},
		"Last":         {"the newest", days(20, 25), Retention{Last: 2}, "11-25 11-24"},
		"Daily":        {"the newest of each day", append(days(23, 25), ok("late", noon(24).Add(time.Hour))), Retention{Daily: 2}, "11-25 late"},
		"DailyGaps":    {"days without any do not count", append(days(25, 25), days(3, 5)...), Retention{Daily: 3}, "11-25 11-05 11-04"},
		"Weekly":       {"weeks begin on Mondays", days(14, 25), Retention{Weekly: 3}, "11-25 11-22 11-15"},
		"Monthly":      {"the newest of each month", append(days(20, 25), days(-40, -38)...), Retention{Monthly: 2}, "11-25 09-23"},
		"Union":        {"one rule is enough", days(14, 25), Retention{Last: 2, Weekly: 2}, "11-25 11-24 11-22"},
		"Zone":         {"a day is one of the time zone", []Stored{ok("a", noon(24).Add(2*time.Hour)), ok("b", noon(24).Add(4*time.Hour))}, Retention{Daily: 5, Location: tokyo}, "b a"},
		"ZoneUTC":      {"the same in UTC", []Stored{ok("a", noon(24).Add(2*time.Hour)), ok("b", noon(24).Add(4*time.Hour))}, Retention{Daily: 5}, "b"},
		"MaxAge":       {"what is older goes", days(20, 25), Retention{MaxAge: 48 * time.Hour}, "11-25 11-24 11-23"},
		"AgeAndCount":  {"age goes before numbers", days(20, 25), Retention{Last: 5, MaxAge: 24 * time.Hour}, "11-25 11-24"},
		"LastGood":     {"the newest verified one stays, however old", days(1, 3), Retention{Last: 1, MaxAge: time.Hour}, "11-03"},
		"LastGoodOfN":  {"it stays where no number counts it", []Stored{ok("a", noon(1))}, Retention{MaxAge: time.Nanosecond}, "a"},
		"Unverified":   {"it is not counted, and stays while it is newer than the newest verified", []Stored{raw("new", noon(25)), ok("b", noon(24)), raw("old", noon(23)), ok("a", noon(22))}, Retention{Last: 1}, "new b"},
		"NoneVerified": {"nothing goes when verification fails", []Stored{raw("c", noon(25)), raw("b", noon(24)), raw("a", noon(3))}, Retention{Last: 1, MaxAge: time.Hour}, "c b a"},
		"UnverifiedBy": {"by age alone, it goes as others do", []Stored{ok("c", noon(25)), raw("b", noon(24)), raw("a", noon(3))}, Retention{MaxAge: 48 * time.Hour}, "c b"},
		"Damaged":      {"it is not counted, and it is not known what it is", []Stored{damaged(ok("c", noon(25))), ok("b", noon(24)), ok("a", noon(23))}, Retention{Last: 1}, "c b"},
		"TwoClusters":  {"each by itself", []Stored{ok("d", noon(25)), ok("c", noon(24)), of("bbbb", ok("b", noon(3))), of("bbbb", ok("a", noon(2)))}, Retention{Last: 1}, "d b"},
		"Unordered":    {"in any order", []Stored{ok("a", noon(20)), ok("c", noon(22)), ok("b", noon(21))}, Retention{Last: 2}, "c b"},
		"ClockAhead":   {"the clock of a node was ahead: the revision tells", []Stored{at(1, ok("b", noon(28))), at(2, ok("c", noon(24))), at(0, ok("a", noon(23)))}, Retention{Last: 1}, "c"},
		"ClockBehind":  {"the clock of a node was behind: the revision tells", []Stored{at(2, ok("c", noon(20))), at(1, ok("b", noon(24)))}, Retention{Last: 1}, "c"},
		"FromTomorrow": {"a clock was wrong", []Stored{ok("b", noon(28)), ok("a", noon(24))}, Retention{Last: 2, MaxAge: 48 * time.Hour}, "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keep, drop := Retain(tc.stored, tc.rules, noon(25))
			if diff := cmp.Diff(tc.keep, called(keep)); diff != "" {
				t.Errorf("%s: kept: -want +got:\n%s", tc.reason, diff)
			}
			if got := len(keep) + len(drop); got != len(tc.stored) {
				t.Errorf("%s: %d of %d were judged", tc.reason, got, len(tc.stored))
			}
		})
	}
}

func called(stored []Stored) string {
	var names []string
	for _, s := range stored {
		names = append(names, s.Manifest.Name)
	}
	return strings.Join(names, " ")
}

// TestRetainAlways: whatever the rules, the newest verified snapshot of each cluster stays, and
// what is newer.
func TestRetainAlways(t *testing.T) {
	t.Parallel()
	stored := []Stored{raw("e", noon(25)), ok("d", noon(20)), ok("c", noon(10)), of("bbbb", ok("b", noon(2))), of("bbbb", raw("a", noon(1)))}
	for last := range 3 {
		for daily := range 3 {
			for weekly := range 3 {
				for _, age := range []time.Duration{0, 1, 100 * time.Hour, 1000 * time.Hour} {
					r := Retention{Last: last, Daily: daily, Weekly: weekly, Monthly: weekly, MaxAge: age}
					keep, _ := Retain(stored, r, noon(25))
					for _, name := range []string{"e", "d", "b"} {
						if !slices.ContainsFunc(keep, func(s Stored) bool { return s.Manifest.Name == name }) {
							t.Errorf("%+v drops %s", r, name)
						}
					}
				}
			}
		}
	}
}
