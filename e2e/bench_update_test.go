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
	updateStall = 250 * time.Millisecond // of a client that writes every 5 ms, as a median of the longest ones
)

// TestBenchUpdate: three members come from one minor to the next under writes, by hand and by Quorate in turn. By hand, the
// image of one running Pod after the other is changed in place, the next when the last is ready: nothing could be less.
func TestBenchUpdate(t *testing.T) {
	rows := []string{
		"| | by hand: median | Quorate: median | ratio: median | bound | longest stall by hand: median | max | by Quorate: median | max | bound | timed out by hand | by Quorate |",
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
	}
	for _, hop := range [][2]string{{node.Etcd35, node.Etcd36}, {node.Etcd36, node.Etcd37}} {
		var hand, ours, handStalls, stalls []time.Duration
		var handLost, lost int
		var ratios []float64
		for n := range *pairs {
			h, under := updateByHand(t, hop[0], hop[1])
			hand, handStalls, handLost = append(hand, h), append(handStalls, under.Longest), handLost+under.Attempted-under.Acknowledged
			o, by := updateByQuorate(t, hop[0], hop[1])
			ours, stalls, lost = append(ours, o), append(stalls, by.Longest), lost+by.Attempted-by.Acknowledged
			ratios = append(ratios, o.Seconds()/h.Seconds())
			t.Logf("run %d: %s to %s in %.2f s by hand, longest stall %d ms; %.2f s by Quorate, longest stall %d ms", n+1, hop[0], hop[1], h.Seconds(), under.Longest.Milliseconds(), o.Seconds(), by.Longest.Milliseconds())
		}
		slices.Sort(ratios)
		ratio := ratios[len(ratios)/2]
		rows = append(rows, fmt.Sprintf("| %s to %s | %.1f s | %.1f s | %.2f | %.1f | %d ms | %d ms | %d ms | %d ms | %d ms | %d | %d |", hop[0], hop[1], median(hand).Seconds(), median(ours).Seconds(), ratio, updateRatio,
			median(handStalls).Milliseconds(), slices.Max(handStalls).Milliseconds(), median(stalls).Milliseconds(), slices.Max(stalls).Milliseconds(), updateStall.Milliseconds(), handLost, lost))
		if ratio > updateRatio {
			t.Errorf("%s to %s: %.2f times as long as by hand, want at most %.1f", hop[0], hop[1], ratio, updateRatio)
		}
		if median(stalls) > updateStall {
			t.Errorf("%s to %s: median of the longest stalls %s, want at most %s", hop[0], hop[1], median(stalls), updateStall)
		}
	}
	fmt.Printf("\nVersions of three members under writes: %d pairs\n\n%s\n\n", *pairs, strings.Join(rows, "\n"))
}

func updateByQuorate(t *testing.T, from, to string) (took time.Duration, under history.Result) {
	s, remove := temporaryStage(t)
	defer remove()
	c := s.cluster("db", 3)
	c.Spec.Version = from
	s.create(c)
	s.ready(c)
	writes := s.writeAtPace(c)
	<-time.After(settled)
	begun := time.Now()
	s.change(c, func() { c.Spec.Version = to })
	s.await(c, "ready with "+to, func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.Version == to
	})
	took = time.Since(begun)
	return took, s.checkPace(writes)
}

func updateByHand(t *testing.T, from, to string) (took time.Duration, under history.Result) {
	s, remove := temporaryStage(t)
	defer remove()
	c := s.cluster("hand", 3)
	c.Spec.Version = from
	s.applyAll(s.byHand(c)...)
	events := s.watchPods()
	s.untilReady(events, 3)
	writes := s.writeAtPace(c)
	<-time.After(settled)
	begun := time.Now()
	for n := range 3 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: c.MemberName(n)}}
		wanted, err := render.Pod(c, render.Member{Name: pod.Name, Version: to})
		if err != nil {
			t.Fatal(err)
		}
		flags := map[string]string{}
		for _, key := range []string{api.AnnotationCheckAtStart, api.AnnotationCheckCompacted} {
			flags[strings.Replace(key, "etcd.quorate.dev/", "by-hand.example/", 1)] = wanted.Annotations[key]
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": flags},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": render.Container, "image": render.Image(c, to)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		ran := pod.Status.ContainerStatuses[0].ContainerID
		if err := s.Patch(s.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		s.await(pod, "ready with "+to, func() bool {
			return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].ContainerID != ran && isReady(pod)
		})
	}
	took = time.Since(begun)
	return took, s.checkPace(writes)
}
