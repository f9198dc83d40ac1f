package history

import "time"

// pauses are the times between one acknowledged write and the next.
type pauses struct {
	last    time.Time
	longest time.Duration
}

func (p *pauses) acknowledged(now time.Time) {
	p.longest = max(p.longest, now.Sub(p.last))
	p.last = now
}

// take returns the longest one since it was last asked. One that lasts still counts from its
// beginning, here and the next time.
func (p *pauses) take(now time.Time) time.Duration {
	longest := max(p.longest, now.Sub(p.last))
	*p = pauses{last: p.last}
	return longest
}

// Pause is for how long no write was acknowledged, at the longest, since the load began or Pause
// was last called.
func (l *Load) Pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pauses.take(time.Now())
}
