//go:build env

package reconcile_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/e2e/history"
)

// trial is one plan, by a name that TestChaos runs it by.
type trial struct {
	name string
	do   func(*testing.T) ending
}

// ending of a plan that came to its end: whether there was what it was to disturb, how many calls
// that only read failed, and what became of the clients' writes.
type ending struct {
	met    bool
	unread int
	writes history.Result
}

// floor is the share of plans that must have met what they were to disturb. A plan that met nothing
// has shown nothing; but how often the status is written, for example, depends on which of two
// events the operator hears first.
const floor = 0.8

// tally counts plans. At the end of its test it tells what it counted, and fails the test below the
// floor.
type tally struct {
	test   *testing.T
	begun  time.Time
	ledger *ledger // of plans that ended in an earlier run; nil for none

	mu      sync.Mutex
	there   int // plans that there are
	started int
	earlier int                   // that ended in earlier runs
	kinds   map[string]*kindTally // by what the name of a plan begins with
	injured map[mode]int          // lives that were disturbed in one effect, by how
	unmet   []string              // plans that found nothing to disturb
	unread  int
	writes  history.Result // of all together; the longest pause of any
}

type kindTally struct {
	ended, met int
	took       time.Duration
}

func newTally(t *testing.T) *tally {
	y := &tally{test: t, begun: time.Now(), kinds: map[string]*kindTally{}, injured: map[mode]int{}}
	t.Cleanup(y.judge)
	return y
}

// plan is run beside others.
func (y *tally) plan(t *testing.T, p trial) {
	y.offer(1)
	t.Run(p.name, func(t *testing.T) {
		t.Parallel()
		y.run(t, p)
	})
}

// together runs plans in one run, beside others. Each of them counts.
func (y *tally) together(t *testing.T, ps together, do func(*testing.T) []ending) {
	y.offer(len(ps))
	t.Run(ps.String(), func(t *testing.T) {
		t.Parallel()
		y.runAll(t, ps.String(), ps.names(), do)
	})
}

// until runs plans in their order, by so many workers, and begins none when span is over; 0 is as
// long as it takes. Span begins when the first worker has its turn among the other tests.
func (y *tally) until(t *testing.T, span time.Duration, workers int, plans []trial) {
	y.offer(len(plans))
	queue := make(chan trial, len(plans))
	for _, p := range plans {
		queue <- p
	}
	close(queue)
	end := sync.OnceValue(func() time.Time { return time.Now().Add(span) })
	for n := range workers {
		t.Run(fmt.Sprintf("Worker%d", n), func(t *testing.T) {
			t.Parallel()
			end()
			for p := range queue {
				if span > 0 && time.Now().After(end()) {
					return
				}
				t.Run(p.name, func(t *testing.T) { y.run(t, p) })
			}
		})
	}
}

func (y *tally) offer(plans int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.there += plans
}

func (y *tally) run(t *testing.T, p trial) {
	y.runAll(t, p.name, []string{p.name}, func(t *testing.T) []ending { return []ending{p.do(t)} })
}

// runAll runs what is several plans, by their names, or one. It is run again by its own name.
func (y *tally) runAll(t *testing.T, again string, plans []string, do func(*testing.T) []ending) {
	var keep func() error
	t.Cleanup(func() { // the last clean-up: others judge the plans as well
		switch {
		case t.Failed():
			t.Logf("once more: go test -tags env -count=1 -timeout 0 ./reconcile -run TestChaos -chaos.plan '%s'", again)
			for _, name := range plans {
				y.fail(name)
			}
		case keep != nil:
			if err := keep(); err != nil {
				t.Errorf("keep that this plan has ended: %v", err)
			}
		}
	})
	y.mu.Lock()
	y.started += len(plans)
	y.mu.Unlock()
	begun := time.Now()
	endings := do(t)
	took := time.Since(begun) / time.Duration(len(plans))
	for n, name := range plans {
		y.add(name, endings[n], took)
	}
	keep = func() error {
		var errs []error
		for n, name := range plans {
			e := endings[n]
			errs = append(errs, y.ledger.keep(ledgerLine{Plan: name, Met: e.met, Unread: e.unread, Writes: e.writes, Took: took}))
		}
		return errors.Join(errs...)
	}
}

