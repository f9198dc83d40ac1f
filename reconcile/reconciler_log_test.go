package reconcile

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"quorate.dev/membership"
)

// TestOutcomeLogged: the log names the rule that decided a step, where it was taken and where
// something stood against it.
func TestOutcomeLogged(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
	}{
		"Taken":    {reason: "the step was taken"},
		"Obstacle": {reason: "something is waited for", err: errInFlight},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
			step := membership.Step{Action: membership.Start, Members: []string{"db-0"}, Rule: "startMembers", Reason: membership.Starting}
			if _, err := outcome(log.IntoContext(t.Context(), logger), step, tc.err); err != nil && !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			if len(lines) != 1 || !strings.Contains(lines[0], `"rule"="startMembers"`) {
				t.Errorf("%s: the log is %q", tc.reason, lines)
			}
		})
	}
}
