package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// attempted makes tries, and is why those show nothing that do not.
func attempted(t *testing.T, seen *observed, tries []try) error {
	t.Helper()
	var all []error
	for _, m := range askAll(t.Context(), seen, tries) {
		all = append(all, m.why)
	}
	return errors.Join(all...)
}

// takes is how long the API server takes for a dry run of each kind, and for the list of quotas.
func (s *stub) takes(t *testing.T, of func(kind string) time.Duration) {
	t.Helper()
	inner, ok := s.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the fake client does not watch")
	}
	answer := func(ctx context.Context, kind string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(of(kind)):
			return nil
		}
	}
	slow := interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, of client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 {
				d, err := decode(o)
				if err := errors.Join(err, answer(ctx, d.Kind)); err != nil {
					return err
				}
			}
			return of.Apply(ctx, o, opts...)
		},
		List: func(ctx context.Context, of client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, quotas := list.(*corev1.ResourceQuotaList); quotas {
				if err := answer(ctx, "ResourceQuota"); err != nil {
					return err
				}
			}
			return of.List(ctx, list, opts...)
		},
	})
	s.Client, s.Reader = slow, slow
}

// toGrow is the world in which volumes are too small, and their members are to be replaced where
// they cannot grow.
func (w world) toGrow() {
	for _, claim := range w.claims {
		claim.Status.Phase = corev1.ClaimBound
	}
	w.cluster.Spec.Storage.Size, w.cluster.Spec.Storage.ChangePolicy = resource.MustParse("2Gi"), api.ChangeReplace
}

