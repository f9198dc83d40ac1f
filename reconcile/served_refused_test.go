package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// TestRefused goes from a world in which a member has no Pod, and the API server has refused one,
// to the step and what is written.
func TestRefused(t *testing.T) {
	t.Parallel()
	const said = "the API server refuses what the spec asks for: no PriorityClass"
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-0", nil)
	refusal.ErrStatus.Message = "no PriorityClass"
	status := write{Verb: "apply", Kind: "status"}
	claim := write{"apply", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}
	created := write{"apply", "Pod", "db-0", "", "1"}
	const long, justNow = time.Hour, time.Second // ago that its creation was refused first
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
		ago    time.Duration // 0: it was not tried
		of     func(*world)  // what it was made of then, where that is not what it is made of now
		told   bool          // the condition Stalled speaks of a refusal, and has for an hour
		want   result
	}{
		"Changing": {
			reason: "it is rolled back, and its next Pod is made of what it has served with", given: []func(*world){changing}, ago: long,
			want: result{Action: membership.PutBack, Writes: []write{status, status, claim}, Failed: "db-0: with the new spec.options it has no Pod: " + said},
		},
		"ChangingForAMoment": {
			reason: "a quota may be counted late", given: []func(*world){changing}, ago: justNow,
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ChangingOfEarlierSpec": {
			reason: "what was refused before is nothing of this", given: []func(*world){changing}, ago: long, of: func(*world) {},
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ChangingNeverTried": {
			reason: "what is refused for long is something else: its Pod was never asked for", given: []func(*world){changing}, told: true,
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ServedNeverTried": {
			reason: "its Pod is gone since a moment ago, and a change is refused for long", given: []func(*world){other}, told: true,
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ChangingMended": {
			reason: "the spec asks for something else by now, which was not tried",
			given:  []func(*world){changing, func(w *world) { w.cluster.Spec.Options = nil }}, ago: justNow,
			want: result{Action: membership.PutBack, Writes: []write{status, claim}},
		},
		"ServedMended": {
			reason: "what it has served with cannot be had any more, and the spec asks for something else", given: []func(*world){other}, ago: long,
			want: result{Action: membership.Start, Writes: []write{claim}, Next: "3.6.16", NextWith: otherNext, Changed: true},
		},
		"ServedForAMoment": {
			reason: "it may be had again in a moment", given: []func(*world){other}, ago: justNow,
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"ServedGivenUp": {
			reason: "what the spec asks for does not work either", given: []func(*world){other, given}, ago: long,
			want: result{Action: membership.Start, Writes: []write{created}},
		},
		"Served": {
			reason: "the spec asks for nothing else", ago: long,
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
			of := tc.of
			if of != nil {
				of(&w)
			}
			before, _ := made(w.cluster, w.claims, membership.Instance{Name: "db-0", Volume: volume(w.cluster, w.claims["db-0"])})
			for _, given := range tc.given {
				given(&w)
			}
			if of == nil {
				before, _ = made(w.cluster, w.claims, membership.Instance{Name: "db-0", Volume: volume(w.cluster, w.claims["db-0"])})
			}
			if tc.told {
				w.cluster.Status.Conditions = []metav1.Condition{{
					Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonRefused, Message: said,
					ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
				}}
			}
			w.address()
			w.managed()
			s := newStub(t, nil, w.objects()...)
			s.Dial, s.StallAfter = w.dial(nil), time.Minute
			if tc.ago != 0 {
				for ago := tc.ago; ago > 0; ago -= time.Minute { // it was tried again and again
					s.refusedPods.remember(w.cluster, "db-0", madeOf(before, w.claims["db-0"]), refusal, time.Now().Add(-ago))
				}
			}
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
