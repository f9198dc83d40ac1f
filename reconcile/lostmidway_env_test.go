//go:build env

package reconcile_test

import (
	"slices"
	"testing"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// TestLostMidway: while a change of the version is half-way, and the members run two of them, one
// that has not come to the other yet loses its volume. Another one takes its place, and all come to
// the version that is asked for.
func TestLostMidway(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, from, to string }{
		"Up": {reason: "a new member starts with the earlier minor, which can read what the later one writes", from: etcd36, to: etcd37},
		"TwoUp": {
			reason: "a new member may be sent what 3.5 has left in the log, so that those of 3.7 have to go back for it",
			from:   etcd35, to: etcd37,
		},
		"Down":     {reason: "etcd is asked to prepare for the earlier minor once more", from: etcd37, to: etcd36},
		"DownFive": {reason: "the same, where data does not tell whose it is", from: etcd36, to: etcd35},
	}
	for name, tc := range share.Of(t, cases, 5) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c, load, _ := healing{version: tc.from}.struck(s)
			load.await(20)
			s.change(c, func() { c.Spec.Version = tc.to })
			s.oneRuns(c, tc.to)
			n := slices.IndexFunc(c.Status.Members, func(m api.MemberStatus) bool { // it may be the next one, which is just being changed
				return m.Version != tc.to && m.Role != api.RoleLeader
			})
			if n < 0 {
				t.Fatalf("void: no follower has yet to change: %s", contract.Describe(c))
			}
			lost := c.Status.Members[n].Name
			deleteVolume(s, c, lost)
			s.runs(c, tc.to)
			if names := s.sized(c, 3); slices.Contains(names, lost) {
				t.Errorf("%s: members are %v, and the data of %s is gone", tc.reason, names, lost)
			}
			load.await(20)
			load.check()
			_, restarts := s.lives(c)
			t.Logf("%s: %s was lost; started again: %v", tc.reason, lost, restarts)
		})
	}
}
