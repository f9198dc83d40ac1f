//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// TestFirstOverwrites: an operator that is started, and told by an API server that is behind of a
// world in which objects have yet to be created, does not write over those that are there by now.
func TestFirstOverwrites(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		at     string // the effect before which the world was as it is seen later; empty is before the first life of the cluster
	}{
		"FirstPods":   {reason: "a Pod that serves is told again that it may start empty", at: "apply.Pod.db-0#1"},
		"FirstClaims": {reason: "a retained volume forgets whose data it holds"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			first := func() *api.EtcdCluster { // where no class is named, the API server refuses to take away the one that a volume got
				c := s.cluster("db", 3)
				c.Spec.Storage.StorageClassName = new("standard")
				return c
			}
			view := &held{stage: s, looks: make(chan struct{}, 1)}
			past := view.look()
			f := newFault(tc.at, "InternalError")
			if tc.at != "" {
				f.then = func() { past = view.look() }
			}
			f.arm()
			crash := s.operate(view.between, f.between)
			c := first()
			kept := s.born(c)
			crash()
			if tc.at == "" { // the cluster is applied again over its volumes
				s.must(s.Delete(t.Context(), c))
				for _, pod := range s.pods(c) {
					s.gone(&pod)
				}
				for _, name := range []string{"db", "db-client"} {
					s.gone(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}})
				}
				s.gone(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: s.ns}})
				c = first()
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
			s.settled(c, kept)
		})
	}
}

// TestPausedProvisioner: an operator that pauses before it makes the Pod of a member to come does
// not write over that of the voter which another operator has made of it meanwhile.
func TestPausedProvisioner(t *testing.T) {
	s := newStage(t)
	paused, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	f := newFault("", "")
	f.around = func(what string, effect func() error) error {
		if what != "apply.Pod.db-1" {
			return effect()
		}
		var err error
		once.Do(func() {
			close(paused)
			<-goOn
			err = effect()
			close(done)
		})
		return err
	}
	s.operate(f.between)
	c := s.cluster("db", 1)
	kept := s.born(c)
	f.arm()
	s.resize(c, 3)
	s.over(paused, "what comes before the Pod of db-1")
	s.operate()
	s.sized(c, 3)
	s.write(c, kept)
	before := s.written(c)
	close(goOn)
	s.over(done, "the pause")
	if diff := cmp.Diff(before, s.written(c)); diff != "" {
		t.Errorf("a voter is told again that it is being prepared: -before +after:\n%s", diff)
	}
	s.settled(c, kept)
}

// harmless effects are those that change no member, its Pod or its volume: each write to one of
// these can hurt, a first one included.
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
