package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/membership"
	"quorate.dev/render"
)

func TestPodFacts(t *testing.T) {
	overdue := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	created := metav1.NewTime(overdue.Add(-24 * time.Hour))
	crashed := corev1.ContainerStatus{Name: render.Container, RestartCount: 1, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1},
	}}
	unpulled := corev1.ContainerStatus{Name: render.Container, Image: "x", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"},
	}}
	ready := func(since time.Time) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	}
	cases := map[string]struct {
		reason string
		mutate func(*corev1.Pod)
		want   membership.Pod
	}{
		"Fresh": {
			reason: "it was not looked at yet",
			mutate: func(*corev1.Pod) {},
			want:   membership.Pod{UID: "pod", NeverRan: true},
		},
		"Terminating": {
			reason: "it is going",
			mutate: func(p *corev1.Pod) { p.DeletionTimestamp = &created },
			want:   membership.Pod{UID: "pod", NeverRan: true, Terminating: true},
		},
		"NeverPulled": {
			reason: "no process has ever run in it, and it has had time enough",
			mutate: func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{unpulled} },
			want:   membership.Pod{UID: "pod", NeverRan: true, ImageUnavailable: true, Problem: "cannot pull the image x", Overdue: true},
		},
		"Evicted": {
			reason: "it stays as it is until a user deletes it",
			mutate: func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: ephemeral-storage."
				p.Status.ContainerStatuses = []corev1.ContainerStatus{crashed}
			},
			want: membership.Pod{
				UID: "pod", Ended: true, Problem: "has ended (Evicted): The node was low on resource: ephemeral-storage.",
				Overdue: true, Damaged: true, Forsaken: true,
			},
		},
		"Succeeded": {
			reason: "etcd never ends by itself, but a node that shuts down may say so",
			mutate: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
			want:   membership.Pod{UID: "pod", NeverRan: true, Ended: true, Problem: "has ended (Succeeded)", Overdue: true},
		},
		"JustCrashed": {
			reason: "an old Pod that was ready until a moment ago has not had time enough",
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = []corev1.ContainerStatus{crashed}, ready(overdue.Add(time.Second))
			},
			want: membership.Pod{UID: "pod", Problem: "exited with code 1", Damaged: true},
		},
		"CrashedForLong": {
			reason: "one that has not been ready for so long has",
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = []corev1.ContainerStatus{crashed}, ready(overdue.Add(-time.Second))
			},
			want: membership.Pod{UID: "pod", Problem: "exited with code 1", Overdue: true, Damaged: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				UID: "pod", Name: "db-0", CreationTimestamp: created, Annotations: fenced(c, "db-0"),
			}}
			tc.mutate(pod)
			got := podFacts(c, pod, limits{now: overdue, stallBefore: overdue, replaceBefore: overdue.Add(-time.Hour)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
