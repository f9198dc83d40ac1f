package membership

import "fmt"

// looks are the parts of a look, in their order, and what a world has in common with each.
var looks = []struct {
	what string
	like func(w *ring, d *Desired, o *Observed) bool
}{
	{"the size", func(w *ring, d *Desired, _ *Observed) bool { return int(w.size) == d.Size }},
	{"the Pods", func(w *ring, _ *Desired, o *Observed) bool { return w.each(o, likePod) }},
	{"the volumes", func(w *ring, _ *Desired, o *Observed) bool { return w.each(o, likeVolume) }},
	{"answers", func(w *ring, _ *Desired, o *Observed) bool { return w.each(o, likeEndpoint) }},
	{"etcd's list", func(w *ring, _ *Desired, o *Observed) bool {
		return o.Reach != ReachQuorum || w.quorate() && w.each(o, likeMember)
	}},
}

// each reports whether all seats are like what is seen of them.
func (w *ring) each(o *Observed, like func(w *ring, n int, i *Instance, o *Observed) bool) bool {
	var seen [ringSeats]Instance
	for _, i := range o.Instances {
		seen[i.Ordinal] = i
	}
	for n := range seen {
		if !like(w, n, &seen[n], o) {
			return false
		}
	}
	return true
}

// likePod: what the kubelet says comes later than the process, so that one that has not started as
// far as is known may run already.
func likePod(w *ring, n int, i *Instance, _ *Observed) bool {
	s, p := &w.seats[n], &i.Pod
	switch {
	case !p.Exists():
		return s.pod == podNone
	case p.Terminating != s.terminating, p.Unfenced != s.unfenced, p.Forsaken != s.forsaken:
		return false
	case p.Provisions && p.Provisioned:
		return s.pod == podReady
	case p.Provisions:
		return s.pod == podMaking
	default:
		return s.pod >= podUp || p.NeverRan && s.pod == podWaiting
	}
}

func likeVolume(w *ring, n int, i *Instance, _ *Observed) bool {
	s, v := &w.seats[n], &i.Volume
	if !v.Exists() {
		return s.claim == claimNone
	}
	return v.Terminating == (s.claim == claimDoomed) && s.claim != claimNone &&
		v.Spare == s.spare && (v.Joins != 0) == (s.joins != joinsNobody) && v.Recorded() == s.recorded && v.Retired == s.retired
}

// likeEndpoint: one that answers serves, and one that is known by its metrics runs. Silence proves
// nothing, nor does the answer of one that has yet to learn that it was removed.
func likeEndpoint(w *ring, n int, i *Instance, o *Observed) bool {
	s := &w.seats[n]
	return o.Member(i.ID) == nil || i.Endpoint.Member() == 0 || s.serves() || s.runs() && !i.Endpoint.Answered()
}

// likeMember: one that has said that it leads does so still.
func likeMember(w *ring, n int, i *Instance, o *Observed) bool {
	s, m := &w.seats[n], o.Member(i.ID)
	switch {
	case m == nil:
		return !s.member() && s.joins != joinsNow
	case m.Learner != (s.raft == raftLearner), !s.member(), i.Leads() && int(w.leader) != n+1:
		return false
	default:
		return (m.Name != "") == s.named && (i.Volume.Joins == m.ID) == (s.joins == joinsNow)
	}
}

// seenAs is a world as it looks: what cannot be seen is taken to be well.
func seenAs(d Desired, o Observed) *ring {
	w := &ring{size: uint8(d.Size)}
	for _, i := range o.Instances {
		if i.Ordinal >= ringSeats {
			continue
		}
		w.seats[i.Ordinal] = seatSeen(i, o)
		if i.Leads() {
			w.leader = uint8(i.Ordinal) + 1
		}
	}
	return w
}

func seatSeen(i Instance, o Observed) ringSeat {
	s := ringSeat{terminating: i.Pod.Terminating, unfenced: i.Pod.Unfenced, forsaken: i.Pod.Forsaken}
	if m := o.Member(i.ID); m != nil {
		s.raft, s.named = raftVoter, m.Name != ""
		if m.Learner {
			s.raft = raftLearner
		}
	}
	switch p := i.Pod; {
	case !p.Exists():
	case i.Endpoint.Answered():
		s.pod = podUp
	case i.Endpoint.Member() != 0:
		s.pod = podMute
	case p.Provisioned:
		s.pod = podReady
	case p.Provisions:
		s.pod = podMaking
	case p.NeverRan:
		s.pod = podWaiting
	default:
		s.pod = podCrashed
	}
	v := i.Volume
	if !v.Exists() {
		return s
	}
	s.claim, s.disk, s.spare, s.recorded, s.retired = claimKept, diskBlank, v.Spare, v.Recorded(), v.Retired
	if v.Terminating {
		s.claim = claimDoomed
	}
	if v.Recorded() || s.runs() {
		s.disk, s.holds = diskData, i.Endpoint.Fetching == 0
	}
	switch {
	case v.Joins == 0:
	case o.Member(v.Joins) != nil:
		s.joins = joinsNow
	default:
		s.joins = joinsBefore
	}
	return s
}

// breaches is what no cluster may ever look like.
func breaches(o Observed) string {
	learners, known := 0, 0
	for _, i := range o.Instances {
		if i.Ordinal >= ringSeats {
			return fmt.Sprintf("the model has no seat for %s: it has %d", i.Name, ringSeats)
		}
		m := o.Member(i.ID)
		if m == nil {
			continue
		}
		known++
		switch v := i.Volume; {
		case m.Learner:
			learners++
		case v.Spare, v.Exists() && !v.Recorded():
			return "S2: the voter " + i.Name + " has a volume that is not known to hold its data"
		case i.Pod.Unfenced:
			return "S2: the voter " + i.Name + " would start empty"
		}
		if v := i.Volume; v.Recorded() && v.MemberID != m.ID {
			return "S9: " + i.Name + " has the volume of an earlier member"
		}
	}
	switch {
	case learners > 1:
		return "S4: two learners"
	case o.Reach == ReachQuorum && known < len(o.Members):
		return "etcd lists a foreign member"
	default:
		return ""
	}
}
