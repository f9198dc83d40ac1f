//go:build env

package reconcile_test

import (
	"fmt"
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
			s.change(c, func() {
				c.Spec.Metadata = &api.Metadata{Labels: map[string]string{injected: "true"}, Annotations: map[string]string{injected: "true"}}
			})
			s.stalled(c, tc.stalled)
			ours := []client.ListOption{client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}}
			late := time.After(patience)
			for lacking := []string{""}; len(lacking) > 0; {
				lacking = nil
				for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
					s.must(s.List(t.Context(), list, ours...))
					s.must(meta.EachListItem(list, func(item runtime.Object) error {
						if o := item.(client.Object); o.GetLabels()[injected] != "true" || o.GetAnnotations()[injected] != "true" {
							lacking = append(lacking, fmt.Sprintf("%T %s", o, o.GetName()))
						}
						return nil
					}))
				}
				select {
				case <-late:
					t.Fatalf("%s: %s did not follow: %s", tc.reason, strings.Join(lacking, ", "), contract.Describe(c))
				case <-time.After(100 * time.Millisecond):
				}
			}
			after, now := s.lives(c)
			for member := range before {
				if before[member] != after[member] || restarts[member] != now[member] {
					t.Errorf("%s: %s was disturbed", tc.reason, member)
				}
			}
		})
	}
}
