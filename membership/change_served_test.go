package membership

// What Pods are made of, and what volumes are marked with of that.

// made is what a Pod is made of that is not there.
func (w *roll) made(s *rollSeat) rollOptions {
	switch {
	case s.next != rollNone && s.trying != rollUnknown:
		return s.trying
	case s.next != rollNone:
		return w.template
	case s.good != rollUnknown:
		return s.good
	case !s.voter(): // like another one
		for i := range w.seats {
			if o := &w.seats[i]; o.voter() && o.good != rollUnknown && !o.lost {
				return o.good
			}
		}
	}
	return w.template
}

// serves marks the volume of a member with what it serves with, where that is known.
func (w *roll) serves(s *rollSeat, c rollCareless) {
	if w.memory || s.image == rollNone || s.lost || s.going || s.runs == rollNone || !s.settled() || !w.quorate() {
		return
	}
	if s.proof != rollProved && s.good != rollUnknown && !c.believesAnswers {
		return
	}
	switch current := s.image == s.is() && !s.undone; {
	case c.servesAnyhow:
		s.good = w.template
	case current && (s.template == w.template || s.template == w.made(s)):
		s.good = s.template
	}
}

// is the version that a member is to run now.
func (s *rollSeat) is() rollVersion {
	if s.next != rollNone {
		return s.next
	}
	return s.volume
}

// trying is what a volume is marked with as what is to run on it. In place only the image changes.
func (f *rollFlight) trying(s *rollSeat) rollOptions {
	if f.change == rollInPlace || s.good == rollUnknown {
		return s.good
	}
	return f.made
}
