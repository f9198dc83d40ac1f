package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// version of a row, which is written as people write it.
func version(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// way is a path as text: the versions on it, or why there is none.
func way(t *testing.T, running, target string) string {
	t.Helper()
	var versions []Version
	for s := range strings.FieldsSeq(running) {
		versions = append(versions, version(t, s))
	}
	path, err := Path(versions, version(t, target))
	if err != nil {
		return err.Error()
	}
	steps := make([]string, len(path))
	for n, v := range path {
		steps[n] = v.String()
	}
	return strings.Join(steps, " ")
}

// TestPath holds by way of which versions a cluster comes from what its members run to what the
// spec asks for.
func TestPath(t *testing.T) {
	const (
		twoDown   = "from %s to %s is a downgrade over two minors: set spec.version to 3.6.16 first, and to %s when that is done"
		no        = "etcd %s is not supported: set spec.version to a patch of 3.5, 3.6 or 3.7"
		notBeside = "members run %s and %s, which etcd does not support beside each other: put the Pods back to one minor by hand"
		tooEarly  = "etcd %s cannot be reached from 3.%d: set spec.version to %s or later, best %s"
	)
	cases := map[string]struct {
		reason          string
		running, target string
		want            string
	}{
		// at rest, and patches
		"Unknown":         {reason: "it is not known what runs, so nothing can be said of a way", running: "", target: "3.6.16", want: ""},
		"There":           {reason: "all run it", running: "3.6.16 3.6.16 3.6.16", target: "3.6.16", want: ""},
		"PatchUp":         {reason: "any patch of the minor", running: "3.5.20 3.5.20 3.5.20", target: "3.5.21", want: "3.5.21"},
		"PatchDown":       {reason: "minors alone are what etcd compares", running: "3.6.16", target: "3.6.2", want: "3.6.2"},
		"PatchUnderWay":   {reason: "some run it already", running: "3.6.16 3.6.2 3.6.2", target: "3.6.16", want: "3.6.16"},
		"PatchBack":       {reason: "the spec was set back when one had changed", running: "3.6.16 3.6.2 3.6.2", target: "3.6.2", want: "3.6.2"},
		"PatchNotKnown":   {reason: "a patch that came after this Quorate", running: "3.7.3", target: "3.7.99", want: "3.7.99"},
		"PatchBelowFloor": {reason: "floors are for those that come from another minor", running: "3.5.19", target: "3.5.31", want: "3.5.31"},

		// one minor up
		"FiveToSix":             {reason: "3.5.32 or later to 3.6.11 or later", running: "3.5.32 3.5.35", target: "3.6.11", want: "3.6.11"},
		"EarlyFiveToSix":        {reason: "before 3.5.32 members may be lost track of", running: "3.5.31", target: "3.6.16", want: "3.5.35 3.6.16"},
		"OneEarlyFiveToSix":     {reason: "one such member suffices", running: "3.5.35 3.5.31 3.5.35", target: "3.6.16", want: "3.5.35 3.6.16"},
		"FiveToEarlySix":        {reason: "3.6.10 is no place to arrive at", running: "3.5.35", target: "3.6.10", want: fmt.Sprintf(tooEarly, "3.6.10", 5, "3.6.11", "3.6.16")},
		"SixToSeven":            {reason: "3.6.11 or later to any 3.7", running: "3.6.11 3.6.16", target: "3.7.0", want: "3.7.0"},
		"EarlySixToSeven":       {reason: "before 3.6.11 by way of the newest", running: "3.6.10", target: "3.7.3", want: "3.6.16 3.7.3"},
		"UpUnderWay":            {reason: "the cluster is mixed, and goes on", running: "3.6.16 3.5.35 3.5.35", target: "3.6.16", want: "3.6.16"},
		"UpUnderWayTarget":      {reason: "the target was changed on the way", running: "3.6.15 3.5.35 3.5.35", target: "3.6.16", want: "3.6.16"},
		"UpUnderWayFromEarly":   {reason: "what is mixed already cannot go by way of a patch any more", running: "3.6.16 3.5.20", target: "3.6.16", want: "3.6.16"},
		"UpUnderWayToEarly":     {reason: "and does not arrive where none may", running: "3.6.16 3.5.35", target: "3.6.4", want: fmt.Sprintf(tooEarly, "3.6.4", 5, "3.6.11", "3.6.16")},
		"UpUnderWayPatchBefore": {reason: "the members come to the patch before any of them leaves the minor", running: "3.5.35 3.5.20 3.5.20", target: "3.6.16", want: "3.5.35 3.6.16"},

		// two minors up
		"FiveToSeven":          {reason: "one after the other, by way of the newest patch between them", running: "3.5.35", target: "3.7.3", want: "3.6.16 3.7.3"},
		"EarlyFiveToSeven":     {reason: "and the patch to leave from", running: "3.5.19", target: "3.7.3", want: "3.5.35 3.6.16 3.7.3"},
		"FiveToSevenUnderWay":  {reason: "some have come half the way", running: "3.6.16 3.5.35 3.5.35", target: "3.7.3", want: "3.6.16 3.7.3"},
		"FiveToSevenHalfWay":   {reason: "all have", running: "3.6.16 3.6.16", target: "3.7.3", want: "3.7.3"},
		"FiveToSevenAlmost":    {reason: "the last minor of two", running: "3.7.3 3.6.16 3.6.16", target: "3.7.3", want: "3.7.3"},
		"FiveAndSeven":         {reason: "a user has changed a Pod by hand", running: "3.5.35 3.7.3", target: "3.7.3", want: fmt.Sprintf(notBeside, "3.5.35", "3.7.3")},
		"FiveAndSevenToMiddle": {reason: "no version mends that", running: "3.7.3 3.5.35", target: "3.6.16", want: fmt.Sprintf(notBeside, "3.5.35", "3.7.3")},

		// down
		"SevenToSix":       {reason: "3.6.11 or later", running: "3.7.3", target: "3.6.11", want: "3.6.11"},
		"SevenToEarlySix":  {reason: "the guide names 3.6.11", running: "3.7.3", target: "3.6.10", want: fmt.Sprintf(tooEarly, "3.6.10", 7, "3.6.11", "3.6.16")},
		"SixToFive":        {reason: "3.5.32 or later", running: "3.6.16", target: "3.5.32", want: "3.5.32"},
		"SixToEarlyFive":   {reason: "what is true on the way up is true on the way back", running: "3.6.16", target: "3.5.31", want: fmt.Sprintf(tooEarly, "3.5.31", 6, "3.5.32", "3.5.35")},
		"EarlySixToFive":   {reason: "the floor is where one arrives", running: "3.6.2", target: "3.5.35", want: "3.5.35"},
		"DownUnderWay":     {reason: "the cluster is mixed, and goes on", running: "3.6.16 3.7.3 3.7.3", target: "3.6.16", want: "3.6.16"},
		"RolledBack":       {reason: "a member that has not changed yet keeps the way back open", running: "3.6.16 3.5.35 3.5.35", target: "3.5.35", want: "3.5.35"},
		"RolledBackOther":  {reason: "to another patch of it as well", running: "3.6.16 3.5.33 3.5.33", target: "3.5.35", want: "3.5.35"},
		"SevenToFive":      {reason: "what etcd does not do in one is not done unasked", running: "3.7.3", target: "3.5.35", want: fmt.Sprintf(twoDown, "3.7.3", "3.5.35", "3.5.35")},
		"SevenToFiveMixed": {reason: "nor from the middle of the way", running: "3.7.3 3.6.16", target: "3.5.35", want: fmt.Sprintf(twoDown, "3.7.3", "3.5.35", "3.5.35")},

		// what is not supported
		"FromFour":     {reason: "3.4 has ended", running: "3.4.45", target: "3.5.35", want: fmt.Sprintf(no, "3.4.45")},
		"ToFour":       {reason: "3.4 has ended", running: "3.5.35", target: "3.4.45", want: fmt.Sprintf(no, "3.4.45")},
		"FromEight":    {reason: "what a member runs that a user has changed by hand", running: "3.8.0 3.7.3", target: "3.7.3", want: fmt.Sprintf(no, "3.8.0")},
		"ToEight":      {reason: "nothing is known of it", running: "3.7.3", target: "3.8.0", want: fmt.Sprintf(no, "3.8.0")},
		"AnotherMajor": {reason: "the minors of another major are others", running: "3.6.16", target: "4.6.16", want: fmt.Sprintf(no, "4.6.16")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, way(t, tc.running, tc.target)); diff != "" {
				t.Errorf("%s: %s to %s: -want +got:\n%s", tc.reason, tc.running, tc.target, diff)
			}
		})
	}
}

