package membership

import "testing"

// Data in memory (spec.storage.medium Memory), in the model of a cluster whose members come to run
// something else. A volume is a Pod: it says what has run there last, and its image what comes
// next. Its image alone can be changed, and it must never be deleted.

// volume is what is known of that of a member.
func (g *rollGlance) volume(i int) Volume {
	s := &g.seats[i]
	v := s.claim(i)
	if !g.memory || s.lost {
		return v
	}
	if v.UID, v.Terminating = rollUID(i), s.going; s.image == rollNone {
		return Volume{}
	}
	return v
}

// carryInMemory yields the world after each effect of a step, as carry does: each is one write on
// the Pod, but that it is remembered which change has failed.
func (p *rollPlanner) carryInMemory(w roll, f rollFlight, yield func(to roll, complete bool)) {
	s := &w.seats[f.seat]
	c := p.operator
	if f.action == actDowngrade || f.action == actCancel {
		w.askEtcd(f)
		yield(w, true)
		return
	}
	if s.image == rollNone || !f.pod || !f.podVersion && !c.ignoresVersions || s.going {
		return
	}
	if f.action == actUpdate && w.refused == writePod && !c.announcesFirst { // it is tried before (dry run)
		return
	}
	if f.action == actUpdate && s.voter() && int(w.leader) == int(f.seat)+1 {
		w.handOver()
		yield(w, false)
	}
	over := w.unseen && s.changesMinor()
	if f.action == actPutBack && f.none && f.spec && !c.forgetsFailure {
		w.givenUp = true
		yield(w, false)
	}
	if w.refused == writePod {
		yield(w, true)
		return
	}
	switch f.action {
	case actRecord:
		s.volume, s.replays = f.to, f.replays
		if s.settled() {
			s.previous = rollNone
		}
	case actUpdate, actRepair:
		if s.image != f.to {
			s.previous, s.served = s.image, false
			if f.action == actUpdate { // one that is repaired is down by itself
				s.ours = true
				s.change(f)
			}
		}
		s.changeImage(f.to)
	case actPutBack:
		back := s.previous
		s.previous = rollNone
		failed := s.failing
		s.changeImage(back)
		s.failing = failed // the kubelet still says that the container failed
		s.undone, s.served, s.ours, s.trial = true, false, true, s.trial || over
	case actRaise:
		if s.volume.minor() == 5 && f.to.minor() > 5 && !c.forgetsLog {
			s.replays = marksAny
		}
		s.changeImage(f.to)
		s.previous, s.volume, s.served, s.trial = rollNone, f.to, false, false
	default:
		panic("membership: no step of data in memory")
	}
	yield(w, true)
}

// changeImage of a Pod. Where it has that image already, its container is not started again.
func (s *rollSeat) changeImage(to rollVersion) {
	s.undone = false
	if s.image != to {
		s.image, s.before, s.putOff, s.failing, s.early = to, true, false, false, false
	}
}

// memoryMutants are what keeps a member with its data in memory from staying down, or from losing
// it.
var memoryMutants = map[string]rollMutant{
	"WithoutRepairInPlace": {
		reason: "A member whose image cannot be pulled stays down, though the spec asks for a patch that can be",
		bound:  "OneInMemoryUnpulled", mutant: rollWithout("repairInPlace"), want: "L",
	},
	"LaterMinorOnVolumesAlone": {
		reason: "A member is rolled back over a minor that has served unseen, and stays down",
		bound:  "OneInMemory", mutant: rollReplace("recordLaterMinor", func(d Desired, o Observed) (Step, bool) {
			step, ok := recordLaterMinor(d, o)
			return step, ok && !d.Ephemeral
		}), want: "L",
	},
	"OthersUnheardInMemory": {
		reason: "The data of other members has risen, so that this one has served as well, and it is rolled back",
		bound:  "InMemory", safety: true, mutant: rollReplace("recordLaterMinor", func(d Desired, o Observed) (Step, bool) {
			return recordLaterMinor(d, each(o, func(i *Instance) { i.Endpoint.Storage = Version{} }))
		}), want: "S13: a member is rolled back over a minor that has served",
	},
	"RecreatedInMemory": {
		reason: "A Pod that cannot start is recreated, as if its data were on a volume",
		bound:  "OneInMemoryUnpulled", safety: true, mutant: rollReplace("recreateStuckPod", func(d Desired, o Observed) (Step, bool) {
			d.Ephemeral = false
			return recreateStuckPod(d, o)
		}), want: "S4: data in memory is given up",
	},
	"ForgetsLogInMemory": {
		reason: "3.6 is started on data of 3.5, and nothing says that the log is of that",
		bound:  "OneInMemoryUnpulled", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsLog: true}}, want: "S13",
	},
}

// TestChangeMemoryMutants shows that the exploration would find each of them.
func TestChangeMemoryMutants(t *testing.T) { testMutants(t, memoryMutants) }
