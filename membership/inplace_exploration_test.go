package membership

import (
	"maps"
	"testing"
	"time"
)

// swapBounds of the exploration. Within each, these may happen at any time and as often as they
// like: the operator crashes between any two effects, containers and etcd are slow, Pods take their
// time to stop, and a person deletes the EtcdRestore.
var swapBounds = map[string]exploration[swapBound]{
	"One": {
		reason: "A cluster of one is restored while it serves; its Pods go, its node starts again, its disk is wiped, the store breaks",
		bound:  swapBound{size: 1, anyway: true, breaks: true, newer: true, states: 400_000, budget: swapBudget{restores: 1, kills: 1, wipes: 1}},
	},
	"OneRefused": {
		reason: "What serves is not restored unless that is asked for",
		bound:  swapBound{size: 1, states: 400_000, budget: swapBudget{restores: 2, kills: 1}},
	},
	"OneLosses": {
		reason: "A person deletes volumes meanwhile",
		bound:  swapBound{size: 1, anyway: true, breaks: true, states: 400_000, budget: swapBudget{restores: 1, losses: 2}},
	},
	"OneStale": {
		reason: "An operator acts on old views",
		bound:  swapBound{size: 1, anyway: true, states: 400_000, budget: swapBudget{restores: 1, delays: 1}},
	},
	"OneTwice": {
		reason: "Another EtcdRestore comes after the first, or in its place, and takes back or not what it began",
		bound:  swapBound{size: 1, anyway: true, newer: true, states: 400_000, budget: swapBudget{restores: 2}},
	},
	"OneTwiceAgain": {
		reason: "The same, of the same name",
		bound:  swapBound{size: 1, anyway: true, again: true, states: 400_000, budget: swapBudget{restores: 2}},
	},
	"OneTwiceDiscarded": {
		reason: "The first is to keep what was set aside, the second to delete it",
		bound:  swapBound{size: 1, anyway: true, discards: 1 << 3, states: 400_000, budget: swapBudget{restores: 2}},
	},
	"OneWiped": {
		reason: "The status is wiped at any time",
		bound:  swapBound{size: 1, anyway: true, states: 400_000, budget: swapBudget{restores: 1, statusWipes: 1}},
	},
	"OneLate": {
		reason: "A request arrives late, after anything else has happened",
		bound:  swapBound{size: 1, anyway: true, states: 400_000, budget: swapBudget{restores: 1, kills: 1, flights: 1}},
	},
	"OneHeld": {
		reason: "An EtcdRestore is suspended, and a newer snapshot is stored before it is not",
		bound:  swapBound{size: 1, anyway: true, newer: true, held: true, states: 400_000, budget: swapBudget{restores: 1}},
	},
	"OneHeldStale": {
		reason: "It is suspended, and an operator acts on old views",
		bound:  swapBound{size: 1, anyway: true, newer: true, held: true, behind: []staleness{oldCluster, oldDecision}, late: Replace, safety: true, states: 400_000, budget: swapBudget{restores: 1, delays: 1}},
	},
	"OneSurvivorHeld": {
		reason: "It is to take the data of a member, whose volume goes before it does",
		bound:  swapBound{size: 1, survivor: true, anyway: true, held: true, states: 400_000, budget: swapBudget{restores: 1, losses: 1}},
	},
	"Three": {
		reason: "A cluster of three is restored while it serves",
		bound:  swapBound{size: 3, anyway: true, breaks: true, states: 400_000, budget: swapBudget{restores: 1}},
	},
	"ThreeLost": {
		reason: "A cluster that has lost its quorum is restored",
		bound:  swapBound{size: 3, lost: 2, breaks: true, states: 400_000, budget: swapBudget{restores: 1}},
	},
	"OneSurvivor": {
		reason: "A cluster of one goes on with its own data while it serves; its Pods go, its node starts again, its disk is wiped",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1, kills: 1, wipes: 1}},
	},
	"OneSurvivorLosses": {
		reason: "A person deletes the volumes of both members meanwhile",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1, losses: 2}},
	},
	"OneSurvivorDown": {
		reason: "It goes on with its own data where it does not serve, and not otherwise",
		bound:  swapBound{size: 1, survivor: true, states: 400_000, budget: swapBudget{restores: 1, kills: 2}},
	},
	"OneSurvivorStale": {
		reason: "An operator acts on an old EtcdCluster",
		bound:  swapBound{size: 1, survivor: true, anyway: true, behind: []staleness{oldCluster}, states: 400_000, budget: swapBudget{restores: 1, delays: 1}},
	},
	"OneSurvivorPaused": {
		reason: "An operator pauses before it begins a copy",
		bound:  swapBound{size: 1, survivor: true, anyway: true, behind: []staleness{oldDecision}, late: CopyData, states: 400_000, budget: swapBudget{restores: 1, kills: 1, delays: 1}},
	},
	"OneSurvivorStaleAny": {
		reason: "An operator acts on any old view",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1, delays: 1}},
		takes:  minutes,
	},
	"OneSurvivorTwice": {
		reason: "Another EtcdRestore comes after the first, or in its place",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 2}},
	},
	"OneSurvivorWiped": {
		reason: "The status is wiped at any time",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1, statusWipes: 1}},
	},
	"OneSurvivorLate": {
		reason: "A request arrives late, that for a Job too",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1, kills: 1, flights: 1}},
	},
	"OneSurvivorLateWiped": {
		reason: "The same, and a disk is wiped",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1, wipes: 1, flights: 1}},
	},
	"OneSurvivorTwiceWiped": {
		reason: "The status of two restores is wiped, and names come again",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 400_000, budget: swapBudget{restores: 2, statusWipes: 1}},
	},
	"OneMixed": {
		reason: "Another EtcdRestore comes after the first, or in its place, and one takes a snapshot, the other one the data of a member",
		bound:  swapBound{size: 1, mixed: true, anyway: true, newer: true, states: 400_000, budget: swapBudget{restores: 2}},
	},
	"OneMixedDown": {
		reason: "The same where the cluster does not serve, and not otherwise",
		bound:  swapBound{size: 1, mixed: true, states: 400_000, budget: swapBudget{restores: 2, kills: 1}},
	},
	"OneMixedLate": {
		reason: "A request arrives late, that for a Job too, while the other one goes on",
		bound:  swapBound{size: 1, mixed: true, anyway: true, states: 400_000, budget: swapBudget{restores: 2, flights: 1}},
	},
	"OneMixedWiped": {
		reason: "The status is wiped, and names come again",
		bound:  swapBound{size: 1, mixed: true, anyway: true, states: 400_000, budget: swapBudget{restores: 2, statusWipes: 1}},
		takes:  seconds,
	},
	"OneMixedLateWiped": {
		reason: "The same, and the Job of a copy comes late, to a volume of that name",
		bound:  swapBound{size: 1, mixed: true, anyway: true, late: CopyData, prompt: true, states: 4_000_000, budget: swapBudget{restores: 2, statusWipes: 1, flights: 1}},
		takes:  seconds,
	},
	"OneMixedLosses": {
		reason: "A person deletes a volume meanwhile",
		bound:  swapBound{size: 1, mixed: true, anyway: true, breaks: true, states: 400_000, budget: swapBudget{restores: 2, losses: 1}},
		takes:  seconds,
	},
	"TwoMixed": {
		reason: "Of a cluster of two one member is left: the restore from it, or from a snapshot, is reverted or not, and the other one comes",
		bound:  swapBound{size: 2, mixed: true, lost: 1, breaks: true, states: 400_000, budget: swapBudget{restores: 2}},
	},
	"OneSurvivorFaults": {
		reason: "Requests arrive late, Pods go, volumes are deleted and disks wiped",
		bound:  swapBound{size: 1, survivor: true, anyway: true, states: 4_000_000, budget: swapBudget{restores: 1, kills: 1, losses: 1, wipes: 1, flights: 1}},
	},
	"ThreeSurvivor": {
		reason: "A cluster of three goes on with the data of the one member that is left",
		bound:  swapBound{size: 3, survivor: true, lost: 2, states: 400_000, budget: swapBudget{restores: 1, kills: 1}},
	},
	"ThreeSurvivorNamed": {
		reason: "One of three is named, while all serve",
		bound:  swapBound{size: 3, survivor: true, named: true, anyway: true, states: 400_000, budget: swapBudget{restores: 1}},
	},
	"ThreeLate": {
		reason: "A request for a member of three arrives late",
		bound:  swapBound{size: 3, anyway: true, states: 400_000, budget: swapBudget{restores: 1, flights: 1}},
		takes:  minutes,
	},
	"ThreeFaults": {
		reason: "A Pod goes, a volume is deleted, a disk is wiped",
		bound:  swapBound{size: 3, anyway: true, breaks: true, states: 4_000_000, budget: swapBudget{restores: 1, kills: 1, losses: 1, wipes: 1}},
		takes:  minutes,
	},
	"TwoWiped": {
		reason: "The status of a cluster of two is wiped",
		bound:  swapBound{size: 2, anyway: true, states: 4_000_000, budget: swapBudget{restores: 1, statusWipes: 1}},
		takes:  minutes,
	},
	"ThreeStale": {
		reason: "An operator acts on old views of three members",
		bound:  swapBound{size: 3, anyway: true, safety: true, behind: []staleness{oldCluster}, states: 4_000_000, budget: swapBudget{restores: 1, delays: 1}},
		takes:  minutes,
	},
	"TwoTwice": {
		reason: "Another EtcdRestore of a cluster of two",
		bound:  swapBound{size: 2, anyway: true, newer: true, discards: 1 << 2, states: 4_000_000, budget: swapBudget{restores: 2, kills: 1}},
		takes:  minutes,
	},
	"OneStaleKilled": {
		reason: "A Pod goes beside what an operator does on old views",
		bound:  swapBound{size: 1, anyway: true, safety: true, states: 4_000_000, budget: swapBudget{restores: 1, kills: 1, delays: 1}},
		takes:  minutes,
	},
	"OneTwiceStale": {
		reason: "An operator creates the volumes of the first restore while the second goes on",
		bound:  swapBound{size: 1, anyway: true, again: true, behind: []staleness{oldDecision}, late: Provision, safety: true, states: 4_000_000, budget: swapBudget{restores: 2, delays: 1}},
		takes:  minutes,
	},
	"OneLateFaults": {
		reason: "A request arrives late, and Pods go, and the store breaks",
		bound:  swapBound{size: 1, anyway: true, states: 4_000_000, breaks: true, budget: swapBudget{restores: 1, kills: 2, flights: 1}},
		takes:  minutes,
	},
}