// TestTries: the tries of a look take as long as one of them, and which was answered first makes no
// difference.
func TestTries(t *testing.T) {
	t.Parallel()
	const silent = "the API server did not say whether it accepts what the new members need; it is asked again"
	each := func(takes time.Duration) func(string) time.Duration {
		return func(string) time.Duration { return takes }
	}
	only := func(kind string, takes time.Duration) func(string) time.Duration {
		return func(of string) time.Duration {
			if of == kind {
				return takes
			}
			return 0
		}
	}
	refuse := func(kinds ...string) func(write) error {
		return func(w write) error {
			for _, kind := range kinds {
				if w.Verb == "try" && w.Kind == kind && w.Name == "db-3" {
					return forbiddenBy(kind, w.Name, "by policy")
				}
			}
			return nil
		}
	}
	type result struct {
		Step    membership.Action
		Phase   api.RestorePhase
		Message string
		Took    time.Duration
	}
	cases := map[string]struct {
		reason string
		given  func(world)
		takes  func(kind string) time.Duration
		refuse func(write) error
		want   result
	}{
		"Slow": {
			reason: "three tries of two seconds are answered in time", takes: each(2 * time.Second),
			want: result{Step: membership.Replace, Phase: api.RestorePending, Took: 2 * time.Second},
		},
		"SlowGrowth": {
			reason: "so are those beside them that are for something else", given: world.toGrow, takes: each(2 * time.Second),
			want: result{Step: membership.Replace, Phase: api.RestorePending, Took: 2 * time.Second},
		},
		"Hangs": {
			reason: "one that is not answered holds it up", takes: only("Pod", 9*time.Second),
			want: result{Step: membership.None, Phase: api.RestorePending, Message: silent, Took: tryFor},
		},
		"QuotasHang": {
			reason: "so does a list", takes: only("ResourceQuota", 9*time.Second),
			want: result{Step: membership.None, Phase: api.RestorePending, Message: silent, Took: tryFor},
		},
		"RefusedLater": {
			reason: "the volume is told first", takes: only("PersistentVolumeClaim", time.Second), refuse: refuse("PersistentVolumeClaim", "Pod"),
			want: result{
				Step: membership.None, Phase: api.RestoreBlocked, Took: time.Second,
				Message: `the API server refuses what the new members need: try to create PersistentVolumeClaim db-3: PersistentVolumeClaim "db-3" is forbidden: by policy`,
			},
		},
		"RefusedAtOnce": {
			reason: "so it is where it is answered first", takes: only("Pod", time.Second), refuse: refuse("PersistentVolumeClaim", "Pod"),
			want: result{
				Step: membership.None, Phase: api.RestoreBlocked, Took: time.Second,
				Message: `the API server refuses what the new members need: try to create PersistentVolumeClaim db-3: PersistentVolumeClaim "db-3" is forbidden: by policy`,
			},
		},
		"RefusedBesideSilence": {
			reason: "a person can do something about a refusal", takes: only("PersistentVolumeClaim", 9*time.Second), refuse: refuse("Pod"),
			want: result{
				Step: membership.None, Phase: api.RestoreBlocked, Took: tryFor,
				Message: `the API server refuses what the new members need: try to create Pod db-3: Pod "db-3" is forbidden: by policy`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := serving(t)
				w.found()
				if tc.given != nil {
					tc.given(w)
				}
				w.address()
				s := newStub(t, tc.refuse, append(w.objects(), etcdRestore(), searching(t, w.cluster), searcher(0, manifestSaid))...)
				s.AgentImage, s.Dial = agentImage, w.dial(nil)
				s.StallAfter = time.Minute
				s.takes(t, tc.takes)
				begun := time.Now()
				seen, err := s.observe(t.Context(), w.cluster, s.Client)
				if err != nil {
					t.Fatal(err)
				}
				step := membership.Plan(desired(w.cluster), seen.Observed)
				restore := status(w.cluster, seen, step).Restore
				got := result{step.Action, restore.Phase, restore.Message, time.Since(begun)}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestSilenceLasts: what is told of a silence does not change with each look.
func TestSilenceLasts(t *testing.T) {
	t.Parallel()
	type look struct {
		after   time.Duration // the one before
		missing []unanswered
	}
	claim, pod := unanswered{"PersistentVolumeClaim db-3", errors.New("timeout")}, unanswered{"Pod db-3", errors.New("webhook")}
	again := unanswered{"Pod db-3", errors.New("webhook, request 4711")}
	const (
		ofPod  = "the API server does not answer for Pod db-3, and is asked again (dry run): webhook"
		ofBoth = "the API server does not answer for PersistentVolumeClaim db-3, Pod db-3, and is asked again (dry run): timeout"
	)
	cases := map[string]struct {
		reason string
		looks  []look
		want   []string
	}{
		"Short":     {reason: "an answer may be late", looks: []look{{0, []unanswered{pod}}, {59 * time.Second, []unanswered{pod}}}, want: []string{"", ""}},
		"Lasting":   {reason: "it is told, with the words of the first error", looks: []look{{0, []unanswered{pod}}, {time.Minute, []unanswered{again}}, {time.Second, []unanswered{again}}}, want: []string{"", ofPod, ofPod}},
		"Answered":  {reason: "then it begins again", looks: []look{{0, []unanswered{pod}}, {time.Minute, nil}, {time.Second, []unanswered{pod}}}, want: []string{"", "", ""}},
		"InTurns":   {reason: "each is missing in every other look", looks: []look{{0, []unanswered{pod}}, {30 * time.Second, []unanswered{claim}}, {30 * time.Second, []unanswered{pod}}, {30 * time.Second, []unanswered{claim}}}, want: []string{"", "", ofBoth, ofBoth}},
		"OneGoesOn": {reason: "the other one was answered for long enough", looks: []look{{0, []unanswered{claim, pod}}, {namedFor, []unanswered{pod}}, {time.Second, []unanswered{pod}}}, want: []string{"", ofBoth, ofPod}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s silences
			var got []string
			now := time.Unix(1000, 0)
			for _, look := range tc.looks {
				now = now.Add(look.after)
				got = append(got, s.lasting(types.NamespacedName{Name: "db"}, look.missing, time.Minute, now))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSilenceTold: where the API server does not answer dry runs for longer than StallAfter, the
// cluster and its restore say for what, once, and only as long as that is so.
func TestSilenceTold(t *testing.T) {
	t.Parallel()
	const (
		webhook  = `failed calling webhook "example.com"`
		generic  = "the API server did not say whether it accepts what the new members need; it is asked again"
		ofPod    = "the API server does not answer for Pod db-3, and is asked again (dry run): try to create Pod db-3: Internal error occurred: " + webhook
		ofVolume = "the API server does not answer for PersistentVolumeClaim db-0, and is asked again (dry run): try whether PersistentVolumeClaim db-0 can grow: Internal error occurred: " + webhook
		changes  = "recreating the Pod of db-0 (spec.storage.size), then db-2, db-1"
		begins   = "restoring snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) in place, as EtcdRestore back asks for: all members are stopped, and their volumes set aside"
	)
	type told struct{ Ready, Reconciling, Restore string }
	cases := map[string]struct {
		reason string
		given  func(world)
		of     string // what is not answered
		want   []told // what was written, in order
		then   told   // once it is answered
	}{
		"Restore": {
			reason: "it could not be begun", given: world.found, of: "Pod db-3",
			want: []told{{Ready: "True 3 healthy members", Restore: generic}, {Ready: "False " + ofPod, Reconciling: ofPod, Restore: ofPod}},
			then: told{Ready: "False " + begins, Reconciling: begins},
		},
		"Growth": {
			reason: "what is done meanwhile is told as well", given: world.toGrow, of: "PersistentVolumeClaim db-0",
			want: []told{{Ready: "False " + changes, Reconciling: changes}, {Ready: "False " + changes + "; " + ofVolume, Reconciling: changes + "; " + ofVolume}},
			then: told{Ready: "False " + changes, Reconciling: changes},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := serving(t)
				tc.given(w)
				for _, pod := range w.pods {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
				w.address()
				objects := w.objects()
				if w.cluster.Status.Restore != nil {
					objects = append(objects, etcdRestore(), searching(t, w.cluster), searcher(0, manifestSaid))
				}
				silent := true
				s := newStub(t, func(w write) error {
					if silent && w.Verb == "try" && w.Kind+" "+w.Name == tc.of {
						return apierrors.NewInternalError(errors.New(webhook))
					}
					return nil
				}, objects...)
				s.AgentImage, s.Dial, s.StallAfter = agentImage, w.dial(nil), time.Minute
				written := func() []told {
					var all []told
					for _, said := range s.status {
						ready, reconciling := said.Conditions[0], meta.FindStatusCondition(said.Conditions, api.ConditionReconciling)
						is := told{Ready: string(ready.Status) + " " + ready.Message}
						if reconciling != nil {
							is.Reconciling = reconciling.Message
						}
						if said.Restore != nil {
							is.Restore = said.Restore.Message
						}
						all = append(all, is)
					}
					s.status = nil
					return all
				}
				s.looks(t, 5*time.Minute)
				if diff := cmp.Diff(tc.want, written()); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
				silent = false
				s.looks(t, time.Nanosecond)
				then := written()
				if diff := cmp.Diff(tc.then, then[len(then)-1]); diff != "" {
					t.Errorf("%s: then: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// looks reconciles for so long, as often as each pass asks for. The API server keeps the status. A
// pass may fail: what a dry run asks for may not be answered in earnest either.
func (s *stub) looks(t *testing.T, long time.Duration) {
	t.Helper()
	key := client.ObjectKeyFromObject(newCluster())
	for until := time.Now().Add(long); time.Now().Before(until); {
		before := len(s.status)
		result, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			result.RequeueAfter = lastRetry // at most
		}
		if len(s.status) > before {
			c := &api.EtcdCluster{}
			if err := s.Client.Get(t.Context(), key, c); err != nil {
				t.Fatal(err)
			}
			c.Status = s.status[len(s.status)-1]
			if err := s.Client.Update(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if result.RequeueAfter < afterChange {
			t.Fatalf("it looks again after %s", result.RequeueAfter)
		}
		time.Sleep(result.RequeueAfter) //nolint:forbidigo // on a clock of the test
	}
}
