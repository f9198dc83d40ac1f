//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile"
)

// TestRefusedPause: a change that the API server refuses, in a dry run or in earnest, costs few
// writes. Where the dry run is refused, the status says so all the time, and no member leaves the
// Service for clients. A spec that is reverted is true again at once, with the same Pods.
func TestRefusedPause(t *testing.T) {
	t.Parallel()
	options := func(s *api.EtcdClusterSpec) { s.Options = &api.Options{SnapshotCount: new(int64(5000))} }
	version := func(s *api.EtcdClusterSpec) { s.Version = etcd37 }
	cases := map[string]struct {
		reason string
		denies []string // writes, as "<verb> <kind>"; of claims those that announce a change
		change func(*api.EtcdClusterSpec)
		hints  bool // the dry run tells
		writes int  // at most, in the watched time
	}{
		"Deletion":          {reason: "no Pod may be deleted", denies: []string{"try Pod", "delete Pod"}, change: options, hints: true, writes: 6},
		"Claim":             {reason: "the change cannot be announced", denies: []string{"try PersistentVolumeClaim", "apply PersistentVolumeClaim"}, change: version, hints: true, writes: 8},
		"DeletionInEarnest": {reason: "a webhook lets each dry run pass", denies: []string{"delete Pod"}, change: options, writes: 12},
		"ClaimInEarnest":    {reason: "so it does here", denies: []string{"apply PersistentVolumeClaim"}, change: version, writes: 12},
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.wire = &wire{}
			policy := &denier{denies: tc.denies}
			s.operate(func(r *reconcile.Reconciler) { policy.Client, r.Client = r.Client, policy })
			c := s.cluster("db", 3)
			kept := s.born(c)
			s.awaitLed(c, "db-0", "db-1", "db-2")
			pods, restarts := s.lives(c)
			var mu sync.Mutex
			out := map[string]bool{}
			s.eachPod(func(_ context.Context, pod *corev1.Pod) {
				mu.Lock()
				defer mu.Unlock()
				if pod.Labels[api.LabelClients] == api.ClientsOut {
					out[pod.Name] = true
				}
			})
			before := *c.Spec.DeepCopy()
			policy.enforce(true)
			s.change(c, func() { tc.change(&c.Spec) })
			s.stalledWith(c, api.ReasonRefused, "denied by a policy")
			had := len(s.wire.writes()) + policy.denied()
			const watched = 15 * time.Second // at rest the next look comes after ten
			pace := time.NewTicker(100 * time.Millisecond)
			defer pace.Stop()
			for since := time.Now(); time.Since(since) < watched; <-pace.C {
				s.must(s.Get(s.Context(), client.ObjectKeyFromObject(c), c))
				if tc.hints && !is(c, api.ConditionStalled, metav1.ConditionTrue) { // else what was announced is taken back once
					t.Fatalf("%s: the status tells no more that the change is refused: %s", tc.reason, contract.Describe(c))
				}
			}
			wrote := len(s.wire.writes()) + policy.denied() - had
			t.Logf("%s: %d writes in %s", tc.reason, wrote, watched)
			if wrote > tc.writes {
				t.Errorf("%s: %d writes in %s, want %d at most: %v", tc.reason, wrote, watched, tc.writes, s.wire.writes()[len(s.wire.writes())-min(20, len(s.wire.writes())):])
			}
			s.stalledWith(c, api.ReasonRefused, "denied by a policy")
			mu.Lock()
			if tc.hints && len(out) > 0 {
				t.Errorf("%s: %v were out of the Service for clients", tc.reason, slices.Sorted(maps.Keys(out)))
			}
			mu.Unlock()
			if policy.denied() == 0 {
				t.Error("void: nothing was refused")
			}
			s.change(c, func() { c.Spec = before })
			s.ready(c)
			policy.enforce(false)
			samePods, now := s.lives(c)
			if !maps.Equal(pods, samePods) || !maps.Equal(restarts, now) {
				t.Errorf("%s: a member was recreated or restarted: %v, %v", tc.reason, samePods, now)
			}
			s.awaitLed(c, "db-0", "db-1", "db-2")
			s.settled(c, kept)
		})
	}
}

// denier is a client of an API server that refuses some writes of the operator alone. A real policy
// would refuse the kubelets' as well.
type denier struct {
	client.Client
	denies []string

	mu       sync.Mutex
	enforced bool
	times    int
}

func (p *denier) enforce(enforced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enforced = enforced
}

// denied is how often something was.
func (p *denier) denied() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.times
}

func (p *denier) admit(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	verb, object, _ := strings.Cut(what, ".")
	kind, name, _ := strings.Cut(object, ".")
	if !p.enforced || !slices.Contains(p.denies, verb+" "+kind) {
		return nil
	}
	p.times++
	return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, name, errors.New("denied by a policy"))
}

func (p *denier) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	verb := "apply"
	if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 {
		verb = "try"
	}
	claim, isClaim := o.(*corev1ac.PersistentVolumeClaimApplyConfiguration)
	if !isClaim || claim.Annotations[api.AnnotationNext] != "" {
		if err := p.admit(signature(verb, o)); err != nil {
			return err
		}
	}
	return p.Client.Apply(ctx, o, opts...)
}

func (p *denier) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	verb := "delete"
	if len((&client.DeleteOptions{}).ApplyOptions(opts).DryRun) > 0 {
		verb = "try"
	}
	if err := p.admit(effectOn(verb, o)); err != nil {
		return err
	}
	return p.Client.Delete(ctx, o, opts...)
}