// TestPathLeads: from whatever a cluster runs, each version on the way is one step from what runs
// then, whichever members have come to it, and the way ends where the spec wants it, or is refused
// by name. On the way nothing else is ever decided.
func TestPathLeads(t *testing.T) {
	t.Parallel()
	var all []Version
	for _, g := range Gates {
		for _, patch := range []int{0, g.Leave - 1, g.Leave, g.Newest} {
			if patch >= 0 {
				all = append(all, Version{3, g.Minor, patch})
			}
		}
	}
	ways := 0
	for _, from := range all {
		for _, to := range all {
			path, err := Path([]Version{from, from, from}, to)
			if err != nil {
				if !strings.Contains(err.Error(), "spec.version") {
					t.Errorf("%s to %s: %v: nothing that a person could do", from, to, err)
				}
				continue
			}
			at := from
			for n, next := range path {
				if next == at || next.Minor-at.Minor > 1 || at.Minor-next.Minor > 1 {
					t.Errorf("%s to %s: %v: from %s to %s is no step", from, to, path, at, next)
				}
				if g, _ := gate(at.Minor); next.Minor > at.Minor && at.Patch < g.Leave {
					t.Errorf("%s to %s: %v: %s is no place to leave the minor from", from, to, path, at)
				}
				if g, _ := gate(next.Minor); next.Minor != at.Minor && next.Patch < g.Enter {
					t.Errorf("%s to %s: %v: %s is no place to arrive at", from, to, path, next)
				}
				for changed := 1; changed <= 3; changed++ { // one member after the other
					running := []Version{at, at, at}
					for m := range changed {
						running[m] = next
					}
					rest := path[n:]
					if changed == 3 {
						rest = path[n+1:]
					}
					if got, err := Path(running, to); err != nil || !cmp.Equal(got, rest) && len(got)+len(rest) > 0 {
						t.Errorf("%s to %s: while %v run, the way is %v (%v), want %v", from, to, running, got, err, rest)
					}
				}
				at = next
			}
			if at != to {
				t.Errorf("%s to %s: %v ends at %s", from, to, path, at)
			}
			ways++
		}
	}
	if ways < len(all) {
		t.Errorf("there are only %d ways between %d versions", ways, len(all))
	}
}

