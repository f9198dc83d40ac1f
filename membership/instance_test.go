package membership

import "testing"

func TestServes(t *testing.T) {
	answers := Endpoint{MemberID: 0xa1, Leader: 0xa0}
	with := func(a Alarm) Endpoint { e := answers; e.Alarms = []Alarm{a}; return e }
	cases := map[string]struct {
		reason          string
		args            Endpoint
		serves, healthy bool
	}{
		"Silent":         {reason: "it does not answer"},
		"Leaderless":     {reason: "it takes part in nothing", args: Endpoint{MemberID: 0xa1}},
		"Publishing":     {reason: "no client is answered", args: Endpoint{Publishing: 0xa1}},
		"Following":      {reason: "it follows", args: answers, serves: true, healthy: true},
		"Leading":        {reason: "it leads", args: Endpoint{MemberID: 0xa1, Leader: 0xa1}, serves: true, healthy: true},
		"NoSpace":        {reason: "it takes part, and a person must act", args: with(Alarm{AlarmNoSpace, 0xa1}), serves: true},
		"Corrupt":        {reason: "the leader may be the one that is wrong", args: with(Alarm{AlarmCorrupt, 0xa1}), serves: true},
		"CorruptAnother": {reason: "another's alarm says nothing against it", args: with(Alarm{AlarmCorrupt, 0xa2}), serves: true},
		"CorruptSomeone": {reason: "that accuses all, and finds none", args: with(Alarm{AlarmCorrupt, 0}), serves: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := Instance{ID: 0xa1, Endpoint: tc.args}
			if i.Serves() != tc.serves || i.Endpoint.Healthy() != tc.healthy {
				t.Errorf("%s: it serves: %t, it is healthy: %t", tc.reason, i.Serves(), i.Endpoint.Healthy())
			}
		})
	}
}
