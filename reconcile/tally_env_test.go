//go:build env

package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/e2e/history"
)

// ending of a plan that came to its end: whether there was what it was to disturb, how many calls that only read failed, and
// what became of the clients' writes.
type ending struct {
	met    bool
	unread int
	writes history.Result
}

// tally of plans, which is printed when the test that began it is over.
type tally struct {
	begun   time.Time
	planned int

	mu      sync.Mutex
	kinds   map[string]*kindTally // by what the name of a plan begins with
	injured map[mode]int          // lives that were disturbed in one effect, by how
	unread  int
	writes  history.Result // of all together; the longest pause of any
}

type kindTally struct {
	ended, met int
	took       time.Duration
}

func newTally(t *testing.T) *tally {
	y := &tally{begun: time.Now(), kinds: map[string]*kindTally{}, injured: map[mode]int{}}
	t.Cleanup(func() { y.print(t.Name()) })
	return y
}

// plan is run beside others, and counted when it has come to its end. One that fails says how it is run once more: TestChaos has
// all plans, by the same names.
func (y *tally) plan(t *testing.T, name string, run func(*testing.T) ending) {
	y.planned++
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("once more: go test -tags env ./reconcile -run TestChaos -chaos.plan '%s'", name)
			}
		})
		begun := time.Now()
		y.add(name, run(t), time.Since(begun))
	})
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
	if o.met {
		k.met++
		if _, disturbed := lives[kind]; disturbed {
			y.injured[mode(name[strings.LastIndex(name, "/")+1:])]++
		}
	}
	y.unread += o.unread
	y.writes.Attempted += o.writes.Attempted
	y.writes.Acknowledged += o.writes.Acknowledged
	y.writes.Longest = max(y.writes.Longest, o.writes.Longest)
}

// print to where a test that passes is heard as well.
func (y *tally) print(test string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(y.kinds)) {
		k := y.kinds[kind]
		all += k.ended
		fmt.Printf("%s: %-8s %5d came to their end, %5d of them disturbed, %5.1f s each\n", test, kind, k.ended, k.met, k.took.Seconds()/float64(k.ended))
	}
	for _, how := range slices.Sorted(maps.Keys(y.injured)) {
		fmt.Printf("%s: %-16s %5d times\n", test, how, y.injured[how])
	}
	if y.unread > 0 {
		fmt.Printf("%s: %-16s %5d calls\n", test, "not read", y.unread)
	}
	fmt.Printf("%s: %d of %d plans in %s; %d of %d writes acknowledged, longest pause %s\n", test, all, y.planned,
		time.Since(y.begun).Round(time.Second), y.writes.Acknowledged, y.writes.Attempted, y.writes.Longest.Round(time.Millisecond))
}
