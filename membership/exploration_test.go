package membership

import (
	"flag"
	"maps"
	"testing"
	"time"

	"quorate.dev/e2e/share"
)

var full = flag.Bool("explore.full", false, "explore the large bounds too")

func init() { share.Register(flag.CommandLine) }

// exploration is a bound, and when it is explored.
type exploration[B any] struct {
	reason string
	bound  B
	takes  extent
}

// extent is how long an exploration takes on one processor.
type extent int

const (
	moment  extent = iota
	seconds        // a share of these is explored; all with -long
	minutes        // with -explore.full, which explores all bounds
)

// toExplore are those to carry out: of these that take seconds k.
func toExplore[B any](t *testing.T, all map[string]exploration[B], k int) map[string]exploration[B] {
	t.Helper()
	if *full {
		return all
	}
	now, shared := map[string]exploration[B]{}, map[string]exploration[B]{}
	for name, e := range all {
		switch e.takes {
		case moment:
			now[name] = e
		case seconds:
			shared[name] = e
		case minutes:
		}
	}
	if len(shared) > 0 {
		maps.Copy(now, share.Of(t, shared, k))
	}
	return now
}

// bounds of the exploration. Within each, these may happen at any time and as often as they like:
// the operator crashes between any two effects, or goes on after one has failed; Pods are deleted,
// one or all; containers and etcd are slow; clients write; spec.replicas changes.
var bounds = map[string]exploration[bound]{
	"One": {
		reason: "A single member, with everything that can go wrong with volumes, status and spec",
		bound: bound{
			sizes: []uint8{0, 1}, first: 1, stalls: true, states: 200_000,
			budget: budget{losses: 2, wipes: 1, deletions: 1, statusWipes: 1, foreign: 1},
		},
	},
	"OneRestored": {
		reason: "A volume is exchanged for one of another cluster",
		bound: bound{
			sizes: []uint8{0, 1}, first: 1, states: 200_000,
			budget: budget{losses: 1, deletions: 1, statusWipes: 1, restores: 1},
		},
	},
	"OneCopied": {
		reason: "The volume comes back as another object, beside everything else, and is accepted or not",
		bound: bound{
			sizes: []uint8{0, 1}, first: 1, states: 400_000,
			budget: budget{losses: 1, deletions: 1, statusWipes: 1, copies: 1},
		},
	},
	"OneCopiedStale": {
		reason: "The same while an operator acts on old views",
		bound:  bound{sizes: []uint8{1}, first: 1, states: 400_000, budget: budget{losses: 1, copies: 1, delays: 1}},
	},
	"ThreeCopied": {
		reason: "Volumes of three come back as other objects, all of them or some, with the EtcdCluster or without its status",
		bound:  bound{sizes: []uint8{3}, first: 3, kills: true, states: 400_000, budget: budget{kills: 1, deletions: 1, copies: 3}},
	},
	"OneStale": {
		reason: "An operator acts on old views, beside one that does not",
		bound: bound{
			sizes: []uint8{1}, first: 1, states: 400_000,
			budget: budget{losses: 1, wipes: 1, delays: 1},
		},
	},
	"Three": {
		reason: "Three members lose a volume, its content or the status",
		bound:  bound{sizes: []uint8{0, 3}, first: 3, states: 200_000, budget: budget{losses: 1}},
	},
	"Resized": {
		reason: "The spec asks for one and for three, in any order and in the middle of everything",
		bound:  bound{sizes: []uint8{0, 1, 3}, first: 3, states: 200_000},
	},
	"OneMute": {
		reason: "etcd of a single member ends before it has voted, beside what else may go wrong",
		bound: bound{
			sizes: []uint8{0, 1}, first: 1, stalls: true, states: 400_000,
			budget: budget{losses: 1, wipes: 1, deletions: 1, statusWipes: 1, mutes: 2},
		},
	},
	"OneMuteStale": {
		reason: "The same while an operator acts on old views",
		bound:  bound{sizes: []uint8{1}, first: 1, states: 400_000, budget: budget{wipes: 1, delays: 1, mutes: 1}},
	},
	"ThreeMute": {
		reason: "etcd of any of three ends before it has voted: one that has is enough",
		bound:  bound{sizes: []uint8{3}, first: 3, kills: true, states: 400_000, budget: budget{kills: 1, mutes: 3}},
	},
	"OneFromSnapshot": {
		reason: "A single member starts from a stored snapshot, with everything that can go wrong with volumes, status and spec",
		bound: bound{
			sizes: []uint8{0, 1}, first: 1, restore: true, states: 400_000,
			budget: budget{losses: 1, wipes: 1, deletions: 1, statusWipes: 1},
		},
	},
	"OneFromSnapshotStale": {
		reason: "The same while an operator acts on old views",
		bound:  bound{sizes: []uint8{1}, first: 1, restore: true, kills: true, states: 400_000, budget: budget{kills: 1, delays: 1}},
	},
	"ThreeFromSnapshot": {
		reason: "Three members start from a stored snapshot, a newer one is stored meanwhile, and a volume is wiped",
		bound:  bound{sizes: []uint8{3}, first: 3, restore: true, kills: true, states: 400_000, budget: budget{kills: 1, wipes: 1}},
	},
	"ThreeFromSnapshotFaults": {
		reason: "The same, and a volume is lost, or the EtcdCluster is applied again",
		bound: bound{
			sizes: []uint8{3}, first: 3, restore: true, kills: true, states: 8_000_000,
			budget: budget{kills: 1, losses: 1, wipes: 1, deletions: 1},
		},
		takes: minutes,
	},
	"ThreeFromSnapshotStale": {
		reason: "Three members start from a stored snapshot under two operators",
		bound:  bound{sizes: []uint8{3}, first: 3, restore: true, kills: true, states: 8_000_000, budget: budget{kills: 1, delays: 1}},
		takes:  minutes,
	},
	"ThreeLosses": {
		reason: "A majority of the volumes is lost, and the EtcdCluster is applied again",
		bound:  bound{sizes: []uint8{0, 3}, first: 3, states: 4_000_000, budget: budget{losses: 2, deletions: 1}},
		takes:  minutes,
	},
	"ThreeFaults": {
		reason: "One of each",
		bound:  bound{sizes: []uint8{0, 3}, first: 3, states: 4_000_000, budget: budget{losses: 1, wipes: 1, statusWipes: 1, foreign: 1}},
		takes:  minutes,
	},
	"ThreeRestored": {
		reason: "A volume of three is exchanged for one of another cluster, and the EtcdCluster is applied again",
		bound:  bound{sizes: []uint8{0, 3}, first: 3, states: 4_000_000, budget: budget{deletions: 1, restores: 1}},
		takes:  minutes,
	},
	"ThreeSpec": {
		reason: "Suspended, and stuck on an image that is mended",
		bound:  bound{sizes: []uint8{0, 3}, first: 3, states: 4_000_000, stalls: true},
		takes:  minutes,
	},
	"OneStaleAgain": {
		reason: "An operator acts on views from before the EtcdCluster was applied again",
		bound: bound{
			sizes: []uint8{0, 1}, first: 1, states: 4_000_000,
			budget: budget{losses: 1, deletions: 1, delays: 1},
		},
		takes: minutes,
	},
	"OneFaults": {
		reason: "As many faults as possible for a single member",
		bound: bound{
			sizes: []uint8{1}, first: 1, states: 4_000_000,
			budget: budget{losses: 1, wipes: 1, deletions: 1, statusWipes: 1, delays: 1},
		},
		takes: minutes,
	},
	"ThreeStale": {
		reason: "An operator acts on old views of three members, beside one that does not",
		bound:  bound{sizes: []uint8{3}, first: 3, kills: true, states: 4_000_000, budget: budget{kills: 1, losses: 1, delays: 1}},
		takes:  minutes,
	},
	"Five": {
		reason: "Five members",
		bound:  bound{sizes: []uint8{5}, first: 5, states: 4_000_000},
		takes:  minutes,
	},
}

// TestExplore searches every state that is reachable within a bound, with the real rules, for a
// violated invariant: S1 and S2 (no acknowledged write is lost, no member starts empty under an
// identity that had data), S3 (no bootstrap once formed), S12 (never two clusters), S15 (what
// serves is not stopped); and from each state follows how it goes on when nothing more goes wrong,
// which must end healthy, hibernated, at a change of the members (which goes on in another model),
// or where something was lost at a stall that says what to do (L1 to L5).
func TestExplore(t *testing.T) {
	states := counted(t, "states")
	for name, tc := range toExplore(t, bounds, 1) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			x, bad := explore(tc.bound, planner{phases: Phases})
			states.Add(int64(len(x.states)))
			t.Logf("%s: %d states, %d edges, %d different looks, %.1f s", tc.reason, len(x.states), x.edges, len(x.decided), time.Since(start).Seconds())
			if bad != nil {
				t.Error(bad)
			}
		})
	}
}
