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

// inMemory is a cluster of one member with its data in memory, whose Pod was made with that limit
// of memory, and does not come up.
func inMemory(t *testing.T, limit string, status corev1.ContainerStatus) (world, *corev1.Pod) {
	w := serving(t)
	w.alone()
	w.cluster.Spec.Storage.Medium = api.MediumMemory
	w.cluster.Spec.Resources = memory(limit)
	pod := w.pod("db-0")
	maps.Copy(pod.Annotations, w.claims["db-0"].Annotations)
	w.pods["db-0"], w.claims, w.asked = pod, nil, answers{}
	pod.Status.ContainerStatuses = etcdStatus(status)
	w.address()
	return w, pod
}

func memory(limit string) *api.Resources {
	return &api.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
}

var starvedStatus = corev1.ContainerStatus{RestartCount: 3, State: waiting("CrashLoopBackOff", "back-off"), LastTerminationState: exited(137, "OOMKilled", "")}

// TestRepairInPlace: what of a corrected spec reaches a Pod that does not come up, and whose data
// is in memory.
func TestRepairInPlace(t *testing.T) {
	t.Parallel()
	unpulled := corev1.ContainerStatus{RestartCount: 1, State: waiting("ImagePullBackOff", "not found")}
	crashing := corev1.ContainerStatus{RestartCount: 3, State: waiting("CrashLoopBackOff", "back-off"), LastTerminationState: exited(2, "Error", "panic")}
	pending := func(reason string) func(*api.EtcdCluster, *corev1.Pod) {
		return func(c *api.EtcdCluster, pod *corev1.Pod) {
			c.Spec.Resources = memory("128Mi")
			has := corev1.ResourceRequirements{Limits: memory("64Mi").Limits}
			pod.Status.ContainerStatuses[0].Resources = &has
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: "node has no room"}}
		}
	}
	image := membership.Version{Major: 3, Minor: 6, Patch: 17}
	cases := map[string]struct {
		reason string
		limit  string
		status corev1.ContainerStatus
		change func(*api.EtcdCluster, *corev1.Pod)
		want   membership.Step
	}{
		"Memory": {
			reason: "it has used up what it had", limit: "64Mi", status: starvedStatus,
			change: func(c *api.EtcdCluster, _ *corev1.Pod) { c.Spec.Resources = memory("128Mi") },
			want:   membership.Step{Action: membership.Repair, Change: membership.ChangeResources},
		},
		"Deferred": {
			reason: "its node had no room for what it asked for, and less is asked for", limit: "64Gi", status: starvedStatus,
			change: pending(corev1.PodReasonDeferred),
			want:   membership.Step{Action: membership.Repair, Change: membership.ChangeResources},
		},
		"Infeasible": {
			reason: "its node never has room for what it asked for, and less is asked for", limit: "64Gi", status: starvedStatus,
			change: pending(corev1.PodReasonInfeasible),
			want:   membership.Step{Action: membership.Repair, Change: membership.ChangeResources},
		},
		"InfeasibleStill": {
			reason: "it is asked for already", limit: "64Gi", status: starvedStatus,
			change: func(c *api.EtcdCluster, pod *corev1.Pod) {
				pending(corev1.PodReasonInfeasible)(c, pod)
				c.Spec.Resources = memory("64Gi")
			},
			want: membership.Step{Action: membership.Stall},
		},
		"MemoryBesideOptions": {
			reason: "other options need a new Pod, and memory does not", limit: "64Mi", status: starvedStatus,
			change: func(c *api.EtcdCluster, _ *corev1.Pod) {
				c.Spec.Resources, c.Spec.Options = memory("128Mi"), &api.Options{SnapshotCount: new(int64(5000))}
			},
			want: membership.Step{Action: membership.Repair, Change: membership.ChangeResources},
		},
		"Patch": {
			reason: "the patch that it runs ends again and again", limit: "64Mi", status: crashing,
			change: func(c *api.EtcdCluster, _ *corev1.Pod) { c.Spec.Version = image.String() },
			want:   membership.Step{Action: membership.Repair, Change: membership.ChangeImage, Version: image},
		},
		"Repository": {
			reason: "its image is elsewhere", limit: "64Mi", status: unpulled,
			change: func(c *api.EtcdCluster, _ *corev1.Pod) {
				c.Spec.Image = &api.Image{Repository: "registry.example.com/etcd"}
			},
			want: membership.Step{Action: membership.Repair, Change: membership.ChangeImage},
		},
		"PullSecret": {
			reason: "a Pod gets no other pull secret in place", limit: "64Mi", status: unpulled,
			change: func(c *api.EtcdCluster, _ *corev1.Pod) {
				c.Spec.Image = &api.Image{PullSecrets: []api.SecretReference{{Name: "mirror"}}}
			},
			want: membership.Step{Action: membership.Stall},
		},
		"Unheard": {
			reason: "what its kubelet says is of the image before", limit: "64Mi", status: unpulled,
			change: func(c *api.EtcdCluster, pod *corev1.Pod) {
				c.Spec.Version, pod.Generation, pod.Status.ObservedGeneration = image.String(), 3, 2
			},
			want: membership.Step{Action: membership.Stall},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pod := inMemory(t, tc.limit, tc.status)
			w.managed()
			tc.change(w.cluster, pod)
			_, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			got := membership.Step{Action: step.Action, Change: step.Change}
			if tc.want.Version != (membership.Version{}) {
				got.Version = step.Version
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, step, diff)
			}
		})
	}
}

// TestRepairResources: a member whose data is in memory has used its memory up, and gets more where
// it is when the spec gives it more. Where the API server refuses that, it is not tried at each
// look.
func TestRepairResources(t *testing.T) {
	t.Parallel()
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
			w, _ := inMemory(t, "64Mi", starvedStatus)
			w.managed()
			w.cluster.Spec.Resources = memory("128Mi")
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
