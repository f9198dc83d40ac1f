package membership

import (
	"fmt"
	"strings"
)

// The model of a cluster that has formed and changes its members: the objects in the API server,
// the kubelets, etcd's configuration and its processes, and their disks. What happens before a
// cluster has formed is another model's.

// ringSeats that a model has at most. A seat is an identity: the ordinal, the volume, the Pod and
// the member of that name. One that has left nothing behind is taken for a name that no member has
// ever had.
const ringSeats = 7

// ring is the truth, of which an operator sees a glance.
type ring struct {
	size     uint8
	kind     uint8 // of volumes that the spec asks for: one of two
	kinds    uint8 // the seats whose volumes are of the second kind
	seats    [ringSeats]ringSeat
	flights  [2]ringFlight // calls to etcd that are under way
	leader   uint8         // the seat that leads, and 1; 0: it does not matter which
	alarm    uint8         // CORRUPT: the seat that it names, and 1; or none
	hashes   ringHashes
	stranger ringRole // of a member that a person has added and never started
	backOff  bool     // without a quorum a kubelet's back-off is longer than anything else
	young    uint8    // the seats whose Pods were created a moment ago
}

// ringNobody is what etcd's alarm names where it cannot tell whose data is wrong.
const ringNobody = ringSeats + 1

type ringSeat struct {
	raft    ringRole
	named   bool // etcd has its name, as it has once the member has started and published it
	matched bool // a learner that had caught up once: etcd remembers
	holds   bool // the latest acknowledged write is among its data

	claim    ringClaim
	spare    bool
	joins    ringMark
	recorded bool
	retired  bool
	disk     ringDisk

	pod         ringPod
	terminating bool
	unfenced    bool // with an empty disk it starts as a new member
	cutOff      bool // its node is lost: nothing is heard of it, and its Pod stays
	forsaken    bool // patience has run out, or the node of one that serves is given up
}

// ringRole of a member in etcd's committed configuration.
type ringRole uint8

const (
	raftNone ringRole = iota
	raftLearner
	raftVoter
	raftRemoved
)

type ringClaim uint8

const (
	claimNone ringClaim = iota
	claimKept
	claimDoomed // marked for deletion: it goes with its Pod
	claimCopied // it is another object, annotations and all, with the data of an earlier day; a Pod from before has the volume of before
)

// ringMark is whose a mark is: a member of the same name may have been removed before anything ran.
type ringMark uint8

const (
	joinsNobody ringMark = iota
	joinsNow
	joinsBefore
)

type ringDisk uint8

const (
	diskNone ringDisk = iota
	diskBlank
	diskData
	diskWiped
)

type ringPod uint8

const (
	podNone   ringPod = iota
	podMaking         // no etcd runs in it
	podReady
	podWaiting // its container has never started
	podUp
	podCrashed // the kubelet starts it again, ever later
	podExited  // etcd has found no data, or is no member, and exits
	podMute    // etcd takes part in the log, and serves no client yet
)

// ringFlight is a call to etcd that was made and has not been answered: it takes effect at any
// later time, or never.
type ringFlight struct {
	action ringCall
	seat   uint8
}

type ringCall uint8

const (
	flightNone ringCall = iota
	flightAdd
	flightPromote
	flightRemove
	flightMove
)

func (s *ringSeat) member() bool { return s.raft == raftLearner || s.raft == raftVoter }

// runs reports whether the process of a member runs.
func (s *ringSeat) runs() bool { return s.pod == podUp || s.pod == podMute }

// fetches reports whether a learner has nothing yet of what the others have. Its directory has been
// begun.
func (s *ringSeat) fetches() bool {
	return s.pod == podMute && s.raft == raftLearner && !s.holds && !s.matched
}

// serves reports whether it answers clients, too. A member that is being stopped is not asked any
// more (reconcile.listens).
func (s *ringSeat) serves() bool { return s.pod == podUp && !s.terminating }

// leaving reports whether what the member has on its disk goes with its Pod. keeps reports whether
// that is there for as long as the Pod is not deleted: its volume was in use before the claim was
// marked for deletion, or taken away.
func (s *ringSeat) leaving() bool { return s.claim == claimDoomed || s.claim == claimNone }
func (s *ringSeat) keeps() bool   { return s.pod >= podUp && !s.terminating }

func (w *ring) voters() int {
	n := 0
	for i := range w.seats {
		if w.seats[i].raft == raftVoter {
			n++
		}
	}
	if w.stranger == raftVoter {
		n++
	}
	return n
}

