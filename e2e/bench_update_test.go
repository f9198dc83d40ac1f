//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/node"
	"quorate.dev/render"
)

const (
	updateRatio = 1.5                    // of Quorate's time to that by hand, in the same run
	updateStall = 250 * time.Millisecond // of four clients that together write every 5 ms, as a median of the longest ones
)

// TestBenchUpdate: three members come from one minor to the next under writes, by hand and by
// Quorate in turn. By hand, the image of one running Pod after the other is changed in place, the
// next when the last is ready: nothing could be less. Etcd that is asked to end waits up to seven
// seconds for clients that watch at it, which is most of the time where there are any; so all is
// measured without, and with one at each member.
func TestBenchUpdate(t *testing.T) {
	rows := []string{
		"| | watched | by hand: median | Quorate: median | ratio: median | max | bound | longest stall by hand: median | max | by Quorate: median | max | bound | timed out by hand | by Quorate |",
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
	}
	for _, u := range []update{
		{node.Etcd35, node.Etcd36, false}, {node.Etcd36, node.Etcd37, false},
		{node.Etcd35, node.Etcd36, true}, {node.Etcd36, node.Etcd37, true},
	} {
		t.Run(u.String(), func(t *testing.T) {
			var byHand, byQuorate updates
			var ratios []float64
			for n := range *pairs {
				h, o := byHand.add(u.byHand(t)), byQuorate.add(u.byQuorate(t))
				ratios = append(ratios, o.Seconds()/h.Seconds())
				t.Logf("run %d: %s in %.2f s by hand, longest stall %d ms; %.2f s by Quorate, longest stall %d ms", n+1, u, h.Seconds(), byHand.stalls[n].Milliseconds(), o.Seconds(), byQuorate.stalls[n].Milliseconds())
			}
			rows = append(rows, fmt.Sprintf("| %s to %s | %t | %.1f s | %.1f s | %.2f | %.2f | %.1f | %s | %s | %d ms | %d | %d |", u.from, u.to, u.watched,
				median(byHand.times).Seconds(), median(byQuorate.times).Seconds(), median(ratios), slices.Max(ratios), updateRatio,
				byHand.stalled(), byQuorate.stalled(), updateStall.Milliseconds(), byHand.timedOut, byQuorate.timedOut))
			if median(ratios) > updateRatio {
				t.Errorf("%s: %.2f times as long as by hand, want at most %.1f", u, median(ratios), updateRatio)
			}
			if median(byQuorate.stalls) > updateStall {
				t.Errorf("%s: median of the longest stalls %s, want at most %s", u, median(byQuorate.stalls), updateStall)
			}
			if longest := slices.Max(byQuorate.stalls); longest > stallMost {
				t.Errorf("%s: longest stall %s, want at most %s", u, longest, stallMost)
			}
		})
	}
	fmt.Printf("\nVersions of three members under writes: %d pairs\n\n%s\n\n", *pairs, strings.Join(rows, "\n"))
}

// updates are the measurements of one side.
type updates struct {
	times, stalls []time.Duration
	timedOut      int // writes
}

func (u *updates) add(took time.Duration, under history.Result) time.Duration {
	u.times, u.stalls = append(u.times, took), append(u.stalls, under.Longest)
	u.timedOut += under.Attempted - under.Acknowledged
	return took
}

func (u *updates) stalled() string {
	return fmt.Sprintf("%d ms | %d ms", median(u.stalls).Milliseconds(), slices.Max(u.stalls).Milliseconds())
}

// update is a change of the version, with a client that watches at each member or with none.
type update struct {
	from, to string
	watched  bool
}

func (u update) String() string {
	if u.watched {
		return u.from + " to " + u.to + ", watched"
	}
	return u.from + " to " + u.to
}

// under has clients write, and watch, while run does something, and returns how long that took.
func (u update) under(s *stage, c *api.EtcdCluster, run func()) (time.Duration, history.Result) {
	s.Helper()
	if u.watched {
		defer s.watchEach(c)()
	}
	writes := s.writeAtPace(c, u.watched)
	<-time.After(settled)
	begun := time.Now()
	run()
	took := time.Since(begun)
	return took, s.checkPace(writes)
}

func (u update) byQuorate(t *testing.T) (time.Duration, history.Result) {
	t.Helper()
	s, remove := temporaryStage(t)
	defer remove()
	c := s.cluster("db", 3)
	c.Spec.Version = u.from
	s.create(c)
	s.ready(c)
	return u.under(s, c, func() {
		s.change(c, func() { c.Spec.Version = u.to })
		s.await(c, "ready with "+u.to, func() bool {
			return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == u.to
		})
	})
}

func (u update) byHand(t *testing.T) (time.Duration, history.Result) {
	t.Helper()
	s, remove := temporaryStage(t)
	defer remove()
	c := s.cluster("hand", 3)
	c.Spec.Version = u.from
	s.applyAll(s.byHand(c)...)
	s.untilReady(s.watchPods(), 3)
	return u.under(s, c, func() {
		for n := range 3 {
			u.changeByHand(s, c, c.MemberName(n))
		}
	})
}

// changeByHand gives one running Pod another image, and waits for it to be ready.
func (u update) changeByHand(s *stage, c *api.EtcdCluster, name string) {
	s.Helper()
	wanted, err := render.Pod(c, render.Member{Name: name, Version: u.to})
	if err != nil {
		s.Fatal(err)
	}
	flags := map[string]string{}
	for _, key := range []string{api.AnnotationCheckAtStart, api.AnnotationCheckCompacted} {
		flags[strings.Replace(key, "etcd.quorate.dev/", "by-hand.example/", 1)] = wanted.Annotations[key]
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": flags},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": render.Container, "image": render.Image(c, u.to)}}},
	})
	if err != nil {
		s.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, pod); err != nil {
		s.Fatal(err)
	}
	ran := pod.Status.ContainerStatuses[0].ContainerID
	if err := s.Patch(s.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		s.Fatal(err)
	}
	s.await(pod, "ready with "+u.to, func() bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].ContainerID != ran && isReady(pod)
	})
}
