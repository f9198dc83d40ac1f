//go:build env

package reconcile_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestTimingsOfQuietClusters changes the times of elections where nothing is written: only
// heartbeats tell a member of its leader then.
func TestTimingsOfQuietClusters(t *testing.T) {
	t.Parallel()
	type args struct {
		begins string   // patch of the spec that it is created with
		steps  []string // patches, one after the other, each when the one before is done
	}
	cases := map[string]struct {
		reason string
		args   args
	}{
		"ShortestAndBack": {
			reason: "the shortest times that are accepted can be set, and taken back",
			args: args{
				begins: `{}`,
				steps:  []string{`{"options":{"heartbeatInterval":"20ms","electionTimeout":"100ms"}}`, `{"options":null}`},
			},
		},
		"LongestBack": {
			reason: "the operator asks members each second, and for that the leader sends heartbeats",
			args: args{
				begins: `{"options":{"heartbeatInterval":"10s","electionTimeout":"50s"}}`,
				steps:  []string{`{"options":null}`},
			},
		},
		"LongestToShortestInTwo": {
			reason: "docs/options.md: first the heartbeat, then the election",
			args: args{
				begins: `{"options":{"heartbeatInterval":"10s","electionTimeout":"50s"}}`,
				steps:  []string{`{"options":{"heartbeatInterval":"20ms"}}`, `{"options":{"electionTimeout":"100ms"}}`},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStageAlone(t)
			s.operate()
			c := s.cluster("db", 3)
			s.merge(c, tc.args.begins)
			s.create(c)
			s.ready(c)
			for _, step := range tc.args.steps {
				s.must(s.patched(c, step))
				s.await(c, "ready with "+step, func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
				if c.Status.FailedChange != nil {
					t.Errorf("%s: %s was put back: %v", tc.reason, step, c.Status.FailedChange)
				}
			}
		})
	}
}
