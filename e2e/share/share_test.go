package share

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var names = []string{"c", "a", "e", "b", "d", "f", "g", "i", "h"}

// reader is the test that a share is chosen for, and what it is told.
type reader struct {
	testing.TB
	attributes map[string]string
	logged     []string
	failed     bool
}

func (r *reader) Helper()                    {}
func (r *reader) Name() string               { return "TestRows" }
func (r *reader) Attr(key, value string)     { r.attributes[key] = value }
func (r *reader) Logf(text string, _ ...any) { r.logged = append(r.logged, text) }
func (r *reader) Fatal(...any)               { r.failed = true; panic(r) }
func (r *reader) Fatalf(string, ...any)      { r.failed = true; panic(r) }

// chosen is what a process with these arguments runs, and what it says about it.
func chosen(t *testing.T, k int, args ...string) ([]string, *reader) {
	t.Helper()
	set, c, r := flag.NewFlagSet("test", flag.ContinueOnError), &chooser{}, &reader{attributes: map[string]string{}}
	set.SetOutput(io.Discard)
	c.register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c.choose(r, names, k), r
}

func TestEveryRowIsChosen(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 { // one row is missed by all of them once in 10^35 runs
		rows, _ := chosen(t, 3)
		if len(rows) != 3 {
			t.Fatalf("chosen are %q, want 3 rows", rows)
		}
		for _, name := range rows {
			seen[name] = true
		}
	}
	if len(seen) != len(names) {
		t.Errorf("200 seeds have chosen %v of %q", seen, names)
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	rows, told := chosen(t, 4)
	if inOrder := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(rows, n) }); !cmp.Equal(inOrder, rows) {
		t.Errorf("chosen are %q, want them in the order of the table, %q", rows, inOrder)
	}
	again, _ := chosen(t, 4, "-seed", told.attributes["seed"])
	if diff := cmp.Diff(rows, again); diff != "" {
		t.Errorf("the seed %s that was printed: -first +again:\n%s", told.attributes["seed"], diff)
	}
	if want := "4 of 9: " + strings.Join(rows, ", "); told.attributes["share"] != want {
		t.Errorf("the test is told %q, want %q", told.attributes["share"], want)
	}
	if len(told.logged) != 2 {
		t.Errorf("logged is %q, want a line of the seed and one of the rows", told.logged)
	}
	others := 0
	for range 20 {
		if rows, _ := chosen(t, 4); !cmp.Equal(rows, again) {
			others++
		}
	}
	if others == 0 {
		t.Errorf("without a seed every process chooses %q", rows)
	}
	if cmp.Equal(pick(1, "TestA", names, 4), pick(1, "TestB", names, 4)) && cmp.Equal(pick(2, "TestA", names, 4), pick(2, "TestB", names, 4)) {
		t.Error("two tests choose the same rows")
	}
}

func TestLong(t *testing.T) {
	t.Parallel()
	rows, told := chosen(t, 2, "-long")
	if diff := cmp.Diff(names, rows); diff != "" {
		t.Errorf("-long: -want +got:\n%s", diff)
	}
	if want := "9 of 9: " + strings.Join(names, ", "); told.attributes["share"] != want {
		t.Errorf("the test is told %q, want %q", told.attributes["share"], want)
	}
	if rows, _ := chosen(t, 20); !cmp.Equal(rows, names) {
		t.Errorf("a share that is larger than the table is %q, want all", rows)
	}
}

// TestNoRows: a share that can hold nothing fails, and so does one that no flag was registered for.
func TestNoRows(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		chooser chooser
		names   []string
		k       int
	}{
		"NoFlags": {reason: "no flag says what runs", names: names, k: 2},
		"Zero":    {reason: "no row would run", chooser: chooser{registered: true}, names: names},
		"Empty":   {reason: "there is no row", chooser: chooser{registered: true}, k: 1},
		"Twice":   {reason: "one of the two would not be told from the other", chooser: chooser{registered: true, long: true}, names: []string{"a", "b", "a"}, k: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reader{attributes: map[string]string{}}
			defer func() {
				if _ = recover(); !r.failed {
					t.Errorf("%s: the test goes on", tc.reason)
				}
			}()
			tc.chooser.choose(r, tc.names, tc.k)
		})
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		c := &chooser{registered: true, seed: func() uint64 { return seed }}
		r := &reader{attributes: map[string]string{}}
		rows := map[string]int{"a": 1, "b": 2, "c": 3}
		for name, row := range of(c, r, rows, 2) {
			if rows[name] != row {
				t.Errorf("row %s is %d, want %d", name, row, rows[name])
			}
		}
		type named struct {
			name  string
			value int
		}
		ordered := list(c, r, []named{{"z", 1}, {"y", 2}, {"x", 3}}, 2, func(n named) string { return n.name })
		if len(ordered) != 2 || ordered[0].value > ordered[1].value {
			t.Errorf("chosen is %v, want two in the order of the table", ordered)
		}
	}
}
