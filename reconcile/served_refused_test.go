package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// TestRefused goes from a world in which a member has no Pod, and the API server has refused one,
// to the step and what is written.
func TestRefused(t *testing.T) {
	t.Parallel()
	const said = "the API server refuses what the spec asks for: no PriorityClass"
	status := write{Verb: "apply", Kind: "status"}
	claim := write{"apply", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}
	created := write{"apply", "Pod", "db-0", "", "1"}
	since := func(ago time.Duration, generation int64) func(*world) {
		return func(w *world) {
			w.cluster.Status.Conditions = []metav1.Condition{{
				Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonRefused, Message: said,
				ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(time.Now().Add(-ago)),
			}}
		}
	}
	long, justNow := since(time.Hour, 7), since(time.Second, 7)
	changing := func(w *world) {
		other(w)
		w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", otherNext
	}
	type result struct {
		Action         membership.Action
		Writes         []write
		Next, NextWith string
		Failed         string
		Changed        bool // it looks again
	}
	cases := map[string]struct {
		reason string
		given  []func(*world)
		want   result
	}{
		"Changing": {
			reason: "it is rolled back, and its next Pod is made of what it has served with", given: []func(*world){changing, long},
			want: result{Action: membership.PutBack, Writes: []write{status, status, claim}, Failed: "db-0: with the new spec.options it has no Pod: " + said},
		},
		"ChangingForAMoment": {
			reason: "a quota may be counted late", given: []func(*world){changing, justNow},
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ChangingOfEarlierSpec": {
			reason: "what was refused before is nothing of this", given: []func(*world){changing, since(time.Hour, 6)},
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ChangingMended": {
			reason: "the spec asks for something else by now, which was not tried",
			given:  []func(*world){changing, justNow, func(w *world) { w.cluster.Spec.Options = nil }},
			want:   result{Action: membership.PutBack, Writes: []write{status, claim}},
		},
		"ServedMended": {
			reason: "what it has served with cannot be had any more, and the spec asks for something else", given: []func(*world){other, long},
			want: result{Action: membership.Start, Writes: []write{claim}, Next: "3.6.16", NextWith: otherNext, Changed: true},
		},
		"ServedForAMoment": {
			reason: "it may be had again in a moment", given: []func(*world){other, justNow},
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ServedGivenUp": {
			reason: "what the spec asks for does not work either", given: []func(*world){other, long, given},
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"Served": {
			reason: "the spec asks for nothing else", given: []func(*world){long},
			want: result{Action: membership.Start, Writes: []write{created}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			delete(w.pods, "db-0")
			delete(w.asked.endpoints, "db-0")
			for _, given := range tc.given {
				given(&w)
			}
			w.address()
			w.managed()
			s := newStub(t, nil, w.objects()...)
			s.Dial, s.StallAfter = w.dial(nil), time.Minute
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			err = s.take(t.Context(), w.cluster.DeepCopy(), seen, step)
			got := result{Action: step.Action, Writes: s.writes, Changed: errors.Is(err, apply.ErrChanged)}
			if err != nil && !got.Changed {
				t.Fatal(err)
			}
			marks := s.marks["PersistentVolumeClaim db-0"]
			got.Next, got.NextWith = marks[api.AnnotationNext], marks[api.AnnotationNextWith]
			if len(s.status) > 0 && s.status[0].FailedChange != nil {
				got.Failed = s.status[0].FailedChange.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, step, diff)
			}
		})
	}
}
