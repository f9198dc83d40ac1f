//go:build e2e

package e2e

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// How much slower than by hand Quorate may be.
const (
	formationLimit = 1.15
	recoveryLimit  = 1.2
)

// TestBenchFormation: from the first request to three Pods that the kubelet finds ready. Clearing
// away is not counted.
func TestBenchFormation(t *testing.T) {
	var said []time.Duration
	formed := fight(t,
		func() time.Duration {
			s, remove := temporaryStage(t)
			defer remove()
			objects := s.byHand(s.cluster("db", 3))
			w := s.watchPods()
			begun := time.Now()
			s.applyAll(objects...)
			s.untilReady(w, 3)
			return time.Since(begun)
		},
		func() time.Duration {
			s, remove := temporaryStage(t)
			defer remove()
			c := s.cluster("db", 3)
			object := s.manifest(c)
			w := s.watchPods()
			begun := time.Now()
			s.applyAll(object)
			var saying sync.WaitGroup
			var failed error
			saying.Go(func() {
				failed = await(t.Context(), c, "ready", func() bool { return is(c, api.ConditionReady, "True") })
				said = append(said, time.Since(begun))
			})
			s.untilReady(w, 3)
			took := time.Since(begun)
			if saying.Wait(); failed != nil {
				t.Fatal(failed)
			}
			return took
		},
	)
	formed.judge(t, "Apply to three ready members", formationLimit, row("EtcdCluster says Ready", said))
}

// TestBenchRecovery: from the request that deletes the Pod of a follower to its successor that the
// kubelet finds ready. By hand, the same Pod is created in the moment in which the old one is gone.
func TestBenchRecovery(t *testing.T) {
	theirs, clearTheirs := temporaryStage(t)
	defer clearTheirs()
	objects := theirs.byHand(theirs.cluster("db", 3))
	w := theirs.watchPods()
	theirs.applyAll(objects...)
	theirs.untilReady(w, 3)

	ours, clearOurs := temporaryStage(t)
	defer clearOurs()
	c := ours.cluster("db", 3)
	ours.create(c)

	back := fight(t,
		func() time.Duration {
			theirs.untilReady(theirs.watchPods(), 3)
			pod := theirs.follower()
			return theirs.recovery(pod, func() { theirs.applyAll(named(objects, pod.Name)) })
		},
		func() time.Duration {
			ours.ready(c)
			ours.untilReady(ours.watchPods(), 3)
			return ours.recovery(ours.follower(), func() {})
		},
	)
	back.judge(t, "A deleted Pod to its member serving again", recoveryLimit)
}

// recovery is the time from a Pod's deletion to the readiness of the next one of its name; gone is
// called in between.
func (s *stage) recovery(pod *corev1.Pod, gone func()) time.Duration {
	s.Helper()
	w := s.watchPods()
	begun := time.Now()
	if err := s.Delete(s.Context(), pod); err != nil {
		s.Fatal(err)
	}
	s.until(w, "Pod "+pod.Name+" to be back", func(event watch.EventType, p *corev1.Pod) bool {
		if event == watch.Deleted && p.UID == pod.UID {
			gone()
		}
		return p.Name == pod.Name && p.UID != pod.UID && isReady(p)
	})
	return time.Since(begun)
}

// named is the Pod of that name among objects.
func named(objects []*unstructured.Unstructured, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == "Pod" && o.GetName() == name {
			return o
		}
	}
	return nil
}

// follower is the first Pod whose member does not lead.
func (s *stage) follower() *corev1.Pod {
	s.Helper()
	list := &corev1.PodList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; s.metric(pod, "etcd_server_is_leader", "") == 0 {
			return pod
		}
	}
	s.Fatal("every member leads")
	return nil
}
