//go:build env

package reconcile_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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
	flag.StringVar(&chaos.plan, "chaos.plan", "", "TestChaos: run the plans that begin so, as a failure has named them; several beginnings with commas between them")
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
	fmt.Printf("%s: seed %d\n", t.Name(), chaos.seed)
	runs := slices.Concat(disturbed(t), walks(t), turnedTrials(t))
	if len(runs) == 0 {
		t.Fatalf("no plan begins with %s", chaos.plan)
	}
	rand.New(rand.NewPCG(chaos.seed, 0)).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	figures := newTally(t)
	for _, run := range runs {
		figures.plan(t, run.name, func(t *testing.T) ending {
			if chaos.span > 0 && time.Since(figures.begun) > chaos.span {
				t.Skip("the time is over")
			}
			return run.do(t)
		})
	}
}

// trial is one run of TestChaos.
type trial struct {
	name string
	do   func(*testing.T) ending
}

// asked reports whether runs of that name, or with that beginning of a name, may be asked for.
func asked(name string) bool {
	return slices.ContainsFunc(strings.Split(chaos.plan, ","), func(beginning string) bool {
		return strings.HasPrefix(name, beginning) || strings.HasPrefix(beginning, name)
	})
}

func disturbed(t *testing.T) []trial {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(lives)), func(life string) bool { return !asked(life+"/") && !asked("blind/"+life+"/") })
	effects, ends := undisturbed(t, names...)
	var runs []trial
	for plan := range strings.SplitSeq(chaos.plan, ",") { // this run may not have had the effect that is named
		if parts := strings.Split(plan, "/"); len(parts) == 3 && !slices.Contains(effects[parts[0]], parts[1]) {
			effects[parts[0]] = append(effects[parts[0]], parts[1])
		}
	}
	for _, life := range names {
		for _, effect := range effects[life] {
			for _, m := range slices.Concat(crashes, refusals(effect)) {
				if p := (plan{life, effect, m}); asked(p.String()) {
					runs = append(runs, trial{p.String(), func(t *testing.T) ending { return p.run(t, ends[p.life]) }})
				}
			}
		}
		for _, b := range blindnesses(life) {
			if asked(b.String()) {
				runs = append(runs, trial{b.String(), func(t *testing.T) ending { return b.run(t, ends[b.life]) }})
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
		runs = append(runs, trial{fmt.Sprintf("walk/%d", seed), func(t *testing.T) ending { return walkOn(t, seed, ends) }})
	}
	return runs
}
