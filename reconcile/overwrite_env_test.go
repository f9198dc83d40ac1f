//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// TestFirstOverwrites: an operator that is started, and told by an API server that is behind of a world in which objects have yet to
// be created, does not write over those that are there by now.
func TestFirstOverwrites(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		at     string // the effect before which the world was as it is seen later; empty is before the first life of the cluster
		from   int32
		to     int32
	}{
		"FirstPods":   {reason: "a Pod that serves is told again that it may start empty", at: "apply.Pod.db-0#1", from: 3},
		"FirstClaims": {reason: "a retained volume forgets whose data it holds", from: 3},
		"Provisioner": {reason: "a voter is told again that it is being prepared", at: "apply.Pod.db-1#1", from: 1, to: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			view := &held{stage: s, looks: make(chan struct{}, 1)}
			past := view.look()
			f := newFault(tc.at, "InternalError")
			if tc.at != "" {
				f.then = func() { past = view.look() }
			}
			if tc.to == 0 {
				f.arm()
			}
			crash := s.operate(view.between, f.between)
			c := s.cluster("db", tc.from)
			kept := s.born(c)
			size := tc.from
			if tc.to > 0 {
				f.arm()
				s.resize(c, tc.to)
				s.sized(c, int(tc.to))
				s.write(c, kept)
				size = tc.to
			}
			crash()
			if tc.at == "" { // the cluster is applied again over its volumes
				s.must(s.Delete(t.Context(), c))
				for _, pod := range s.pods(c) {
					s.gone(&pod)
				}
				c = s.cluster("db", tc.from)
				contract.Watch(s, c)
				s.create(c)
				past.clusters = view.look().clusters
			} else if !f.met() {
				t.Fatalf("void: there was no %s, but %v", tc.at, f.effects())
			}
			before := s.written(c)

			view.show(past)
			f = newFault("", "")
			f.arm()
			s.operate(view.between, f.between)
			view.looked(5)
			if effects := slices.DeleteFunc(f.effects(), harmless); len(effects) > 0 {
				t.Errorf("%s: in a world of the past it did this: %v", tc.reason, effects)
			}
			if diff := cmp.Diff(before, s.written(c)); diff != "" {
				t.Errorf("%s: -before +after:\n%s", tc.reason, diff)
			}
			view.release()
			s.sized(c, int(size))
			s.settled(c, kept)
		})
	}
}

// harmless effects are those that change no member, its Pod or its volume: each write to one of these can hurt, a first one included.
func harmless(effect string) bool {
	verb, of, _ := strings.Cut(effect, ".")
	return verb == "status" || verb == "apply" && (strings.HasPrefix(of, "Service.") || strings.HasPrefix(of, "PodDisruptionBudget."))
}

// written is what Quorate has written on the volumes and Pods of the cluster.
func (s *stage) written(c *api.EtcdCluster) map[string]map[string]string {
	s.Helper()
	all := map[string]map[string]string{}
	ours := func(annotations map[string]string) map[string]string {
		kept := map[string]string{}
		for key, value := range annotations {
			if strings.HasPrefix(key, api.GroupName+"/") {
				kept[key] = value
			}
		}
		return kept
	}
	for _, pod := range s.pods(c) {
		all["Pod "+pod.Name+" "+string(pod.UID)] = ours(pod.Annotations)
	}
	for _, claim := range s.claims(c) {
		all["claim "+claim.Name+" "+string(claim.UID)] = ours(claim.Annotations)
	}
	return all
}
