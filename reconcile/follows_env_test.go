//go:build env

package reconcile_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/reconcile"
)

// TestFollows: while a change of the spec is refused, by whatever, labels and annotations follow on
// all that the cluster has, and no member is disturbed for it.
func TestFollows(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		signed  bool // a policy takes no image of etcd 3.7
		change  func(*api.EtcdClusterSpec)
		stalled string
	}{
		"VersionNotAllowed": {
			reason: "there is no way to that version", stalled: api.ReasonVersionNotAllowed,
			change: func(s *api.EtcdClusterSpec) { s.Version = "3.5.20" },
		},
		"InvalidSpec": {
			reason: "no Pod can be made of it", stalled: api.ReasonInvalidSpec,
			change: func(s *api.EtcdClusterSpec) {
				s.Version, s.Options = etcd37, &api.Options{Flags: map[string]string{"experimental-compaction-batch-limit": "100"}}
			},
		},
		"Refused": {
			reason: "the API server takes no such Pod", stalled: api.ReasonRefused,
			signed: true,
			change: func(s *api.EtcdClusterSpec) { s.Version = etcd37 },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 3)
			s.born(c)
			if tc.signed {
				s.denyImage(etcd37)
			}
			before, restarts := s.lives(c)
			s.change(c, func() { tc.change(&c.Spec) })
			s.stalled(c, tc.stalled)
			s.follow(c)
			s.stalled(c, tc.stalled)
			after, now := s.lives(c)
			for member := range before {
				if before[member] != after[member] || restarts[member] != now[member] {
					t.Errorf("%s: %s was disturbed", tc.reason, member)
				}
			}
		})
	}
}

// TestFollowsQueued: so they do while a cluster waits for its turn, which it keeps waiting for. A
// preview tells what comes then.
func TestFollowsQueued(t *testing.T) {
	pull := &slowPull{asked: make(chan struct{}), over: make(chan struct{})}
	s := newStage(t, images(pull.dir))
	t.Cleanup(func() { close(pull.over) }) // before the hostlet is stopped, which waits for it
	s.operate(oneAtATime)
	first, c := s.cluster("first", 1), s.cluster("db", 3)
	s.create(first)
	s.ready(first)
	s.born(c)
	s.change(first, func() { first.Spec.Version = slowVersion })
	select {
	case <-pull.asked:
	case <-time.After(patience):
		t.Fatal("the first is not changed")
	}
	before, restarts := s.lives(c)
	s.change(c, func() { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} })
	queued := func() {
		t.Helper()
		s.await(c, "queued", func() bool {
			ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
			return ready != nil && ready.Reason == api.ReasonQueued && ready.ObservedGeneration == c.Generation
		})
	}
	queued()
	message := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady).Message
	told, all := s.preview(c), map[string]reconcile.Effect{"db-0": reconcile.EffectRecreated, "db-1": reconcile.EffectRecreated, "db-2": reconcile.EffectRecreated}
	if told.Step == nil || !strings.HasSuffix(message, "; then "+told.Step.Message) || !maps.Equal(effects(told), all) {
		t.Errorf("a preview does not tell what comes when it is its turn, which is %q: %+v", message, told)
	}
	s.follow(c)
	queued()
	if after, now := s.lives(c); !maps.Equal(before, after) || !maps.Equal(restarts, now) {
		t.Errorf("members were disturbed: %v, restarts %v; before: %v, %v", after, now, before, restarts)
	}
}

// follow gives a cluster labels and annotations, and waits until all that it has got them.
func (s *stage) follow(c *api.EtcdCluster) {
	s.Helper()
	s.change(c, func() {
		c.Spec.AdditionalMetadata = &api.Metadata{Labels: map[string]string{injected: "true"}, Annotations: map[string]string{injected: "true"}}
	})
	ours := []client.ListOption{client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}}
	late := time.After(patience)
	for lacking := []string{""}; len(lacking) > 0; {
		lacking = nil
		for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
			s.must(s.List(s.Context(), list, ours...))
			if meta.LenList(list) == 0 {
				s.Fatalf("no %T is there", list)
			}
			s.must(meta.EachListItem(list, func(item runtime.Object) error {
				if o := item.(client.Object); o.GetLabels()[injected] != "true" || o.GetAnnotations()[injected] != "true" {
					lacking = append(lacking, fmt.Sprintf("%T %s", o, o.GetName()))
				}
				return nil
			}))
		}
		select {
		case <-late:
			s.Fatalf("%s did not follow: %s", strings.Join(lacking, ", "), contract.Describe(c))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
