//go:build env

package reconcile_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile"
	"quorate.dev/render"
)

// TestPutBackIdle: to run is not to serve. A member whose etcd lives on with new options, and never
// serves, is rolled back like one whose etcd ends; at once where the spec was set back.
func TestPutBackIdle(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		size       int32
		version    string // that is asked for as well
		stallAfter time.Duration
		reverted   bool
	}{
		"Three":         {reason: "the others serve all along", size: 3, stallAfter: 15 * time.Second},
		"One":           {reason: "no member serves until it is rolled back", size: 1, stallAfter: 15 * time.Second},
		"ThreeVersion":  {reason: "the version goes back as well: the cluster is of the earlier minor", size: 3, version: etcd37, stallAfter: 15 * time.Second},
		"OneVersion":    {reason: "etcd has taken no data that the earlier one cannot read", size: 1, version: etcd37, stallAfter: time.Hour, reverted: true},
		"ThreeReverted": {reason: "nothing waits for what the spec does not ask for any more", size: 3, stallAfter: time.Hour, reverted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate(func(r *reconcile.Reconciler) { r.StallAfter = tc.stallAfter })
			c := s.cluster("db", tc.size)
			load := s.laden(c)
			before, _ := s.lives(c)
			who := identityOf(c)
			spec := *c.Spec.DeepCopy()
			s.change(c, func() {
				muted(c)
				c.Spec.Version = cmp.Or(tc.version, c.Spec.Version)
			})
			if tc.reverted {
				s.awaitIdle(c)
				s.change(c, func() { c.Spec = spec })
				s.ready(c)
			} else {
				message := s.stalled(c, api.ReasonChangeFailed)
				says := "with the new spec.options it runs and does not serve"
				if tc.version != "" {
					says = "with etcd " + tc.version + " and the new spec.options it runs and does not serve"
				}
				if !strings.Contains(message, says) {
					t.Errorf("%s: the message does not say %q: %s", tc.reason, says, message)
				}
				s.whole(c)
			}
			touched := 0
			for _, pod := range s.pods(c) {
				if pod.UID != before[pod.Name] {
					touched++
				}
			}
			if names := s.has(c, unwilling); touched != 1 || len(names) > 0 {
				t.Errorf("%s: %d Pods were recreated, and %v have the option still", tc.reason, touched, names)
			}
			s.same(c, who)
			load.await(20)
			load.check()
		})
	}
}

// TestIdleFromBirth: a cluster whose etcd has never served does so when the spec is mended.
func TestIdleFromBirth(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	muted(c)
	s.create(c)
	s.awaitIdle(c)
	s.change(c, func() { c.Spec.Options = nil })
	s.ready(c)
	if names := s.has(c, unwilling); len(names) > 0 {
		t.Errorf("%v have the option still", names)
	}
}

// awaitIdle waits until a Pod runs that has the mute flag.
func (s *stage) awaitIdle(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "with a member that has the mute flag", func() bool { return len(s.has(c, unwilling)) > 0 })
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = s.has(c, unwilling)[0], s.ns
	s.awaitPod(pod, "running", func() bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Name == render.Container && pod.Status.ContainerStatuses[0].State.Running != nil
	})
}