// fail keeps that a plan has failed. It is run again, and the figures tell that it failed before.
func (y *tally) fail(plan string) {
	if err := y.ledger.keep(ledgerLine{Plan: plan, Failed: true}); err != nil {
		y.test.Errorf("keep that %s has failed: %v", plan, err)
	}
}

func (y *tally) add(name string, o ending, took time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	kind, _, _ := strings.Cut(name, "/")
	k := y.kinds[kind]
	if k == nil {
		k = &kindTally{}
		y.kinds[kind] = k
	}
	k.ended++
	k.took += took
	if !o.met {
		y.unmet = append(y.unmet, name)
	} else {
		k.met++
		if _, disturbed := lives[kind]; disturbed {
			y.injured[mode(name[strings.LastIndex(name, "/")+1:])]++
		}
	}
	y.unread += o.unread
	y.writes = sumOf(y.writes, o.writes)
}

// sumOf both; the longest pause of any.
func sumOf(a, b history.Result) history.Result {
	a.Attempted += b.Attempted
	a.Acknowledged += b.Acknowledged
	a.Longest = max(a.Longest, b.Longest)
	return a
}

// judge tells the figures as attributes of the test, which are heard of a test that passes as well.
func (y *tally) judge() {
	y.mu.Lock()
	defer y.mu.Unlock()
	ended, met := 0, 0
	var kinds, modes []string
	for _, kind := range slices.Sorted(maps.Keys(y.kinds)) {
		k := y.kinds[kind]
		ended, met = ended+k.ended, met+k.met
		kinds = append(kinds, fmt.Sprintf("%s %d/%d (%.0f s)", kind, k.met, k.ended, k.took.Seconds()/float64(k.ended)))
	}
	for _, how := range slices.Sorted(maps.Keys(y.injured)) {
		modes = append(modes, fmt.Sprintf("%s %d", how, y.injured[how]))
	}
	y.test.Attr("plans", fmt.Sprintf("of %d there are, %d began, %d ended, %d met what they disturb, in %s",
		y.there, y.started, ended, met, time.Since(y.begun).Round(time.Second)))
	y.test.Attr("kinds", "met/ended (time of each): "+strings.Join(kinds, ", "))
	if len(modes) > 0 {
		y.test.Attr("disturbed", strings.Join(modes, ", "))
	}
	if y.earlier > 0 {
		y.test.Attr("earlier", fmt.Sprintf("%d of them in earlier runs of the same code, in which %d plans failed: %s",
			y.earlier, len(y.ledger.failed), strings.Join(y.ledger.failed, ", ")))
	}
	if y.unread > 0 {
		y.test.Attr("not-read", fmt.Sprintf("%d calls", y.unread))
	}
	if len(y.unmet) > 0 {
		slices.Sort(y.unmet)
		y.test.Attr("not-met", strings.Join(y.unmet, ", "))
	}
	y.test.Attr("writes", fmt.Sprintf("%d of %d acknowledged and there, longest pause %s",
		y.writes.Acknowledged, y.writes.Attempted, y.writes.Longest.Round(time.Millisecond)))
	// Of a few plans one may miss what it disturbs: of four, three are less than the floor, and no
	// finding.
	if missed := ended - met; met == 0 || missed > 1 && float64(met) < floor*float64(ended) {
		y.test.Errorf("only %d of %d plans came to the operation that they disturb, want %.0f %%; the others tested nothing", met, ended, 100*floor)
	}
	for kind, k := range y.kinds {
		if k.ended >= 5 && float64(k.met) < floor/2*float64(k.ended) {
			y.test.Errorf("%s: only %d of %d plans came to the operation that they disturb; the others tested nothing", kind, k.met, k.ended)
		}
	}
}
