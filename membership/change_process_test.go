package membership

import "fmt"

// The processes of members: the leader, and which etcd starts on which data.

// elect a leader where there is none.
func (w *roll) elect() {
	if !w.quorate() {
		w.leader = 0
	}
	if w.leader != 0 || !w.quorate() {
		return
	}
	for i := range w.seats {
		if s := &w.seats[i]; s.voter() && s.runs != rollNone && !s.lags {
			w.leader = uint8(i) + 1
			return
		}
	}
}

// end a process.
func (w *roll) end(i int) {
	w.seats[i].runs, w.seats[i].lags = rollNone, false
	if int(w.leader) == i+1 {
		w.leader = 0
	}
	w.elect()
}

// crash ends a process that was not asked to.
func (w *roll) crash(i int, putOff bool) {
	w.end(i)
	w.seats[i].failing = putOff
	if w.passing != 0 {
		w.seats[i].proof = rollCrashed
	}
}

// refuses is why etcd of that version does not start on a member's data, or panics:
// MustDetectDowngrade in server/etcdserver/version, schema.Validate in server/storage/schema, and
// apply.Apply for the entries of 3.5.
func (w *roll) refuses(i int, v rollVersion) string {
	s, m := &w.seats[i], v.minor()
	switch {
	case m < w.cluster:
		return "is earlier than the cluster's version"
	case m < s.storage:
		return "cannot read the data"
	case m > w.cluster+1:
		return "is more than one minor above the cluster's version"
	case m == 7 && s.old:
		return "cannot read the log of 3.5"
	default:
		return ""
	}
}

// launch starts the container of a Pod. It returns what must never happen.
func (w *roll) launch(i int, lags bool) (violation string) {
	s := &w.seats[i]
	s.before, s.putOff = false, false
	broken, wrong := w.brokenOn(i), w.wronglyMade(s)
	bad := broken || wrong
	said := s.early // in this Pod, whose container is started again
	s.failing, s.early = bad, false
	if broken || (wrong || w.passes(s)) && s.template != s.good || w.holds(s.image) != s.image {
		if s.tried > 0 {
			s.tried = 2
		}
		if w.count(func(s *rollSeat) bool { return s.tried >= 2 }) > 1 {
			return "what does not come up touches a second member"
		}
	}
	if bad && !w.mutes(i) {
		return ""
	}
	if why := w.refuses(i, w.holds(s.image)); why != "" {
		s.failing, s.early = true, w.holds(s.image).minor() < max(w.cluster, s.storage)
		if s.stray || s.early && (s.trial || said) {
			return ""
		}
		return fmt.Sprintf("S13: %s is started with %s, which %s", seatName(i), rollVersions[s.image], why)
	}
	if bad {
		return ""
	}
	s.runs, s.failing, s.served, s.ours = w.holds(s.image), false, true, false
	s.trial = s.trial && s.next != rollNone && s.next != s.runs
	s.stray = s.stray && s.next != rollNone && s.next != s.runs
	s.lags = lags && w.quorate()
	if w.passing != 0 && s.proof != rollCrashed {
		s.proof = rollYoung
	}
	if s.runs.minor() == 5 { // it tells all others its name
		for j := range w.seats {
			w.seats[j].old = w.seats[j].old || w.seats[j].member()
		}
	}
	w.elect()
	return ""
}

// brokenOn reports whether the image of a Pod does not come up.
func (w *roll) brokenOn(i int) bool {
	return w.broken>>w.seats[i].image&1 == 1 && (!w.onOne || i == 0)
}

// mutes reports whether etcd runs in a Pod, if it starts on the data, and never serves.
func (w *roll) mutes(i int) bool {
	return w.mute && w.wronglyMade(&w.seats[i]) && !w.brokenOn(i)
}

// startsNothing reports whether the kubelet of a Pod has started no etcd, and does not say why.
func (w *roll) startsNothing(i int) bool {
	s := &w.seats[i]
	return w.unstarted && s.failing && !s.early // no image is broken in these worlds
}

// tries reports whether a member that has been changed runs on, does not serve, and is what the
// spec asks for next. Then it may read its log still, as long as waiting helps.
func (w *roll) tries(i int) bool {
	s := &w.seats[i]
	if !w.mute || !w.patient || !s.voter() || !s.failing || s.early || s.before || s.image == rollNone || w.givenUp {
		return false
	}
	var ran []Version
	for j := range w.seats {
		switch o := &w.seats[j]; {
		case !o.voter() || o.lost:
		case o.runs != rollNone:
			ran = append(ran, rollVersions[o.runs])
		default:
			ran = append(ran, rollVersions[o.volume])
		}
	}
	path, err := Path(ran, rollVersions[w.spec])
	next := w.spec
	if len(path) > 0 {
		next = rollOf(path[0])
	}
	onlyVersion := s.image != s.volume && (s.good == rollUnknown || s.good == s.template) // other options come when it serves
	return err == nil && (s.template == w.template && (s.image == next || s.image == s.volume && s.template != s.good) || onlyVersion && s.image == next)
}

// takesData reports whether a member that never serves may make its data its own: its peers know
// its version, so that the cluster's version may rise.
func (w *roll) takesData(i int) bool {
	s := &w.seats[i]
	if !s.voter() || !s.failing || s.early || !w.mutes(i) || w.holds(s.image).minor() <= w.cluster {
		return false
	}
	for j := range w.seats {
		if other := &w.seats[j]; j != i && other.member() && other.runs.minor() <= w.cluster {
			return false
		}
	}
	return w.running()+1 >= Quorum(w.voters())
}

// vanish takes a Pod away.
func (w *roll) vanish(i int) {
	w.end(i)
	s := &w.seats[i]
	s.before = false
	s.putOff = false
	s.proof, s.early, s.silent = rollProved, false, rollHears
	s.image, s.previous, s.failing, s.going, s.undone, s.served, s.template = rollNone, rollNone, false, false, false, false, rollFirst
	s.stray = s.stray && s.next != rollNone
	s.trial = s.trial && w.refuses(i, s.is()) != ""
}
