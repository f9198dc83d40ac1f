//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
)

func (s *stage) has(c *api.EtcdCluster, flag string) (names []string) {
	s.Helper()
	for _, pod := range s.pods(c) {
		if slices.ContainsFunc(argsOf(&pod), func(arg string) bool { return strings.Contains(arg, flag) }) {
			names = append(names, pod.Name)
		}
	}
	return names
}

// whole waits until every member of the cluster serves, whatever the spec asks for.
func (s *stage) whole(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "whole", func() bool {
		return is(c, api.ConditionDegraded, metav1.ConditionFalse) && c.Status.ReadyReplicas == *c.Spec.Replicas
	})
}

// awaitRecreated waits until a Pod of that name is there that is another one, and ready.
func (s *stage) awaitRecreated(name string, than types.UID) {
	s.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	s.awaitPod(pod, "recreated and ready", func() bool { return pod.UID != than && history.Ready(pod) })
}

// TestPutBackOptions: options with which etcd does not start stop at the first member, which gets
// back those with which it has served; so does a member that loses a Pod until the spec is mended,
// and then all get what it asks for.
func TestPutBackOptions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		size   int32
	}{
		"Three": {reason: "two of three are never touched", size: 3},
		"One":   {reason: "no member serves until it is rolled back", size: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", tc.size)
			load := s.laden(c)
			before, _ := s.lives(c)
			who := identityOf(c)
			s.change(c, func() { wrongOptions(c) })
			message := s.stalled(c, api.ReasonChangeFailed)
			for _, says := range []string{"with the new spec.options it exited with code", "compact-hash-check-time must be >0", "It was rolled back", "Correct or revert the spec"} {
				if !strings.Contains(message, says) {
					t.Errorf("%s: the message does not say %q: %s", tc.reason, says, message)
				}
			}
			s.whole(c)
			after, restarts := s.lives(c)
			var changed []string
			for member, uid := range after {
				if uid != before[member] {
					changed = append(changed, member)
				}
			}
			if len(changed) != 1 || slices.Max(slices.Collect(maps.Values(restarts))) > 0 {
				t.Fatalf("%s: the Pods of %v were recreated, and containers started again: %v", tc.reason, changed, restarts)
			}
			s.warned(c, api.ReasonChangeFailed, "rolling "+changed[0]+" back")

			for member, uid := range after { // the one that was rolled back, and those that were never touched
				s.deletePod(member)
				s.awaitRecreated(member, uid)
				s.whole(c)
			}
			if names := s.has(c, unwilling); len(names) > 0 || c.Status.FailedChange == nil {
				t.Errorf("%s: %v have got the wrong flag, failed change %v", tc.reason, names, c.Status.FailedChange)
			}
			load.await(20)
			s.change(c, func() { c.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))} })
			s.ready(c)
			if names := s.has(c, "--heartbeat-interval=50"); len(names) != int(tc.size) || c.Status.FailedChange != nil {
				t.Errorf("%s: %v have the new option, failed change %v", tc.reason, names, c.Status.FailedChange)
			}
			s.same(c, who)
			load.await(20)
			load.check()
		})
	}
}

// TestPutBackAmongOthers: a writer that writes on a claim as soon as its Pod goes does not keep its
// member from being rolled back.
func TestPutBackAmongOthers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		write  func(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error
	}{
		"Status": {
			reason: "from 1.37 on Kubernetes says there that the claim is unused (PersistentVolumeClaimUnusedSinceTime)",
			write: func(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
				before := claim.DeepCopy()
				claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
					Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: "NoPodsUsingPVC",
				})
				return c.Status().Patch(ctx, claim, client.MergeFrom(before))
			},
		},
		"Annotation": {
			reason: "a tool for backups keeps a note of its own there",
			write: func(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
				before := claim.DeepCopy()
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "backup.example.com/seen", metav1.Now().String())
				return c.Patch(ctx, claim, client.MergeFrom(before))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			f := newFault("", "")
			f.around = func(what string, effect func() error) error {
				err := effect()
				name, isPod := strings.CutPrefix(what, "delete.Pod.")
				if !isPod || err != nil {
					return err
				}
				claim := &corev1.PersistentVolumeClaim{}
				if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, claim); err != nil {
					return err
				}
				return tc.write(s.Context(), s.WithWatch, claim)
			}
			f.arm()
			s.operate(f.between)
			c := s.cluster("db", 3)
			load := s.laden(c)
			s.change(c, func() { wrongOptions(c) })
			s.stalled(c, api.ReasonChangeFailed)
			s.whole(c)
			if names := s.has(c, unwilling); len(names) > 0 {
				t.Errorf("%s: %v still have what was rolled back", tc.reason, names)
			}
			load.check()
		})
	}
}

// warned waits until the cluster has a warning of that reason that says so.
func (s *stage) warned(c *api.EtcdCluster, reason, note string) {
	s.Helper()
	s.await(c, fmt.Sprintf("warned with %q", note), func() bool {
		return slices.ContainsFunc(s.events(), func(e eventsv1.Event) bool {
			return e.Regarding.Name == c.Name && e.Type == corev1.EventTypeWarning && e.Reason == reason && strings.Contains(e.Note, note)
		})
	})
}

// TestPutBackScheduling: a place that no node fits is given up after a while, and the member comes
// back where it was.
func TestPutBackScheduling(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	before, _ := s.lives(c)
	s.hostlet.Cordon()
	s.change(c, func() { c.Spec.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"disk": "fast"}} })
	s.await(c, "given up, and the Pod replaced", func() bool { // one that finds a place in the last moment would stay
		return c.Status.FailedChange != nil && !slices.ContainsFunc(s.pods(c), func(pod corev1.Pod) bool { return len(pod.Spec.NodeSelector) > 0 })
	})
	s.must(s.hostlet.Uncordon(t.Context()))
	if message := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(message, "with the new spec.scheduling it cannot be scheduled") {
		t.Errorf("the message does not say what was tried and why it failed: %s", message)
	}
	s.whole(c)
	touched := 0
	for _, pod := range s.pods(c) {
		if pod.UID != before[pod.Name] {
			touched++
		}
		if len(pod.Spec.NodeSelector) > 0 {
			t.Errorf("%s still asks for a node with %v", pod.Name, pod.Spec.NodeSelector)
		}
	}
	if touched != 1 {
		t.Errorf("%d members were touched", touched)
	}
	s.change(c, func() { c.Spec.Scheduling.NodeSelector = api.Labels{"disk": "slow"} })
	s.ready(c)
	for _, pod := range s.pods(c) {
		if pod.Spec.NodeSelector["disk"] != "slow" {
			t.Errorf("%s has not come to what the spec was mended to: %v", pod.Name, pod.Spec.NodeSelector)
		}
	}
	load.check()
}

// TestPutBackRefused: a Pod that the API server does not take is a change that does not work.
func TestPutBackRefused(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	s.change(c, func() { c.Spec.Scheduling = &api.Scheduling{PriorityClassName: "nowhere"} })
	if message := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(message, "with the new spec.scheduling it has no Pod") || !strings.Contains(message, "no PriorityClass with name nowhere") {
		t.Errorf("the message does not say what was tried and why it failed: %s", message)
	}
	s.whole(c)
	s.change(c, func() { c.Spec.Scheduling = nil })
	s.ready(c)
	load.check()
}
