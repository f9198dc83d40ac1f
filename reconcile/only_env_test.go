//go:build env

package reconcile_test

import (
	"testing"
	"time"

	api "quorate.dev/api/v1alpha1"
)

// TestOnlyMember: while the only member is started again no member serves. A client watches
// meanwhile, for which etcd waits when it is asked to end: five seconds and two elections.
func TestOnlyMember(t *testing.T) {
	t.Parallel()
	const watched = 7 * time.Second
	cases := map[string]struct {
		reason string
		change func(*api.EtcdClusterSpec)
		most   time.Duration // without an acknowledged write
	}{
		"Options": {
			reason: "its Pod is recreated, and etcd does not wait for clients that watch",
			change: func(s *api.EtcdClusterSpec) { s.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))} },
			most:   watched,
		},
		"Version": {
			reason: "its container is started again, with the grace of the Pod, and that is fixed",
			change: func(s *api.EtcdClusterSpec) { s.Version = etcd36 },
			most:   3 * watched,
		},
		"TwoMinors": {
			reason: "both, one after the other, and its log rewritten between them, for which no member is restarted",
			change: func(s *api.EtcdClusterSpec) { s.Version = etcd37 },
			most:   3 * watched,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.version = etcd35
			s.operate()
			c := s.cluster("db", 1)
			load := s.laden(c)
			load.await(50)
			s.change(c, func() { tc.change(&c.Spec) })
			s.ready(c)
			load.await(50)
			if seen := load.check(); seen.Longest > tc.most {
				t.Errorf("%s: no write was acknowledged for %s, want %s at most", tc.reason, seen.Longest, tc.most)
			}
		})
	}
}