// TestExploreInPlace searches every state of a restore in place that is reachable within a bound,
// with the real rules, for a violated invariant: R1 (no former member runs beside a new one), R2 to
// R4 (clients reach one cluster, none that may be reverted, and not the former one after the new
// one), R5 (a new member starts with the chosen snapshot), R6 to R8 (former volumes are not
// started, not deleted before that is asked for and the new members have formed, and as before when
// the restore was taken back), R9 (what is called completed is of the snapshot), S2 and S3; and
// from each state follows how it goes on when nothing more goes wrong, which must end with the
// restored cluster, or the former one, healthy, or at a stall that a person must end (L1 to L5).
//
// Where the data of a member is restored (survivor), R5 is of its copy: a new member has that which
// was made for it, of what the former member had, and R10 is that no process writes what is copied.
// No copy is ever written to a former volume.
//
// R15: none begins while it is suspended, and what is restored is what its plan has told. R16: each
// restores from what it asks for, also where another one asks for something else (mixed).
//
// Where a majority is lost, and an EtcdRestore is created by itself (onLoss), R11 to R14 are of
// that: none is created, nor begins, while volumes of a quorum have their data, whatever an
// operator sees of them (R11); none earlier than the spec asks for (R12); no other one for the same
// loss, also where a person has deleted the first, or has taken it back (R13); none where another
// one is asked for (R14). And a majority that stays lost is restored by it, where that is certain
// and no person has deleted it (L6).
//
// Three windows are accepted, and are the life of a request. The Pod of a former member that was
// asked for before its volume was set aside, and that the API server makes after that, runs until
// it is seen, and then is stopped. The Job of a copy that was asked for before the restore was
// taken back, and that is made after that, has no volume to copy to, and stays until the next copy.
// The EtcdRestore that was created by itself, and that a person deletes before an operator has
// written down that it is there, is created once more, under the same name. Nothing else comes of
// them.
func TestExploreInPlace(t *testing.T) {
	states := counted(t, "states")
	all := maps.Clone(swapBounds)
	maps.Copy(all, swapLossBounds)
	for name, tc := range toExplore(t, all, 1) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			x, bad := exploreSwap(tc.bound, swapPlanner{phases: Phases})
			states.Add(int64(len(x.states)))
			t.Logf("%s: %d states, %d edges, %d different looks, %.1f s", tc.reason, len(x.states), x.edges, len(x.decided), time.Since(start).Seconds())
			if bad != nil {
				t.Error(bad)
			}
		})
	}
}
