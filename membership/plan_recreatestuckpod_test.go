package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecreateStuckPod(t *testing.T) {
	cases := map[string]struct {
		reason    string
		ephemeral bool
		doomed    bool
		pod       Pod
		answers   bool
		want      []string
	}{
		"Running":            {reason: "it runs", pod: Pod{UID: "p"}},
		"Outdated":           {reason: "it runs what it was made with", pod: Pod{UID: "p", Outdated: true}},
		"Waiting":            {reason: "what it waits for may come", pod: Pod{UID: "p", Problem: "x"}},
		"OutdatedAndWaiting": {reason: "what it waits for is wanted no more", pod: Pod{UID: "p", Outdated: true, Problem: "x"}, want: []string{"db-0"}},
		"Answering":          {reason: "it serves all the same", pod: Pod{UID: "p", Outdated: true, Problem: "x"}, answers: true},
		"Ended":              {reason: "an evicted Pod stays for ever", pod: Pod{UID: "p", Ended: true, Problem: "x"}, want: []string{"db-0"}},
		"PutOff":             {reason: "a new Pod starts at once, and this one in some minutes", pod: Pod{UID: "p", Changing: true, PutOff: true, Problem: "x"}, want: []string{"db-0"}},
		"PutOffMemory":       {reason: "its data would be gone with it", ephemeral: true, pod: Pod{UID: "p", Changing: true, PutOff: true, Problem: "x"}},
		"EndedAndGoing":      {reason: "a user has deleted it already", pod: Pod{UID: "p", Ended: true, Problem: "x", Terminating: true}},
		"EndedDoomed":        {reason: "its volume goes with it", doomed: true, pod: Pod{UID: "p", Ended: true, Problem: "x"}},
		"EndedMemory":        {reason: "its data is gone with it, and must not be hidden by a new one", ephemeral: true, pod: Pod{UID: "p", Ended: true, Problem: "x"}},
		"EndedMemoryUnused":  {reason: "nothing was ever on it", ephemeral: true, pod: Pod{UID: "p", Ended: true, NeverRan: true, Problem: "x"}, want: []string{"db-0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := Instance{Name: "db-0", Pod: tc.pod, Volume: Volume{UID: "v", Terminating: tc.doomed}}
			if tc.answers {
				i.Endpoint.MemberID = 1
			}
			step, ok := recreateStuckPod(Desired{Ephemeral: tc.ephemeral}, Observed{Instances: []Instance{i}})
			if diff := cmp.Diff(tc.want, step.Members); diff != "" || ok != (tc.want != nil) {
				t.Errorf("%s: %t, -want +got:\n%s", tc.reason, ok, diff)
			}
		})
	}
}
