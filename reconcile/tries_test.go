package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
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
