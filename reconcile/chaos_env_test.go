//go:build env

package reconcile_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quorate.dev/e2e/share"
)

var chaos struct {
	all    bool
	span   time.Duration
	part   string
	plan   string
	ledger string
}

func init() {
	share.Register(flag.CommandLine)
	flag.BoolVar(&chaos.all, "chaos.all", false, "TestChaos: run every plan there is")
	flag.DurationVar(&chaos.span, "chaos.for", 0, "TestChaos: begin new plans for so long, in an order by -seed")
	flag.StringVar(&chaos.ledger, "chaos.ledger", "", "TestChaos: a file of the plans that have ended well; a run that was interrupted goes on with the others")
	flag.StringVar(&chaos.part, "chaos.part", "", "TestChaos: run all plans of one part of them, as make test-long does; chaosParts has the names")
	flag.StringVar(&chaos.plan, "chaos.plan", "", "TestChaos: run the plans that begin so, as a failure has named them; several beginnings with commas between them")
}

func inChaos() bool { return chaos.all || chaos.span > 0 || chaos.part != "" || chaos.plan != "" }

// TestChaos runs every disturbance there is of every life, turns the version at every effect of a
// change of it, and walks at random and to bad values and back, or as many of these as fit into a
// time.
func TestChaos(t *testing.T) {
	if !inChaos() {
		t.Skip("it takes hours: make chaos")
	}
	seed := share.Seed(t)
	if chaos.part != "" {
		chaos.plan = plansOf(t, chaos.part)
	}
	runs := slices.Concat(disturbed(t), walks(t, seed), turnedTrials(t), allRecoveries(t))
	if len(runs) == 0 {
		t.Fatalf("no plan begins with %s", chaos.plan)
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	figures := newTally(t)
	var err error
	if figures.ledger, err = openLedger(chaos.ledger); err != nil {
		t.Fatal(err)
	}
	left := figures.ledger.remaining(runs, figures.add)
	figures.offer(len(runs) - len(left))
	figures.earlier = len(runs) - len(left)
	figures.until(t, chaos.span, parallel(), left)
}

// parallel is how many tests run at a time.
func parallel() int {
	n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil {
		panic(err) // it is a number
	}
	return n
}

// asked reports whether runs of that name, or with that beginning of a name, may be asked for.
func asked(name string) bool {
	return slices.ContainsFunc(strings.Split(chaos.plan, ","), func(beginning string) bool {
		several := strings.Contains(beginning, "+") && strings.Count(name, "/") > 1 // none of them is run by itself
		return strings.HasPrefix(name, beginning) || strings.HasPrefix(beginning, name) && !several
	})
}

func disturbed(t *testing.T) []trial {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(lives)), func(life string) bool { return !asked(life+"/") && !asked("blind/"+life+"/") })
	effects, ends := undisturbed(t, names...)
	var runs []trial
	for plan := range strings.SplitSeq(chaos.plan, ",") {
		parts := strings.Split(plan, "/")
		switch {
		case strings.Contains(plan, "+"):
			ps, err := parseTogether(plan)
			if err != nil || ends[ps[0].life] == nil {
				t.Fatalf("-chaos.plan: no life, or error %v: write it as a failure has named it", err)
			}
			runs = append(runs, trial{plan, func(t *testing.T) ending { return asOne(ps.run(t, ends[ps[0].life], effects[ps[0].life])) }})
		case len(parts) == 3 && !slices.Contains(effects[parts[0]], parts[1]): // this run may not have had the effect that is named
			effects[parts[0]] = append(effects[parts[0]], parts[1])
		}
	}
	return append(runs, slices.DeleteFunc(disturbances(effects, ends), func(p trial) bool { return !asked(p.name) })...)
}

// disturbances are all that there are of lives with these effects and ends.
func disturbances(effects, ends map[string][]string) []trial {
	var runs []trial
	for _, life := range slices.Sorted(maps.Keys(effects)) {
		for _, effect := range effects[life] {
			for _, m := range slices.Concat(deaths(effect), distinctRefusals(effect)) {
				p := plan{life, effect, m}
				runs = append(runs, trial{p.String(), func(t *testing.T) ending { return p.run(t, ends[p.life]) }})
			}
		}
		for _, b := range blindnesses(life) {
			runs = append(runs, trial{b.String(), func(t *testing.T) ending { return b.run(t, ends[b.life]) }})
		}
	}
	return runs
}

func walks(t *testing.T, seed uint64) []trial {
	if !asked("walk/") {
		return nil
	}
	const most = 300
	seeds := []uint64{0}
	if _, err := fmt.Sscanf(chaos.plan, "walk/%d", &seeds[0]); err != nil {
		seeds = nil
		for n := range uint64(most) {
			seeds = append(seeds, seed*most+n)
		}
	}
	ends := fresh(t, seeds)
	var runs []trial
	for _, seed := range seeds {
		runs = append(runs, trial{fmt.Sprintf("walk/%d", seed), func(t *testing.T) ending { return walkOn(t, seed, ends) }})
	}
	return runs
}
