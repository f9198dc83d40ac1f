//go:build env

package reconcile_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// TestLaterMinorInMemory: while no operator runs, a person sets the image of a Pod to a later
// minor, and then to the earlier one again (kubectl set image). That does not read the data, which
// is in memory: the Pod gets the later minor in place, and what was written is there.
func TestLaterMinorInMemory(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		specs  []string // one after the other
		runs   string
	}{
		"Reverted":  {reason: "the spec asks for the earlier minor, which etcd prepares", specs: []string{etcd36}, runs: etcd36},
		"Corrected": {reason: "the spec asks for a patch of the later minor that cannot be pulled, and is corrected", specs: []string{"3.7.99", etcd37}, runs: etcd37},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			crash := s.operate()
			c := s.cluster("db", 1)
			c.Spec.Storage.Medium = api.MediumMemory
			kept := s.born(c)
			before, _ := s.lives(c)
			crash()
			s.setImage("db-0", etcd37)
			s.eventually("the data is of 3.7", func() bool {
				status, err := s.etcd(c).Status(t.Context(), s.etcd(c).Endpoints()[0])
				return err == nil && strings.HasPrefix(status.StorageVersion, "3.7")
			})
			s.setImage("db-0", etcd36)
			s.operate()
			for n, version := range tc.specs {
				s.change(c, func() { c.Spec.Version = version })
				if n < len(tc.specs)-1 {
					s.await(c, "stalled", func() bool { return is(c, api.ConditionStalled, metav1.ConditionTrue) })
				}
			}
			s.oneRuns(c, etcd37)
			s.runs(c, tc.runs)
			s.settled(c, kept)
			if after, _ := s.lives(c); after["db-0"] != before["db-0"] {
				t.Errorf("%s: the Pod is another one: %v, then %v", tc.reason, before, after)
			}
		})
	}
}

// setImage changes what a Pod runs, as a person would (kubectl set image).
func (s *stage) setImage(name, version string) {
	s.Helper()
	pod := &corev1.Pod{}
	s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, pod))
	s.change(pod, func() {
		for n := range pod.Spec.Containers {
			if container := &pod.Spec.Containers[n]; container.Name == render.Container {
				repository, _, _ := strings.Cut(container.Image, ":")
				container.Image = repository + ":v" + version
			}
		}
	})
}
