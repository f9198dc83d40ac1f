package history

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStake: a run with less of a load than its clients can make shows less than it says, and one
// is not to blame for what could not be asked, nor for a slow machine.
func TestStake(t *testing.T) {
	const pace, lasted, clients = 100 * time.Millisecond, 40 * time.Second, 1
	failed := errors.New("timed out")
	// each is one write after the other, from one time to another.
	each := func(from, to, every, takes time.Duration, err error) []operation {
		var history []operation
		for at := from; at+takes <= to; at += every {
			history = append(history, operation{write: true, called: at, ended: at + takes, err: err})
		}
		return history
	}
	all := func(parts ...[]operation) []operation {
		var history []operation
		for _, part := range parts {
			history = append(history, part...)
		}
		return history
	}
	const ms, s = time.Millisecond, time.Second
	cases := map[string]struct {
		reason  string
		history []operation
		away    time.Duration
		want    []string
	}{
		"Load": {reason: "one every 100 ms", history: each(0, lasted, pace, 5*ms, nil)},
		"Slow": {reason: "the machine takes 450 ms for each", history: each(0, lasted, 450*ms, 450*ms, nil)},
		"Outage": {
			reason: "for most of the time no member was ready, and each is tried in vain", away: 30 * s,
			history: all(each(0, 10*s, pace, 5*ms, nil), each(10*s, lasted, 2*s, 2*s, failed)),
		},
		"Refused": {
			reason: "the same, and each fails at once", away: 30 * s,
			history: all(each(0, 10*s, pace, 5*ms, nil), each(10*s, lasted, pace, ms, failed)),
		},
		"Idle": {
			reason:  "the client asks three times a second in place of ten",
			history: each(0, lasted, 333*ms, 5*ms, nil),
			want:    []string{"the clients were at work for 0.30 of the time, want 0.50"},
		},
		"Stopped": {
			reason:  "the client has ended early",
			history: each(0, 15*s, pace, 5*ms, nil),
			want:    []string{"the clients were at work for 0.38 of the time, want 0.50"},
		},
		"InVain": {
			reason:  "two of three fail, one after the other",
			history: all(each(0, lasted, 3*pace, 5*ms, nil), each(pace, lasted, 3*pace, 5*ms, failed), each(2*pace, lasted, 3*pace, 5*ms, failed)),
			want:    []string{"0.34 of the writes were acknowledged while members answered, want 0.50"},
		},
		"Nothing": {
			reason: "nothing was ever acknowledged", away: 39 * s,
			history: each(0, lasted, 2*s, 2*s, failed),
			want: []string{
				"0 writes were acknowledged in 10s, want 2 a second",
				"0.00 of the writes were acknowledged while members answered, want 0.50",
			},
		},
		"Few": {
			reason:  "a member was there all the time, and took more than half a second for each",
			history: each(0, lasted, 600*ms, 600*ms, nil),
			want:    []string{"66 writes were acknowledged in 40s, want 2 a second"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resultOf(tc.history, lasted)
			r.Away, r.Busy = tc.away, busy(tc.history, pace, lasted, clients)
			if diff := cmp.Diff(tc.want, r.void(2, lasted)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
