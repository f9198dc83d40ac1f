package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
)

// TestComparisonsOfNamespaces: the members of all clusters of one namespace say nothing when they
// are compared. That does not hold up the comparison of a cluster in another one.
func TestComparisonsOfNamespaces(t *testing.T) {
	t.Parallel()
	var all comparisons
	running := make(chan struct{}, 100)
	for n := range 20 {
		all.begin(t.Context(), types.NamespacedName{Namespace: "silent", Name: fmt.Sprint(n)}, "about", false, func(ctx context.Context) (map[string]membership.Hash, bool) {
			running <- struct{}{}
			<-ctx.Done()
			return nil, false
		})
	}
	<-running
	<-running
	answers := all.begin(t.Context(), types.NamespacedName{Namespace: "ns", Name: "db"}, "about", false, func(context.Context) (map[string]membership.Hash, bool) {
		return nil, true
	})
	select {
	case <-answers:
	case <-time.After(10 * time.Second):
		t.Error("no comparison of another namespace begins")
	}
	if more := len(running); more > 0 {
		t.Errorf("%d clusters of one namespace are compared at a time, want 2", 2+more)
	}
	all.end()
}
