package membership

import (
	"fmt"
	"strings"
)

// The model of a cluster whose members come to run something else: the Pods in the API server, the
// kubelets, and what etcd does when versions change. How members come and go is another model's:
// here each of these changes succeeds at once.

// rollSeats that a model has at most. A seat is a member: its name, its volume and its Pod.
const rollSeats = 5

// roll is the truth, of which an operator sees a glance.
type roll struct {
	size      uint8 // spec.replicas
	spec      rollVersion
	template  rollOptions // spec.options and the like, for which a Pod is recreated
	givenUp   bool        // this generation of the spec was tried in vain
	broken    uint8       // the versions whose images do not come up, one bit each
	wrong     uint8       // the options that do not come up, in the same way
	passing   uint8       // the options with which etcd answers, and ends a moment later, in the same way
	unpulled  bool        // images that do not come up are such that cannot be pulled
	memory    bool        // data is in Pods, and no volume is marked with anything
	mute      bool        // what does not come up leaves a process running, and it never serves
	unstarted bool        // the kubelet of a Pod with wrong options starts no etcd, and does not say why
	patient   bool        // and waiting for it helps for longer than anything takes here
	onOne     bool        // images that do not come up come up on every other node than that of m-0
	lies      bool        // what is called 3.5.35 is 3.6.16
	alarm     bool        // NOSPACE
	corrupt   bool        // CORRUPT
	sized     bool        // it is known how large the database is, and may be
	db        rollSize
	refused   rollWrite // what the API server refuses
	unseen    bool      // a later minor may serve and not come back, before an operator sees it
	guarded   bool      // a snapshot is to be verified before the version changes
	backup    rollBackup
	leader    uint8     // the seat that leads, and 1
	cluster   rollMinor // etcd's cluster version
	down      rollMinor // to which the cluster is being downgraded; 0: it is not
	seats     [rollSeats]rollSeat
}

type rollSeat struct {
	role     rollRole
	image    rollVersion // that its Pod's image names; 0: there is no Pod
	previous rollVersion // that the Pod is marked to have run before its image was changed
	runs     rollVersion // of its process; 0: none
	before   bool        // no container has come since its Pod was changed
	failing  bool        // the kubelet has tried the image, and puts off the next try
	going    bool        // its Pod is being deleted
	putOff   bool        // the kubelet waits before it starts what the Pod was changed to for the first time
	undone   bool        // its Pod was rolled back, and is marked as having another image than the spec's
	template rollOptions // of which its Pod was made
	lags     bool        // it has not caught up
	proof    rollProof   // that it runs well
	early    bool        // etcd has said that it is too early for the data, where it ended last
	silent   rollSilence // of its node

	good    rollOptions // that the volume is marked to have served with
	trying  rollOptions // that it is marked to be changed to, where it is being changed
	volume  rollVersion // that the volume is marked with
	next    rollVersion // that the volume is marked to be changed to
	replays rollMark
	lost    bool // there is no volume any more

	old     bool      // the log has entries of 3.5, behind its last snapshot
	storage rollMinor // of its data
	served  bool      // it has run what its Pod was changed to
	ours    bool      // it is away by an act of the operator
	tried   uint8     // 1: it was changed in this generation of the spec; 2: to an image that does not come up, or that lies
	trial   bool      // it was rolled back over a minor that may have served: etcd is to judge
	stray   bool      // what its volume is to be changed to was written by an operator that was too slow for its Pod
}

// rollProof is what there is to show that a member runs well with what its Pod was made of.
type rollProof uint8

const (
	rollProved  rollProof = iota // it has stayed ready for long enough, or it is not asked for
	rollYoung                    // it was made or changed too lately
	rollCrashed                  // it has ended by itself since
)

type rollRole uint8

const (
	rollNobody  rollRole = iota
	rollSpare            // a volume for a member to come, prepared
	rollListed           // etcd was told of it
	rollLearner          // it has its Pod
	rollVoter
)

// rollOptions are options of etcd, a place to run, and what else a Pod is made of for ever.
type rollOptions uint8

const (
	rollFirst   rollOptions = iota // that all members have at first
	rollOther                      // with which etcd comes up as well
	rollWrong                      // with which it does not, within bounds that say so
	rollUnknown                    // a volume does not say
)

// rollMark says which Pod is marked to read entries of 3.5.
type rollMark uint8

const (
	marksNobody rollMark = iota
	marksAny             // whichever runs on the volume
	marksRisen           // as well, since no member runs 3.5 any more
	marksPast            // no member any more
)

// rollVersion is one of the versions of the model: the newest patch of each minor, and one of 3.5
// and 3.6 that is too early to be left for another minor, or to be reached from one.
type rollVersion uint8

const (
	rollNone rollVersion = iota
	rollEarly
	roll35
	roll36
	roll37
	rollEarly36
)

type rollMinor uint8

var (
	rollVersions = [...]Version{{}, {3, 5, 20}, {3, 5, 35}, {3, 6, 16}, {3, 7, 3}, {3, 6, 4}}
	rollMinors   = [...]rollMinor{0, 5, 5, 6, 7, 6}
)