// TestGates: the table is in order, and by way of each version on it a cluster can go on.
func TestGates(t *testing.T) {
	t.Parallel()
	for n, g := range Gates {
		if g.Source == "" || g.Newest < g.Leave || g.Newest < g.Enter || n > 0 && g.Minor != Gates[n-1].Minor+1 {
			t.Errorf("gate %+v", g)
		}
	}
}

// TestHop holds what the members run next, as far as it is known.
func TestHop(t *testing.T) {
	cases := map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
		want   Version
	}{
		"There":    {reason: "what they run", base: upgrading(etcd36, etcd36), want: etcd36},
		"OneMinor": {reason: "what is asked for", base: upgrading(etcd36, etcd37), want: etcd37},
		"Two":      {reason: "what lies between", base: upgrading(etcd35, etcd37), want: etcd36},
		"UnderWay": {reason: "until all have come there", base: upgrading(etcd35, etcd37), args: []change{on(1, runs(etcd36))}, want: etcd36},
		"Last": {
			reason: "the last one does not answer, and has yet to come there",
			base:   upgrading(etcd35, etcd37), args: []change{onAll(runs(etcd36)), on(2, runs(etcd35)), on(2, silent), on(2, next(etcd36))}, want: etcd36,
		},
		"LastDown": {
			reason: "the last one has not been changed yet, and is down",
			base:   upgrading(etcd35, etcd37), args: []change{onAll(runs(etcd36)), on(2, runs(etcd35)), on(2, silent)}, want: etcd36,
		},
		"LastLost": {
			reason: "its data is gone",
			base:   upgrading(etcd35, etcd37), args: []change{onAll(runs(etcd36)), on(2, gone), on(2, silent)}, want: etcd37,
		},
		"NoWayLast": {
			reason: "what runs goes on, and one that is being changed comes there",
			base:   upgrading(etcd36, Version{3, 5, 20}), args: []change{on(2, runs(Version{3, 6, 11})), on(2, silent), on(2, next(etcd36))}, want: etcd36,
		},
		"NoWay":    {reason: "no member is to run anything else than the others", base: upgrading(etcd37, etcd35), want: etcd37},
		"Unformed": {reason: "nothing has run yet", base: fresh, args: []change{to(etcd37)}, want: etcd37},
		"SingleDown": {
			reason: "the only member has been changed, and does not come up: its volume tells from where it came",
			base:   upgrading(etcd35, etcd37), args: []change{only, on(0, broken(etcd36)), nobodyAnswers}, want: etcd36,
		},
		"NoQuorum": {
			reason: "the members cannot be listed, and some have come to what lies between",
			base:   upgrading(etcd35, etcd37), args: []change{on(1, runs(etcd36)), noQuorum}, want: etcd36,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if got := Hop(d, o); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
