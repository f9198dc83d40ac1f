package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/membership"
)

// TestEventBound: the API server refuses an event whose note has more than 1024 bytes, and then it
// is lost.
func TestEventBound(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.event(newCluster(), membership.Step{Action: membership.Wait, Reason: membership.Starting}, strings.Repeat("x", 2000))
	if diff := cmp.Diff("Normal Starting "+strings.Repeat("x", 1021)+"...", <-s.events.Events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
