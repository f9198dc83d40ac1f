package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// silence is a pause in which no quorum answered: a write takes some milliseconds, and on a busy
// machine some hundreds.
const silence = time.Second

// The least shares of a load that shows anything: about half of what is reached on any machine.
// Clients are at work for nearly all of the time, since a slow answer is one that they wait for,
// and nearly all that they ask for while members answer is acknowledged.
const (
	leastBusy     = 0.5
	leastAnswered = 0.5
)

// resultOf what the clients asked for.
func resultOf(history []operation, lasted time.Duration) Result {
	var r Result
	acked := []operation{{}, {called: lasted, ended: lasted}}
	for _, o := range history {
		if o.write {
			r.Attempted++
		}
		if o.write && o.err != nil && !o.cut {
			r.Failed++
		}
		if o.write && o.err == nil {
			r.Acknowledged++
			acked = append(acked, o)
		}
	}
	slices.SortFunc(acked, func(a, b operation) int { return cmp.Compare(a.ended, b.ended) })
	var pauses []operation // from one acknowledgement to the next
	for n := range acked[1:] {
		pause := operation{called: acked[n].ended, ended: acked[n+1].ended}
		r.Longest = max(r.Longest, pause.ended-pause.called)
		if pause.ended-pause.called > silence {
			pauses = append(pauses, pause)
		}
	}
	inVain := 0
	for _, o := range history {
		unheard := slices.ContainsFunc(pauses, func(p operation) bool { return o.called < p.ended && p.called < o.ended })
		if o.write && o.err != nil && !unheard {
			inVain++
		}
	}
	if r.Acknowledged > 0 {
		r.Answered = float64(r.Acknowledged) / float64(r.Acknowledged+inVain)
	}
	return r
}

// busy is the share of the time in which the clients were at work. A client asks for one thing
// after the other, and for the next one Pace after the last one began, or when that is over.
func busy(history []operation, pace, lasted time.Duration, clients int) float64 {
	var atWork time.Duration
	for _, o := range history {
		atWork += max(o.ended-o.called, pace)
	}
	return atWork.Seconds() / (lasted.Seconds() * float64(clients))
}

// void is why the run shows nothing: there was next to no load. While no member is ready nothing
// can be asked of one, however hard it is tried, and that time does not count; but a quarter of the
// run always does, so that few writes between long outages are no load either.
func (r Result) void(floor float64, lasted time.Duration) (why []string) {
	served := max(lasted-r.Away, lasted/4)
	if float64(r.Acknowledged) < floor*served.Seconds() {
		why = append(why, fmt.Sprintf("%d writes were acknowledged in %s, want %.0f a second", r.Acknowledged, served.Round(time.Millisecond), floor))
	}
	if r.Busy < leastBusy {
		why = append(why, fmt.Sprintf("the clients were at work for %.2f of the time, want %.2f", r.Busy, leastBusy))
	}
	if r.Answered < leastAnswered {
		why = append(why, fmt.Sprintf("%.2f of the writes were acknowledged while members answered, want %.2f", r.Answered, leastAnswered))
	}
	return why
}
