//go:build e2e

package footprint

import (
	"context"
	"flag"
	"testing"
)

var of = flag.Int("of", 40, "TestLostNodesBesideHealthy and TestHostileBesideHealthy: how many EtcdClusters there are, of which 15 in 100 are on lost nodes")

// TestLostNodesBesideHealthy: of the clusters, some have all members on nodes that answer nothing
// any more. The operator had connections to these members. It recreates a deleted Pod of a healthy
// cluster within two seconds.
func TestLostNodesBesideHealthy(t *testing.T) {
	const events = 50
	sick := *of * 15 / 100
	c, seen, access := apiServer(t)
	startStandIns(t, access, *of)
	startOperator(t, build(t), access)
	names := namesOf(*of)
	at(t, names, func(ctx context.Context, name string) error { return c.Create(ctx, newCluster(name)) })
	seen.until(t, patience(*of, 0), "Ready", names, func(k *known) bool { return k.ready })

	loseNodes(t, c, seen, names[:sick])
	var took reactions
	for n := range events {
		took = append(took, react(t, c, seen, names[sick+n%(*of-sick)]))
	}
	took.judge(t, "%d clusters of which %d answer nothing", *of, sick)
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
