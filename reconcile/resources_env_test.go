//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
)

// TestResources: cpu changes while etcd runs, under load; where a member's node has less than is
// asked for, its Pod is recreated, on another one.
func TestResources(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		cores     int64
		recreated bool
		told      string
	}{
		"WhileItRuns": {
			reason: "the kubelet does that under the running process", cores: 2,
			told: "while it runs (spec.resources)",
		},
		"MoreThanItsNode": {
			reason: "the API server does not let the kubelet be asked for it", cores: hostlet.Cores + 1, recreated: true,
			told: "recreating the Pod of",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 3)
			c.Spec.Resources = &api.Resources{Requests: hostlet.CPU(1)}
			load := s.laden(c)
			before, _ := s.lives(c)
			who := identityOf(c)
			heard := s.words(c)
			s.change(c, func() { c.Spec.Resources.Requests = hostlet.CPU(tc.cores) })
			s.ready(c)
			if !slices.ContainsFunc(heard(), func(w word) bool { return strings.Contains(w.Message, tc.told) }) {
				t.Errorf("%s: no condition told %q", tc.reason, tc.told)
			}
			after, restarts := s.lives(c)
			for member, uid := range after {
				if recreated := uid != before[member]; recreated != tc.recreated || restarts[member] != 0 {
					t.Errorf("%s: %s is recreated: %t, want %t; started again %d times", tc.reason, member, recreated, tc.recreated, restarts[member])
				}
			}
			for _, pod := range s.pods(c) {
				if got := pod.Status.ContainerStatuses[0].Resources.Requests; !maps.EqualFunc(got, hostlet.CPU(tc.cores), resource.Quantity.Equal) {
					t.Errorf("%s: %s has %v", tc.reason, pod.Name, got)
				}
			}
			s.same(c, who)
			load.check()
		})
	}
}
