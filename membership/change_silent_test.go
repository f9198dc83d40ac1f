package membership

import "testing"

// Nodes that fall silent, in the model of a cluster whose members come to run something else: the
// kubelet hears of nothing, and nothing is heard of it, while etcd there runs on. It hears of
// everything later, or the node is taken out of Kubernetes, or neither. A kubelet that starts a
// container again while it is silent is beyond this.

// rollSilence is what is heard of a member's node.
type rollSilence uint8

const (
	rollHears   rollSilence = iota
	rollUnheard             // nothing, and that is not known yet
	rollMarked              // nothing, as Kubernetes has found
	rollUnseen              // nothing, and its Pod was not ready before: then no mark is made
)

// silence begins and ends.
func (b *rollBound) silence(s *rollState, i int, visit rollVisit) {
	m := &s.roll.seats[i]
	become := func(what string, silent rollSilence) {
		to := *s
		to.roll.seats[i].silent = silent
		visit(what, to, "")
	}
	switch {
	case m.role < rollLearner || m.image == rollNone:
	case m.silent != rollHears:
		if m.silent == rollUnheard {
			become("it is found that "+seatName(i)+"'s node is silent", rollMarked)
		}
		become(seatName(i)+"'s node hears again", rollHears)
		to := *s
		to.roll.vanish(i)
		visit(seatName(i)+"'s node is taken out of Kubernetes", to, "")
	case s.budget.silences > 0:
		to := *s
		to.budget.silences--
		to.roll.seats[i].silent = rollUnheard
		if m.runs == rollNone {
			to.roll.seats[i].silent = rollUnseen
		}
		visit(seatName(i)+"'s node falls silent", to, "")
	}
}

// leftArmed reports whether a node that is silent would change what runs, and the spec does not ask
// for that.
func (w *roll) leftArmed() bool {
	return w.count(func(s *rollSeat) bool {
		return s.silent == rollMarked && !s.going && s.before && s.previous != rollNone && s.runs == s.volume && s.image != w.spec && s.volume == w.spec
	}) > 0
}

// awaits reports whether a node is waited for.
func (w *roll) awaits() bool {
	return w.count(func(s *rollSeat) bool { return s.voter() && s.silent != rollHears }) > 0
}

// silentMutants are what keeps a node that is silent from becoming a second member that is away.
var silentMutants = map[string]rollMutant{
	"NotTakenBack": {
		reason: "A node carries out what the spec has not asked for since long before",
		bound:  "OneSilent", mutant: rollWithout("cancelUpdate"), want: "L1: what was ordered on a node",
	},
	"NotTakenBackOfThree": {
		reason: "The same of three members",
		bound:  "Silent", mutant: rollWithout("cancelUpdate"), want: "L1: what was ordered on a node",
	},
	"TakenBackAnyhow": {
		reason: "What the spec asks for is taken back",
		bound:  "Silent", safety: true, mutant: rollReplace("cancelUpdate", func(d Desired, o Observed) (Step, bool) {
			return cancelUpdate(d, each(o, func(i *Instance) { i.Pod.Change = ChangeImage }))
		}), want: "what the spec asks for is taken back",
	},
	"BegunWhileSilent": {
		reason: "A change is begun that no kubelet would carry out, and the Pod could not be seen to end",
		bound:  "OneSilent", safety: true, mutant: rollReplace("waitForUpdate", func(d Desired, o Observed) (Step, bool) {
			return waitForUpdate(d, each(o, func(i *Instance) { i.Pod.Away = false }))
		}), want: "S7: a member is changed whose node is silent",
	},
	"BegunBesideSilent": {
		reason: "A member is changed while another one's node may be off",
		bound:  "Silent", safety: true, mutant: rollReplace("waitForUpdate", func(d Desired, o Observed) (Step, bool) {
			return waitForUpdate(d, each(o, func(i *Instance) { i.Pod.Away = i.Pod.Away && i.Pod.Change != ChangeNone }))
		}), want: "S7: a member is changed while the node of another one is silent",
	},
	"TakenBackLate": {
		reason: "An operator that is slow takes a change back that the node has carried out since",
		bound:  "OneSilentSlow", safety: true, mutant: rollPlanner{phases: Phases, operator: rollCareless{ignoresVersions: true}}, want: "a member that runs what it was changed to",
	},
}

// TestChangeSilentMutants shows that the exploration would find each of them.
func TestChangeSilentMutants(t *testing.T) { testMutants(t, silentMutants) }
