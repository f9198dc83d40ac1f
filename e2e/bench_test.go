//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/history"
)

// Benchmarks compare the operator with the same objects written by hand, on one cluster and in one
// run: what a machine makes of the absolute figures concerns both alike. They print Markdown, for
// docs/benchmarks.md.

var pairs = flag.Int("pairs", 7, "how often benchmarks repeat a comparison with manifests written by hand")

// duel holds the times of both sides, which take turns. No side goes twice in a row: deleting the
// Pod of a member that has only just come back takes longer.
type duel struct{ byHand, operator []time.Duration }

func fight(t *testing.T, byHand, operator func() time.Duration) duel {
	t.Helper()
	var d duel
	for n := range *pairs {
		d.byHand = append(d.byHand, byHand())
		d.operator = append(d.operator, operator())
		t.Logf("pair %d: by hand %.2f s, Quorate %.2f s", n+1, d.byHand[n].Seconds(), d.operator[n].Seconds())
	}
	return d
}

// ratio is the median over the pairs, each of which ran under much the same load.
func (d duel) ratio() float64 { return median(d.ratios()) }

func (d duel) ratios() []float64 {
	var ratios []float64
	for n := range d.operator {
		ratios = append(ratios, d.operator[n].Seconds()/d.byHand[n].Seconds())
	}
	return ratios
}

// judge prints the table and fails where the operator is slower than allowed.
func (d duel) judge(t *testing.T, title string, limit float64, more ...string) {
	t.Helper()
	rows := []string{
		"| | min | median | max |",
		"| --- | ---: | ---: | ---: |",
		row("by hand", d.byHand),
		row("Quorate", d.operator),
		fmt.Sprintf("| ratio of a pair | %.2f | %.2f | %.2f |", slices.Min(d.ratios()), d.ratio(), slices.Max(d.ratios())),
	}
	fmt.Printf("\n%s: %d pairs\n\n%s\n\n", title, len(d.operator), strings.Join(append(rows, more...), "\n"))
	if d.ratio() > limit {
		t.Errorf("%s: the median ratio is %.2f, want at most %.2f", title, d.ratio(), limit)
	}
}

func row(title string, times []time.Duration) string {
	return fmt.Sprintf("| %s | %.1f s | %.1f s | %.1f s |",
		title, slices.Min(times).Seconds(), median(times).Seconds(), slices.Max(times).Seconds())
}

func median[T time.Duration | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// temporaryStage is a stage that remove removes, with the volumes of its claims, before anything
// else is measured.
func temporaryStage(t *testing.T) (s *stage, remove func()) {
	t.Helper()
	stages.Add(1)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespaceName(t.Name()) + "-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := kube.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s = &stage{T: t, WithWatch: kube, ns: ns.Name}
	t.Cleanup(func() {
		if t.Failed() {
			s.dump(context.WithoutCancel(t.Context()))
		}
	})
	return s, func() {
		t.Helper()
		volumes := &corev1.PersistentVolumeList{}
		if err := kube.List(t.Context(), volumes); err != nil {
			t.Fatal(err)
		}
		if err := kube.Delete(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		s.gone(ns)
		for i := range volumes.Items {
			if claim := volumes.Items[i].Spec.ClaimRef; claim != nil && claim.Namespace == ns.Name {
				s.gone(&volumes.Items[i])
			}
		}
	}
}

// watchPods tells each Pod's state from now on.
func (s *stage) watchPods() watch.Interface {
	s.Helper()
	w, err := s.Watch(s.Context(), &corev1.PodList{}, client.InNamespace(s.ns))
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// until reads from a watch of Pods until done says so, and stops it.
func (s *stage) until(w watch.Interface, wanted string, done func(event watch.EventType, pod *corev1.Pod) bool) {
	s.Helper()
	defer w.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				s.Fatalf("the watch ended while waiting for %s", wanted)
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && done(event.Type, pod) {
				return
			}
		case <-late.C:
			s.Fatalf("waited %s for %s", patience, wanted)
		}
	}
}

// untilReady reads from a watch of Pods until so many are ready at the same time.
func (s *stage) untilReady(w watch.Interface, count int) {
	s.Helper()
	s.untilPods(w, count, "ready", isReady)
}

// untilPods reads from a watch of Pods until so many are as they are wanted at the same time.
func (s *stage) untilPods(w watch.Interface, count int, wanted string, is func(*corev1.Pod) bool) {
	s.Helper()
	found := map[string]bool{}
	s.until(w, fmt.Sprintf("%d %s Pods", count, wanted), func(event watch.EventType, pod *corev1.Pod) bool {
		delete(found, pod.Name)
		if event != watch.Deleted && is(pod) {
			found[pod.Name] = true
		}
		return len(found) == count
	})
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && history.Ready(pod)
}
