//go:build env

package hostlet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/node"
)

// ready is what the Pod's Ready condition says.
func ready(pod *corev1.Pod) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func TestLoseNode(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()
	s.must(s.host.LoseNode(s.ns, pod.Name))
	s.waitFor(pod, "not ready", func() (bool, string) { return ready(pod) == corev1.ConditionFalse, string(ready(pod)) })
	if c := pod.Status.ContainerStatuses[0]; !c.Ready || c.State.Running == nil {
		t.Errorf("something reports on the container: %+v", c)
	}
	s.must(s.host.ReturnNode(s.ns, pod.Name))
	s.waitFor(pod, "ready", func() (bool, string) { return ready(pod) == corev1.ConditionTrue, string(ready(pod)) })

	s.must(s.host.LoseNode(s.ns, pod.Name))
	s.delete(pod, client.GracePeriodSeconds(1))
	other, pvc := etcdPod("other", "other=http://other.peers.$(NAMESPACE).svc:2380"), claim("other")
	s.create(other, pvc)
	s.waitReady(other, 0) // which takes longer than the grace
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	s.must(s.host.ReturnNode(s.ns, pod.Name))
	s.waitGone(pod)

	s.must(s.host.LoseNode(s.ns, other.Name))
	s.delete(other, client.GracePeriodSeconds(0))
	s.waitGone(other)
	s.must(s.host.Resume(s.ns, other.Name)) // it has a process
	s.must(s.host.ReturnNode(s.ns, other.Name))
	if err := s.host.Kill(s.ns, other.Name); err == nil {
		t.Error("the process of a Pod that is gone goes on when its node is back")
	}
}

// A change that was taken back while the node was away never happened to it, whatever its watch
// has told by then.
func TestReturnNodeSeesTheEnd(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()
	for range 50 { // the watch of a Hostlet is seldom late
		s.must(s.host.Deafen(s.ns, pod.Name))
		s.change(pod, func() { pod.Spec.Containers[0].Image = image(node.Etcd37) })
		s.change(pod, func() { pod.Spec.Containers[0].Image = image(node.Etcd36) })
		s.must(s.host.ReturnNode(s.ns, pod.Name))
	}
	s.must(s.host.withRun(s.ns, pod.Name, func(r *run) {
		if r.stopping {
			t.Error("etcd was asked to end")
		}
	}))
	s.waitReady(pod, 0)
}

func TestCordon(t *testing.T) {
	s := newStage(t)
	s.host.Cordon()
	pod := etcdPod("a", "a=http://a.peers.$(NAMESPACE).svc:2380")
	s.create(pod, claim("a"))
	s.waitFor(pod, "unschedulable", func() (bool, string) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return strings.Contains(c.Message, "unschedulable"), c.Message
			}
		}
		return false, ""
	})
	s.must(s.host.Uncordon(t.Context()))
	s.waitReady(pod, 0)
}

func TestLastWords(t *testing.T) {
	s := newStage(t)
	pod := etcdPod("a", "")
	c := &pod.Spec.Containers[0]
	c.Args = append(c.Args, "--no-such-flag")
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	s.create(pod, claim("a"))
	s.waitContainer(pod, "ended with its last words", func(c *corev1.ContainerStatus) bool {
		last := c.LastTerminationState.Terminated
		return last != nil && strings.Contains(last.Message, "no-such-flag") && len(last.Message) <= 2<<10
	})
}
