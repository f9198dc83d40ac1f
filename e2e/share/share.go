// Package share chooses the rows of a table that a test runs: a seeded share of them, or with -long
// every one. The seed and the names of the rows are in the test's output, so that -seed runs the
// same rows again.
package share

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// chooser is what the flags say.
type chooser struct {
	registered bool
	long       bool
	given      uint64        // by -seed
	seed       func() uint64 // given, or a new one for this process
}

var flags = &chooser{}

// Register the flags -long and -seed, once in each test binary.
func Register(set *flag.FlagSet) { flags.register(set) }

// Long reports whether every row runs. It can be asked once the flags are parsed.
func Long() bool { return flags.long }

// Seed is that of this run, for a test that chooses by itself.
func Seed(t testing.TB) uint64 {
	t.Helper()
	if !flags.registered {
		t.Fatal(unregistered)
	}
	t.Attr("seed", fmt.Sprint(flags.seed()))
	return flags.seed()
}

const unregistered = "share.Register was not called: no flag says which rows run"

// Of returns k rows of a table, or all of them with -long.
func Of[T any](t testing.TB, rows map[string]T, k int) map[string]T {
	t.Helper()
	return of(flags, t, rows, k)
}

// List is Of for rows that have an order, which stays. The names must differ.
func List[T any](t testing.TB, rows []T, k int, name func(T) string) []T {
	t.Helper()
	return list(flags, t, rows, k, name)
}

func of[T any](c *chooser, t testing.TB, rows map[string]T, k int) map[string]T {
	t.Helper()
	chosen := c.choose(t, slices.Sorted(maps.Keys(rows)), k)
	share := make(map[string]T, len(chosen))
	for _, name := range chosen {
		share[name] = rows[name]
	}
	return share
}

func list[T any](c *chooser, t testing.TB, rows []T, k int, name func(T) string) []T {
	t.Helper()
	names := make([]string, 0, len(rows))
	for _, row := range rows {
		names = append(names, name(row))
	}
	chosen := c.choose(t, names, k)
	return slices.DeleteFunc(slices.Clone(rows), func(row T) bool { return !slices.Contains(chosen, name(row)) })
}

func (c *chooser) register(set *flag.FlagSet) {
	c.registered = true
	set.BoolVar(&c.long, "long", false, "run every row of tables of which else a share runs")
	set.Uint64Var(&c.given, "seed", 0, "choose the share of rows by this seed, as an earlier run has printed it; 0 is another one each time")
	c.seed = sync.OnceValue(func() uint64 {
		if c.given != 0 {
			return c.given
		}
		return uint64(rand.Uint32()) + 1 // short enough to be typed, and not 0
	})
}

// choose k of the names by the seed and the test's own name, in their order, and tell the test's
// reader which.
func (c *chooser) choose(t testing.TB, names []string, k int) []string {
	t.Helper()
	switch {
	case !c.registered:
		t.Fatal(unregistered)
	case len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names):
		t.Fatalf("rows of the same name: %q", names)
	case k < 1 || len(names) == 0:
		t.Fatalf("a share of %d of %d rows shows nothing", k, len(names))
	}
	chosen := names
	if !c.long && k < len(names) {
		chosen = pick(c.seed(), t.Name(), names, k)
		t.Attr("seed", fmt.Sprint(c.seed()))
		t.Logf("-seed %d runs this share again, -long every row", c.seed())
	}
	share := fmt.Sprintf("%d of %d: %s", len(chosen), len(names), strings.Join(chosen, ", "))
	t.Attr("share", share)
	t.Logf("share %s", share)
	return chosen
}

func pick(seed uint64, test string, names []string, k int) []string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(test)) // a hash never fails
	order := rand.New(rand.NewPCG(seed, hash.Sum64())).Perm(len(names))[:k]
	slices.Sort(order)
	chosen := make([]string, 0, k)
	for _, n := range order {
		chosen = append(chosen, names[n])
	}
	return chosen
}
