//go:build e2e

package e2e

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
)

// refusedChange is one that is not possible, and how that is told.
type refusedChange struct {
	name   string
	change func(*api.EtcdClusterSpec)
	reason string
	says   string
	whole  bool // says is the whole message, and not a part of it
	then   func(s *stage, c *api.EtcdCluster, before map[string]life)
	stays  bool // it cannot be taken back
}

// TestRefusedChanges: a change that is not possible is named with what is, and a version that
// cannot be had is put back on the one member that was changed. The cluster serves all along.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	rows := []refusedChange{
		{
			name: "flags that the new version does not know",
			change: func(spec *api.EtcdClusterSpec) {
				spec.Version = node.Etcd37
				spec.Options = &api.Options{Flags: map[string]string{"experimental-compaction-batch-limit": "100"}}
			},
			reason: api.ReasonInvalidSpec,
			says:   "spec.options.flags: etcd 3.7.3 has no flag experimental-compaction-batch-limit, it was removed in 3.7; write compaction-batch-limit",
			whole:  true,
			then: func(s *stage, c *api.EtcdCluster, before map[string]life) {
				if !maps.Equal(before, processes(s.pods(c))) {
					s.Errorf("members were touched")
				}
			},
		},
		{
			name: "more cpu than any node has",
			change: func(spec *api.EtcdClusterSpec) {
				spec.Resources = &api.Resources{Requests: cpuAndMemory("1000", "64Mi")}
			},
			reason: api.ReasonChangeFailed,
			says:   "with the new spec.resources it cannot be scheduled",
			then:   func(s *stage, c *api.EtcdCluster, _ map[string]life) { s.served(c) },
		},
		{
			name:   "an image that cannot be had",
			change: func(spec *api.EtcdClusterSpec) { spec.Version = "3.6.99" },
			reason: api.ReasonChangeFailed,
			says:   "3.6.99",
			then: func(s *stage, c *api.EtcdCluster, before map[string]life) {
				s.served(c)
				restarted := 0
				for name, p := range processes(s.pods(c)) {
					restarted += int(min(p.restarts-before[name].restarts, 1))
				}
				if restarted > 1 {
					s.Errorf("%d members were changed", restarted)
				}
			},
		},
		{
			name:   "larger volumes, which the provisioner cannot make",
			change: func(spec *api.EtcdClusterSpec) { spec.Storage.Size = resource.MustParse("1Gi") },
			reason: api.ReasonRefused,
			says:   "only dynamically provisioned pvc can be resized",
			then:   func(*stage, *api.EtcdCluster, map[string]life) {},
			stays:  true,
		},
	}
	var c *api.EtcdCluster
	var before api.EtcdClusterSpec
	var out *contract.Outages
	story := features.New("a cluster").Setup(step(func(s *stage) {
		c = s.cluster("db", 3)
		c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("20m", "64Mi")}
		contract.Watch(s, c)
		out = contract.WatchOutages(s, c)
		s.create(c)
		s.ready(c)
		before = *c.Spec.DeepCopy()
	}))
	for _, row := range share.List(t, rows, 2, func(row refusedChange) string { return row.name }) {
		story = story.Assess(row.name, step(func(s *stage) {
			was := processes(s.pods(c))
			s.change(c, func() { row.change(&c.Spec) })
			if got := s.stalled(c, row.reason); !strings.Contains(got, row.says) || row.whole && got != row.says {
				s.Errorf("stalled with the message\n%s\nwant\n%s", got, row.says)
			}
			row.then(s, c, was)
			if !row.stays {
				s.change(c, func() { c.Spec = *before.DeepCopy() })
				s.ready(c)
			}
			s.unavailable(out, 0)
		}))
	}
	testenv.Test(t, story.Feature())
}

// served waits until every member of three serves, whatever the spec asks for.
func (s *stage) served(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "served by all members", func() bool {
		return c.Status.ReadyReplicas == 3 && is(c, api.ConditionAvailable, metav1.ConditionTrue) && is(c, api.ConditionDegraded, metav1.ConditionFalse)
	})
}