func (v rollVersion) minor() rollMinor { return rollMinors[v] }

func rollOf(v Version) rollVersion {
	for n, known := range rollVersions {
		if known == v {
			return rollVersion(n)
		}
	}
	panic("membership: the model has no etcd " + v.String())
}

// holds is the version that an image of that name runs.
func (w *roll) holds(image rollVersion) rollVersion {
	if w.lies && image == roll35 {
		return roll36
	}
	return image
}

// wronglyMade reports whether a Pod does not come up with what it was made of.
func (w *roll) wronglyMade(s *rollSeat) bool { return w.wrong>>s.template&1 == 1 }

// passes reports whether a member answers with what its Pod was made of, and ends a moment later.
func (w *roll) passes(s *rollSeat) bool { return w.passing>>s.template&1 == 1 }

func (s *rollSeat) member() bool { return s.role >= rollListed }
func (s *rollSeat) voter() bool  { return s.role == rollVoter }

// settled reports whether a container that came after the change of its Pod has answered, as far as
// can be seen.
func (s *rollSeat) settled() bool {
	return s.previous == rollNone || !s.before && (s.runs != rollNone || s.volume == s.image && s.previous != s.image)
}

func (w *roll) count(is func(*rollSeat) bool) int {
	n := 0
	for i := range w.seats {
		if is(&w.seats[i]) {
			n++
		}
	}
	return n
}

func (w *roll) voters() int { return w.count((*rollSeat).voter) }
func (w *roll) running() int {
	return w.count(func(s *rollSeat) bool { return s.voter() && s.runs != rollNone })
}
func (w *roll) quorate() bool { return w.voters() > 0 && w.running() >= Quorum(w.voters()) }

// complete reports whether every member runs, so that etcd knows the version of each.
func (w *roll) complete() bool {
	for i := range w.seats {
		if s := &w.seats[i]; s.member() && s.runs == rollNone {
			return false
		}
	}
	return w.voters() > 0
}

// lowest and highest minor that members run.
func (w *roll) minors() (lowest, highest rollMinor) {
	for i := range w.seats {
		m := w.seats[i].runs.minor()
		if m == 0 || !w.seats[i].member() {
			continue
		}
		if lowest == 0 || m < lowest {
			lowest = m
		}
		highest = max(highest, m)
	}
	return lowest, highest
}

func (w *roll) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "spec %d of %s", w.size, rollVersions[w.spec])
	b.WriteString([...]string{"", ", other options", ", wrong options"}[w.template])
	for _, flag := range []struct {
		text string
		on   bool
	}{{[...]string{", no snapshot", ", a snapshot is taken", ", a snapshot is verified", ", its snapshot has failed"}[w.backup], w.guarded}, {", given up", w.givenUp}, {", refused are " + rollWrites[w.refused], w.refused != writeNone}, {", an alarm", w.alarm}, {", the alarm CORRUPT", w.corrupt}, {", a database that has hardly any room", w.db == sizeTight}, {", a database that is full", w.db == sizeFull}} {
		if flag.on {
			b.WriteString(flag.text)
		}
	}
	fmt.Fprintf(&b, "; cluster version 3.%d", w.cluster)
	if w.down > 0 {
		fmt.Fprintf(&b, ", downgrade to 3.%d", w.down)
	}
	for i := range w.seats {
		s := &w.seats[i]
		if s.role == rollNobody {
			continue
		}
		fmt.Fprintf(&b, "; %s:", seatName(i))
		for _, flag := range []struct {
			text string
			on   bool
		}{
			{[...]string{"", "spare", "listed", "learner", "voter"}[s.role], s.role != rollVoter},
			{"leads", int(w.leader) == i+1}, {"runs " + rollVersions[s.runs].String(), s.runs != rollNone}, {"lags", s.lags}, {[...]string{"", "yet to prove itself", "crashed"}[s.proof], s.proof != rollProved},
			{"Pod of " + rollVersions[s.image].String(), s.image != s.runs}, {"was " + rollVersions[s.previous].String(), s.previous != rollNone},
			{"failing", s.failing}, {"too early for its data", s.early}, {[...]string{"", "silent", "known to be silent", "silent and not known to be"}[s.silent], s.silent != rollHears}, {"terminating", s.going}, {"put off", s.putOff}, {[...]string{"", "other options", "wrong options"}[s.template], s.image != rollNone && s.template != rollFirst},
			{"served with " + [...]string{"the first", "other", "wrong", "unknown"}[s.good] + " options", s.good != s.template},
			{"volume of " + rollVersions[s.volume].String(), s.volume != s.runs}, {"next " + rollVersions[s.next].String(), s.next != rollNone},
			{"replays", s.replays != marksNobody}, {"log of 3.5", s.old}, {fmt.Sprintf("data of 3.%d", s.storage), s.storage != s.runs.minor()}, {"no volume", s.lost},
		} {
			if flag.on {
				b.WriteString(" " + flag.text)
			}
		}
	}
	return b.String()
}
