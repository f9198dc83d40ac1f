//go:build env

package reconcile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTimeTravel: an operator that is started again may be told, by an API server that is behind,
// of a world in which what its predecessor has done is not done yet. It changes no member on that
// word and destroys nothing, and when the world is up to date there is nothing left to do.
func TestTimeTravel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		replicas int32
		at       string  // the change of members before which the world was as it is seen later; empty is at rest
		sizes    []int32 // that the cluster has had since
		members  []string
	}{
		"BeforeItsMembersWereOthers": {
			reason:   "it is of the same size, and two of three are others",
			replicas: 3, sizes: []int32{1, 3}, members: []string{"db-0", "db-3", "db-4"},
		},
		"WhenItWasPrepared": {
			reason:   "volumes that were spare have data",
			replicas: 1, at: "AddLearner.Member.db-1#1", sizes: []int32{3}, members: []string{"db-0", "db-1", "db-2"},
		},
		"WhenItGrew": {
			reason:   "what was about to vote, or to be added, is long gone",
			replicas: 1, at: "Promote.Member.db-1#1", sizes: []int32{3, 1}, members: []string{"db-0"},
		},
		"WhenItShrank": {
			reason:   "it was to be one member, and is three others",
			replicas: 3, at: "Remove.Member.db-1#1", sizes: []int32{1, 3}, members: []string{"db-0", "db-3", "db-4"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			view := &held{stage: s, looks: make(chan struct{}, 1)}
			var past *world
			f := newFault(tc.at, "Unhealthy")
			f.then = func() { past = view.look() }
			crash := s.operate(view.between, f.between)
			c := s.cluster("db", tc.replicas)
			kept := s.born(c)
			if tc.at == "" {
				past = view.look()
			}
			f.arm()
			for _, size := range tc.sizes {
				s.resize(c, size)
				s.sized(c, int(size))
				s.write(c, kept)
			}
			crash()
			if past == nil {
				t.Fatalf("void: there was no %s, but %v", tc.at, f.effects())
			}

			view.show(past)
			uids, listed := s.uids(c), s.listed(c)
			f = newFault("", "")
			f.arm()
			s.operate(view.between, f.between)
			view.looked(3)
			if effects := slices.DeleteFunc(f.effects(), harmless); len(effects) > 0 {
				t.Errorf("%s: in a world of the past it did this: %v", tc.reason, effects)
			}
			if diff := cmp.Diff(uids, s.uids(c)); diff != "" {
				t.Errorf("%s: objects changed: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(listed, s.listed(c)); diff != "" {
				t.Errorf("%s: etcd's members changed: -want +got:\n%s", tc.reason, diff)
			}
			view.release()
			s.settled(c, kept)
			if diff := cmp.Diff(tc.members, memberNames(c)); diff != "" {
				t.Errorf("%s: members at the end: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