func (w *ring) active() int {
	n := 0
	for i := range w.seats {
		if w.seats[i].raft == raftVoter && w.seats[i].runs() {
			n++
		}
	}
	return n
}

// quorate reports whether the voters that run can decide anything.
func (w *ring) quorate() bool { return w.active() >= Quorum(w.voters()) }

func (w *ring) hasLearner() bool {
	for i := range w.seats {
		if w.seats[i].raft == raftLearner {
			return true
		}
	}
	return w.stranger == raftLearner
}

// serving counts the voters that serve, but for one.
func (w *ring) serving(but int) int {
	n := 0
	for i := range w.seats {
		if i != but && w.seats[i].raft == raftVoter && w.seats[i].serves() {
			n++
		}
	}
	return n
}

// unfit reports whether the volume of a seat is not what the spec asks for.
func (w *ring) unfit(i int) bool { return w.seats[i].claim != claimNone && (w.kinds>>i^w.kind)&1 == 1 }

// another finds a seat but that one.
func (w *ring) another(but int, is func(i int, s *ringSeat) bool) bool {
	for i := range w.seats {
		if i != but && is(i, &w.seats[i]) {
			return true
		}
	}
	return false
}

// intact reports whether a member has its data, as far as may be counted on.
func (w *ring) intact(i int) bool {
	s := &w.seats[i]
	return s.disk == diskData && (s.claim == claimKept || s.leaving() && s.keeps()) && !s.cutOff && (!s.forsaken || s.runs()) && w.hashes.data.of(i) == dataRight
}

// survives reports whether a quorum of the voters is intact, in the configuration as it is and as
// every call under way would make it. This is how much may be lost at a time.
func (w *ring) survives() bool {
	n, good := 0, 0
	for i := range w.seats {
		if w.seats[i].raft == raftVoter {
			n++
			if w.intact(i) {
				good++
			}
		}
	}
	if w.stranger == raftVoter {
		n++
	}
	if good < Quorum(n) {
		return false
	}
	for _, f := range w.flights {
		switch s := &w.seats[f.seat]; {
		case f.action == flightPromote && s.raft == raftLearner:
			g := good
			if w.intact(int(f.seat)) {
				g++
			}
			if g < Quorum(n+1) {
				return false
			}
		case f.action == flightRemove && s.raft == raftVoter:
			g := good
			if w.intact(int(f.seat)) {
				g--
			}
			if n > 1 && g < Quorum(n-1) {
				return false
			}
		}
	}
	return true
}

// launch starts the container of a Pod, for the first time or again. It returns what must never
// happen. etcd has the name of a member that starts for the first time only when that has published
// it.
func (w *ring) launch(i int) (violation string) {
	s := &w.seats[i]
	switch {
	case s.pod == podWaiting && s.claim != claimKept:
		return "" // it is not even scheduled
	case !s.member():
		s.pod = podExited // a removed member is told so, and exits
	case s.disk == diskData:
		s.pod = podUp
	case !s.unfenced:
		s.pod = podExited
	case s.raft == raftVoter:
		return "S2: a voter starts empty"
	case s.matched:
		s.pod = podExited // the leader tells it of entries that it has lost, and it panics
	default:
		s.pod, s.disk, s.holds = podUp, diskData, false
		w.feed(i)
	}
	if s.pod == podUp {
		s.forsaken = false
	}
	return ""
}

// kill deletes a Pod. It takes its time, even where nothing runs in it any more: its kubelet has to
// confirm that.
func (w *ring) kill(i int) {
	if s := &w.seats[i]; s.pod != podNone {
		s.terminating = true
	}
}

// sweep takes away the Pods that are going and in which nothing runs any more, and the volumes that
// wait for nothing else. An exploration that is not slow does not stop to look at them.
func (w *ring) sweep() {
	for i := range w.seats {
		s := &w.seats[i]
		if s.terminating && !s.cutOff && (s.pod == podWaiting || s.pod == podCrashed || s.pod == podExited) {
			w.vanish(i)
		}
		if s.released() {
			s.discard()
		}
	}
}

// vanish removes a Pod. A volume that is being deleted can go then.
func (w *ring) vanish(i int) {
	s := &w.seats[i]
	s.pod, s.terminating, s.unfenced, s.cutOff, s.forsaken = podNone, false, false, false, false
	switch s.claim {
	case claimCopied:
		s.disk, s.holds = diskData, false
	case claimNone:
		s.discard()
	case claimKept, claimDoomed:
	}
	w.young &^= 1 << i
	w.hashes.unchecked &^= 1 << i
	if int(w.leader) == i+1 {
		w.leader = 0
	}
}

