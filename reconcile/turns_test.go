package reconcile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestTurns: so many clusters change at a time, each until it has come to rest.
func TestTurns(t *testing.T) {
	t.Parallel()
	cluster := func(name string) *api.EtcdCluster {
		return &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	a, b, c := cluster("a"), cluster("b"), cluster("c")
	var turns turns
	enters := func(when string, cluster *api.EtcdCluster, limit int, want bool) {
		t.Helper()
		if got := turns.enter(cluster, limit); got != want {
			t.Errorf("%s: %s enters is %t, want %t", when, cluster.Name, got, want)
		}
	}
	enters("the first", a, 2, true)
	enters("the second", b, 2, true)
	enters("one too many", c, 2, false)
	enters("who has a turn keeps it", a, 2, true)
	turns.leave(a, membership.Step{Action: membership.Wait, Reason: membership.Changing})
	enters("a is not done", c, 2, false)
	turns.leave(a, membership.Step{Action: membership.None, Reason: membership.Healthy})
	enters("a is done", c, 2, true)
	turns.leave(b, membership.Step{Action: membership.Stall, Reason: membership.ChangeFailed})
	enters("b waits for a person", a, 2, true)
	turns.forget(client.ObjectKeyFromObject(c))
	enters("c is deleted", b, 2, true)
	enters("without a limit", c, 0, true)
}
