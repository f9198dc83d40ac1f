package reconcile

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRepairResources: a member whose data is in memory has used its memory up, and gets more where
// it is when the spec gives it more. Where the API server refuses that, it is not tried at each
// look.
func TestRepairResources(t *testing.T) {
	t.Parallel()
	memory := func(limit string) *api.Resources {
		return &api.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	}
	cases := map[string]struct {
		reason string
		refuse error
		want   []string // what the API server is asked for at two looks, by kind
	}{
		"Taken":   {reason: "it is asked for at each look until it shows", want: []string{"resize", "Pod", "resize", "Pod"}},
		"Refused": {reason: "a policy does not take it", refuse: apierrors.NewForbidden(corev1.Resource("pods"), "db-0", errors.New("by policy")), want: []string{"resize"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.alone()
			w.cluster.Spec.Storage.Medium = api.MediumMemory
			w.cluster.Spec.Resources = memory("64Mi")
			pod := w.pod("db-0")
			maps.Copy(pod.Annotations, w.claims["db-0"].Annotations)
			w.pods["db-0"], w.claims, w.asked = pod, nil, answers{}
			w.cluster.Spec.Resources = memory("128Mi")
			pod.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
				RestartCount: 3, State: waiting("CrashLoopBackOff", "back-off"), LastTerminationState: exited(137, "OOMKilled", ""),
			})
			w.address()
			w.managed()
			var asked []string
			s, seen := w.lookThrough(t, func(x write) error {
				if x.Verb == "apply" {
					asked = append(asked, x.Kind)
				}
				if x.Kind == "resize" {
					return tc.refuse
				}
				return nil
			})
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Repair || step.Change != membership.ChangeResources {
				t.Fatalf("%s: %s", tc.reason, step)
			}
			for range 2 {
				err := s.take(t.Context(), w.cluster.DeepCopy(), seen, step)
				s.refused.remember(w.cluster, step, err, time.Now())
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