// released reports whether a volume is being deleted that no Pod holds any more.
func (s *ringSeat) released() bool { return s.claim == claimDoomed && s.pod == podNone }

// discard is the end of a volume.
func (s *ringSeat) discard() {
	s.claim, s.disk, s.holds = claimNone, diskNone, false
	s.spare, s.joins, s.recorded, s.retired = false, joinsNobody, false, false
}

// crash ends a process. What the node controller has said of its node before is no patience with
// it.
func (w *ring) crash(i int) {
	w.seats[i].pod, w.seats[i].forsaken = podCrashed, false
	if int(w.leader) == i+1 {
		w.leader = 0
	}
}

// crowded reports whether the model has no name left for a member to come, as never happens.
func (w *ring) crowded(taken uint8) bool {
	for _, f := range w.flights {
		if f.action != flightNone {
			taken |= 1 << f.seat
		}
	}
	for i := range w.seats {
		if w.seats[i] == (ringSeat{}) && taken>>i&1 == 0 {
			return false
		}
	}
	return true
}

// broken is the invariant that the world breaks, if any.
func (w *ring) broken(beyond bool) string {
	lacking, learners := 0, 0
	for i := range w.seats {
		s := &w.seats[i]
		if s.raft == raftVoter && s.disk == diskData && !s.holds && (s.claim != claimCopied || s.pod != podNone) {
			lacking++
		}
		if s.raft == raftLearner {
			learners++
		}
		if s.runs() && !s.member() {
			return "S9: a removed member runs"
		}
	}
	if w.stranger == raftLearner {
		learners++
	}
	n := w.voters()
	switch {
	case lacking >= Quorum(n):
		return "S1: a quorum lacks an acknowledged write"
	case learners > 1:
		return "S4: two learners"
	case !beyond && !w.survives():
		return "S15: so little is left after a change that a quorum has lost its data"
	default:
		return ""
	}
}

func (w *ring) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "size %d", w.size)
	for _, f := range w.flights {
		if f.action != flightNone {
			fmt.Fprintf(&b, ", under way: %s %s", [...]string{"", "add", "promote", "remove", "move leadership to"}[f.action], seatName(int(f.seat)))
		}
	}
	for i := range w.seats {
		s := &w.seats[i]
		if *s == (ringSeat{}) {
			continue
		}
		fmt.Fprintf(&b, "; %s:", seatName(i))
		for _, flag := range []struct {
			text string
			on   bool
		}{
			{[...]string{"", "learner", "voter", "removed"}[s.raft], s.raft != raftNone},
			{"leads", int(w.leader) == i+1},
			{"unnamed", s.member() && !s.named}, {"caught up once", s.matched},
			{[...]string{"", "volume", "volume terminating", "restored volume"}[s.claim], s.claim != claimNone},
			{"spare", s.spare}, {[...]string{"", "joins", "joins as a removed member"}[s.joins], s.joins != joinsNobody},
			{"unfit", w.unfit(i)},
			{"unrecorded", s.claim != claimNone && !s.recorded && !s.spare}, {"retired", s.retired},
			{[...]string{"", "blank", "data", "wiped"}[s.disk], s.disk != diskNone},
			{"without the write", s.disk == diskData && !s.holds && s.member()},
			{"Pod " + [...]string{"", "provisioning", "provisioned", "pending", "up", "crashed", "exited", "up, and does not serve"}[s.pod], s.pod != podNone},
			{"terminating", s.terminating}, {"unfenced", s.unfenced}, {"on a lost node", s.cutOff}, {"forsaken", s.forsaken},
			{"young", w.young>>i&1 == 1},
			{[...]string{"", "wrong data", "other wrong data"}[w.hashes.data.of(i)], w.hashes.data.of(i) != dataRight},
			{"compared: " + [...]string{"right", "wrong", "wrong otherwise"}[w.hashes.sums.of(i)], w.hashes.compared>>i&1 == 1},
			{"starts unchecked", w.hashes.unchecked>>i&1 == 1}, {"named by an alarm", int(w.alarm) == i+1},
		} {
			if flag.on {
				b.WriteString(" " + flag.text)
			}
		}
	}
	if w.alarm == ringNobody {
		b.WriteString("; an alarm that names no member")
	}
	if w.stranger != raftNone {
		b.WriteString("; a stranger, " + [...]string{"", "learner", "voter"}[w.stranger])
	}
	return b.String()
}

var seatNames = [ringSeats]string{"m-0", "m-1", "m-2", "m-3", "m-4", "m-5", "m-6"}

func seatName(i int) string { return seatNames[i] }
