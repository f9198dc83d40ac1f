//go:build env

package reconcile_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var chaos struct {
	all  bool
	span time.Duration
	seed uint64
	plan string
}

func init() {
	flag.BoolVar(&chaos.all, "chaos.all", false, "TestChaos: run every plan there is")
	flag.DurationVar(&chaos.span, "chaos.for", 0, "TestChaos: begin new plans for so long, in a random order")
	flag.Uint64Var(&chaos.seed, "chaos.seed", 0, "TestChaos: seed of that order; 0 is another one each time")
	flag.StringVar(&chaos.plan, "chaos.plan", "", "TestChaos: run the plans that begin so, as a failure has named them")
}

func inChaos() bool { return chaos.all || chaos.span > 0 || chaos.plan != "" }

// TestChaos runs every disturbance there is of every life, turns the version at every effect of a change of it, and walks at
// random, or as many of these as fit into a time.
func TestChaos(t *testing.T) {
	if !inChaos() {
		t.Skip("it takes hours: make chaos")
	}
	if chaos.seed == 0 {
		chaos.seed = uint64(time.Now().Unix())
	}
	runs := slices.Concat(disturbed(t), walks(t), turnedTrials(t))
	if len(runs) == 0 {
		t.Fatalf("no plan begins with %s", chaos.plan)
	}
	rand.New(rand.NewPCG(chaos.seed, 0)).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	figures := &tally{planned: len(runs), begun: time.Now(), kinds: map[string]*kindTally{}}
	t.Cleanup(figures.print)
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			if chaos.span > 0 && time.Since(figures.begun) > chaos.span {
				t.Skip("the time is over")
			}
			begun := time.Now()
			met := run.do(t)
			figures.add(run.name, met, time.Since(begun))
		})
	}
}

// trial is one run of TestChaos; it reports whether there was what it was to disturb.
type trial struct {
	name string
	do   func(*testing.T) (met bool)
}

// asked reports whether runs of that name, or with that beginning of a name, may be asked for.
func asked(name string) bool {
	return strings.HasPrefix(name, chaos.plan) || strings.HasPrefix(chaos.plan, name)
}

func disturbed(t *testing.T) []trial {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(lives)), func(life string) bool { return !asked(life + "/") })
	effects, ends := undisturbed(t, names...)
	var runs []trial
	if parts := strings.Split(chaos.plan, "/"); len(parts) == 3 { // this run may not have had that effect
		effects = map[string][]string{parts[0]: {parts[1]}}
	}
	for _, life := range names {
		for _, effect := range effects[life] {
			for _, m := range slices.Concat(crashes, refusals(effect)) {
				if p := (plan{life, effect, m}); asked(p.String()) {
					runs = append(runs, trial{p.String(), func(t *testing.T) bool { return p.run(t, ends[p.life]) }})
				}
			}
		}
	}
	return runs
}

func walks(t *testing.T) []trial {
	if !asked("walk/") {
		return nil
	}
	const most = 300
	seeds := []uint64{0}
	if _, err := fmt.Sscanf(chaos.plan, "walk/%d", &seeds[0]); err != nil {
		seeds = nil
		for n := range uint64(most) {
			seeds = append(seeds, chaos.seed*most+n)
		}
	}
	ends := fresh(t, seeds)
	var runs []trial
	for _, seed := range seeds {
		runs = append(runs, trial{fmt.Sprintf("walk/%d", seed), func(t *testing.T) bool {
			walkOn(t, seed, ends)
			return true
		}})
	}
	return runs
}

// tally of what was run.
type tally struct {
	planned int
	begun   time.Time

	mu    sync.Mutex
	kinds map[string]*kindTally
}

type kindTally struct {
	ended, met int
	took       time.Duration
}

func (y *tally) add(name string, met bool, took time.Duration) {
	kind, _, _ := strings.Cut(name, "/")
	y.mu.Lock()
	defer y.mu.Unlock()
	k := y.kinds[kind]
	if k == nil {
		k = &kindTally{}
		y.kinds[kind] = k
	}
	k.ended++
	k.took += took
	if met {
		k.met++
	}
}

// print to where a test that passes is heard as well.
func (y *tally) print() {
	y.mu.Lock()
	defer y.mu.Unlock()
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(y.kinds)) {
		k := y.kinds[kind]
		all += k.ended
		fmt.Printf("%-8s %5d came to their end, %5d of them disturbed, %5.1f s each\n", kind, k.ended, k.met, k.took.Seconds()/float64(k.ended))
	}
	fmt.Printf("%d of %d plans in %s, seed %d\n", all, y.planned, time.Since(y.begun).Round(time.Second), chaos.seed)
}
