//go:build e2e

package footprint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostReaction is how long it may take from a deleted Pod of a healthy cluster to its successor, at
// the 99th percentile.
const mostReaction = 2 * time.Second

// loseNodes has all members of the clusters be on nodes that answer nothing any more, and waits
// until the operator has noticed.
func loseNodes(t *testing.T, c client.Client, seen *seen, names []string) {
	t.Helper()
	at(t, names, func(ctx context.Context, name string) error {
		for n := range members {
			if err := annotate(ctx, c, podOf(metav1.NamespaceDefault, fmt.Sprintf("%s-%d", name, n)), map[string]*string{lostNode: new("true")}); err != nil {
				return err
			}
		}
		return nil
	})
	seen.until(t, patience(len(names), 0), "no longer Ready", names, func(k *known) bool { return !k.ready })
}

func podOf(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// annotate writes annotations of an object; nil takes one away.
func annotate(ctx context.Context, c client.Client, o client.Object, written map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": written}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// react deletes a Pod of a healthy cluster, and waits until the cluster is Ready with its
// successor. It returns how long it took until that was seen first.
func react(t *testing.T, c client.Client, seen *seen, name string) time.Duration {
	t.Helper()
	lost := seen.lose([]string{name})
	begun := time.Now()
	if err := c.Delete(t.Context(), podOf(metav1.NamespaceDefault, lost[name]), client.GracePeriodSeconds(0)); err != nil { // no kubelet ends it
		t.Fatal(err)
	}
	seen.until(t, time.Minute, "given another Pod", []string{name}, func(k *known) bool { return k.made > 0 })
	took := seen.now(name).at.Sub(begun)
	seen.until(t, time.Minute, "Ready again", []string{name}, func(k *known) bool { return k.ready && k.version > k.made })
	return took
}

// reactions are what react has returned.
type reactions []time.Duration

// judge fails where the 99th percentile is more than mostReaction. beside are the clusters, in
// words.
func (r reactions) judge(t *testing.T, beside string, args ...any) {
	t.Helper()
	slices.Sort(r)
	median, late := r[len(r)/2], r[len(r)*99/100]
	t.Logf("from a deleted Pod of a healthy cluster to its successor, of %s: median %s, 99th percentile %s of %d",
		fmt.Sprintf(beside, args...), median.Round(time.Millisecond), late.Round(time.Millisecond), len(r))
	if late > mostReaction {
		t.Errorf("want a 99th percentile of %s at most", mostReaction)
	}
}
