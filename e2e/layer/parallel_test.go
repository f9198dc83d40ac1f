package main

import "testing"

func TestTestsAtOnce(t *testing.T) {
	t.Parallel()
	type args struct{ processors, speed int }
	cases := map[string]struct {
		reason string
		args   args
		want   int
	}{
		"Reference":   {reason: "six of them left nearly half of it idle", args: args{2, reference}, want: 9},
		"Half":        {reason: "twelve were too many, six worked two thirds of it", args: args{2, reference / 2}, want: 6},
		"Quarter":     {reason: "six worked all of it", args: args{2, reference / 4}, want: 6},
		"Slowest":     {reason: "fewer would take hours", args: args{1, reference / 20}, want: 6},
		"Fast":        {reason: "twelve worked nine tenths of it", args: args{2, reference * 3 / 2}, want: 11},
		"Four":        {reason: "more processors carry more", args: args{4, reference / 2}, want: 9},
		"ManyAndFast": {reason: "one API server does not carry any number", args: args{64, 3 * reference}, want: 12},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := testsAtOnce(tc.args.processors, tc.args.speed); got != tc.want {
				t.Errorf("%s: testsAtOnce(%d, %d): want %d, got %d", tc.reason, tc.args.processors, tc.args.speed, tc.want, got)
			}
		})
	}
}

// The number is of the machine, and not of what it does just now: two measurements agree.
func TestDocumentsPerSecond(t *testing.T) {
	if first, second := documentsPerSecond(), documentsPerSecond(); first == 0 || second > 3*first || first > 3*second {
		t.Errorf("want two measurements that agree within a factor of three, got %d and %d", first, second)
	}
}
