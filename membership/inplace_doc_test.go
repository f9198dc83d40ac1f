package membership

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestInPlaceDocumented: the table of docs/restore.md has each reason why a restore in place does
// not begin, or does not go on.
func TestInPlaceDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/restore.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, there := strings.Cut(string(raw), "\n## What it says, and what to do\n")
	if !there {
		t.Fatal("docs/restore.md does not say what to do")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []*regexp.Regexp
	for line := range strings.Lines(section) {
		if message, _, is := strings.Cut(strings.TrimPrefix(line, "| "), " | "); is {
			message = strings.NewReplacer(`\.\.\.`, ".*", "N MiB", `\d+ MiB`, "M MiB", `\d+ MiB`).Replace(regexp.QuoteMeta(message))
			rows = append(rows, regexp.MustCompile(message))
		}
	}

	asked := func(_ *Desired, o *Observed) { o.InPlace = InPlace{Name: "back", UID: "u"} }
	anyway := func(d *Desired, o *Observed) { asked(d, o); o.InPlace.Anyway = true }
	from := func(change func(*Snapshot)) change {
		return func(d *Desired, o *Observed) { restoring(d, o); anyway(d, o); found(with(monday, change))(d, o) }
	}
	for name, tc := range map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
	}{
		"Suspended":  {"nothing is done while it is suspended", formed3, []change{anyway, suspended}},
		"InMemory":   {"nothing can be set aside", formed3, []change{anyway, ephemeral}},
		"NotFormed":  {"there is nothing to restore", fresh, []change{anyway}},
		"Hibernated": {"no member is to run", formed3, []change{anyway, size(0)}},
		"Serving":    {"it serves", formed3, []change{asked}},
		"Lately":     {"it served a moment ago", formed3, []change{asked, func(_ *Desired, o *Observed) { o.Reach, o.InPlace.Lately = ReachNone, true }}},
		"Guessed":    {"nothing tells who the members are", formed3, []change{nobodyAnswers, onAll(gone), forgotten, asked, func(_ *Desired, o *Observed) { o.InPlace.OnLoss = true }}},
		"LostAgain": {"it came back, and is gone again", formed3, []change{noQuorum, on(1, gone), on(2, gone), asked, func(d *Desired, o *Observed) {
			d.LossPatience, o.InPlace.OnLoss, o.InPlace.LostLately = "10m", true, true
		}}},
		"NotFound":  {"there is no snapshot", formed3, []change{anyway, func(_ *Desired, o *Observed) { o.Search.Problem = "not found" }}},
		"TooNew":    {"etcd cannot read it", formed3, []change{from(func(s *Snapshot) { s.Version = etcd37 })}},
		"Encrypted": {"no identity is named", formed3, []change{from(func(s *Snapshot) { s.Encrypted = true })}},
		"OverQuota": {"the database would be full", formed3, []change{from(func(s *Snapshot) { s.Size = 600 << 20 })}},
		"TooLarge":  {"the volumes are too small", formed3, []change{from(func(s *Snapshot) { s.Size = 500 << 20 })}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			why, _ := InPlaceWaits(d, o)
			if why == "" || !slices.ContainsFunc(rows, func(row *regexp.Regexp) bool { return row.MatchString(why) }) {
				t.Errorf("%s: docs/restore.md has no row for %q", tc.reason, why)
			}
		})
	}
}
