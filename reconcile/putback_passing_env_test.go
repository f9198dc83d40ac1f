//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
)

// passing is how long etcd serves before it ends once more: it has answered the operator by then.
const passing = time.Second

// memory are resources with that limit.
func memory(limit string) *api.Resources {
	return &api.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
}

// endsAgainAndAgain ends etcd of the Pods that are meant, each time a moment after its kubelet has
// found that it serves, until the test is over. The function that it returns tells in which Pods it
// did.
func (s *stage) endsAgainAndAgain(c *api.EtcdCluster, meant func(*corev1.Pod) bool, end func(namespace, pod string) error) (struck func() map[types.UID]string) {
	s.Helper()
	w, err := s.Watch(s.Context(), &corev1.PodList{}, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name})
	if err != nil {
		s.Fatal(err)
	}
	ended, pods := map[string]bool{}, map[types.UID]string{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type == watch.Deleted || !meant(pod) || !history.Ready(pod) {
				continue
			}
			if life := pod.Status.ContainerStatuses[0].ContainerID; !ended[life] {
				ended[life], pods[pod.UID] = true, pod.Name
				time.AfterFunc(passing, func() { _ = end(pod.Namespace, pod.Name) }) // it may be gone by then
			}
		}
	}()
	s.Cleanup(w.Stop)
	return func() map[types.UID]string {
		w.Stop()
		s.over(done, "the watch of Pods")
		return pods
	}
}

// TestPutBackPassing: etcd answers from what a member was changed to, and then ends, again and
// again. No answer of it is taken for success: the change does not go on to the next member, and
// this one gets back what it has served with. The others serve all along.
func TestPutBackPassing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*api.EtcdClusterSpec)
		meant  func(*corev1.Pod) bool
		end    func(*stage) func(namespace, pod string) error
		says   string
	}{
		"Options": {
			reason: "with the new options etcd ends after a while",
			change: func(spec *api.EtcdClusterSpec) {
				spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))}
			},
			meant: func(pod *corev1.Pod) bool { return slices.Contains(argsOf(pod), "--heartbeat-interval=50") },
			end:   func(s *stage) func(namespace, pod string) error { return s.hostlet.Kill },
			says:  "with the new spec.options it exited with code 137",
		},
		"Memory": {
			reason: "the lower limit is too low for etcd once it serves",
			change: func(spec *api.EtcdClusterSpec) { spec.Resources = memory("14Mi") },
			meant: func(pod *corev1.Pod) bool {
				return pod.Spec.Containers[0].Resources.Limits.Memory().Cmp(resource.MustParse("14Mi")) == 0
			},
			end:  func(s *stage) func(namespace, pod string) error { return s.hostlet.Starve },
			says: "with the new spec.resources it was killed for using more memory than its limit of 14Mi (OOMKilled)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, patient)
			s.operate()
			c := s.cluster("db", 3)
			c.Spec.Resources = memory("1Gi")
			load := s.laden(c)
			before, _ := s.lives(c)
			struck := s.endsAgainAndAgain(c, tc.meant, tc.end(s))
			s.change(c, func() { tc.change(&c.Spec) })
			if message := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(message, tc.says) {
				t.Errorf("%s: the message does not say %q: %s", tc.reason, tc.says, message)
			}
			s.whole(c)
			if pods := struck(); len(pods) != 1 {
				t.Errorf("%s: the change came to the Pods %v, and each of them has ended", tc.reason, pods)
			}
			var touched []string
			for _, pod := range s.pods(c) {
				if pod.UID != before[pod.Name] {
					touched = append(touched, pod.Name)
				}
				if tc.meant(&pod) {
					t.Errorf("%s: %s still has what was rolled back", tc.reason, pod.Name)
				}
			}
			if len(touched) != 1 {
				t.Errorf("%s: the Pods of %v were recreated", tc.reason, touched)
			}
			load.await(20)
			load.check()
		})
	}
}
