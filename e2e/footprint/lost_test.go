//go:build e2e

package footprint

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var of = flag.Int("of", 200, "TestLostNodesBesideHealthy: how many EtcdClusters there are, of which 15 in 100 are on lost nodes")

// TestLostNodesBesideHealthy: of the clusters, some have all members on nodes that answer nothing
// any more. The operator had connections to these members. It recreates a deleted Pod of a healthy
// cluster within two seconds.
func TestLostNodesBesideHealthy(t *testing.T) {
	const (
		bound  = 2 * time.Second
		events = 50
	)
	sick := *of * 15 / 100
	c, seen, access := apiServer(t)
	startStandIns(t, access, *of)
	startOperator(t, build(t), access)
	names := namesOf(*of)
	at(t, names, func(ctx context.Context, name string) error { return c.Create(ctx, newCluster(name)) })
	seen.until(t, patience(*of, 0), "Ready", names, func(k *known) bool { return k.ready })

	at(t, names[:sick], func(ctx context.Context, name string) error {
		for n := range members {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-%d", name, n)}}
			lost := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, lostNode)
			if err := c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, lost)); err != nil {
				return err
			}
		}
		return nil
	})
	seen.until(t, patience(*of, 0), "no longer Ready", names[:sick], func(k *known) bool { return !k.ready })
	var took []time.Duration
	for n := range events {
		name := names[sick+n%(*of-sick)]
		lost := seen.lose([]string{name})
		begun := time.Now()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: lost[name]}}
		if err := c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil { // no kubelet ends it
			t.Fatal(err)
		}
		seen.until(t, time.Minute, "given another Pod", []string{name}, func(k *known) bool { return k.made > 0 })
		took = append(took, seen.now(name).at.Sub(begun))
		seen.until(t, time.Minute, "Ready again", []string{name}, func(k *known) bool { return k.ready && k.version > k.made })
	}
	slices.Sort(took)
	median, late := took[events/2], took[events*99/100]
	t.Logf("from a deleted Pod of a healthy cluster to its successor, of %d clusters of which %d answer nothing: median %s, 99th percentile %s of %d",
		*of, sick, median.Round(time.Millisecond), late.Round(time.Millisecond), events)
	if late > bound {
		t.Errorf("want a 99th percentile of %s at most", bound)
	}
	ready := 0
	for _, name := range names[:sick] {
		if seen.now(name).ready {
			ready++
		}
	}
	if ready > 0 {
		t.Errorf("void: %d of the clusters on lost nodes are Ready", ready)
	}
}
