package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "quorate.dev/api/v1alpha1"
)

// TestDeadNode: the node of a Pod has died. Kubernetes has deleted the Pod, and no kubelet says
// that it has ended; its Job has FailureTarget, and never Failed.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	const (
		out   = "; to let the EtcdBackup go and leave the snapshot in the store, set spec.deletionPolicy to Retain"
		hangs = "Pod nightly-x was deleted, and its node worker-1 does not say that it has ended. If that node is off and does not come back: kubectl delete node worker-1. If it is only off for now: kubectl delete pod nightly-x --namespace team-a --force"
	)
	deletion := func(o *Observed) { o.Delete = &Job{Name: "nightly-delete", UID: "d", Created: born} }
	cases := map[string]struct {
		reason string
		args   func(*Observed)
		job    string
		since  time.Duration // that the Pod was to have ended
		phase  corev1.PodPhase
		want   Step
	}{
		"Ending": {
			reason: "A Pod that was deleted may take a while",
			args:   begun, job: "nightly", since: patience - time.Second, phase: corev1.PodRunning,
			want: Step{Action: Wait, Reason: api.ReasonSaving, Message: "taking a snapshot of EtcdCluster db", After: whileRunning},
		},
		"Hangs": {
			reason: "The attempt counts as failed, like that of a Pod which was evicted",
			args:   begun, job: "nightly", since: patience, phase: corev1.PodRunning,
			want: Step{Action: Wait, Reason: api.ReasonRetrying, Message: "no snapshot was taken; attempt 1 of 5 failed, the next one begins at 2026-11-25T07:52:10Z: " + hangs, After: 10 * time.Second},
		},
		"Again": {
			reason: "The next attempt runs on another node, and stores under another name",
			args:   begun, job: "nightly", since: time.Hour, phase: corev1.PodRunning,
			want: Step{Action: Begin, Reason: api.ReasonRetrying, Message: "no snapshot was taken; beginning attempt 2 of 5"},
		},
		"FiveTimes": {
			reason: "It is given up, and the schedule makes the next one",
			args:   all(begun, func(o *Observed) { o.Backup.Status.Attempt = 5 }), job: "nightly", since: time.Hour, phase: corev1.PodRunning,
			want: Step{Action: GiveUp, Reason: api.ReasonTerminating, Message: "no snapshot was taken: " + hangs + "; when that is mended, make another EtcdBackup: this one is not tried again"},
		},
		"Deleted": {
			reason: "The Pod may still store something: the EtcdBackup waits, and says for what",
			args:   all(begun, deleted, func(o *Observed) { o.Take = nil }), job: "nightly", since: time.Hour, phase: corev1.PodRunning,
			want: Step{Action: Stall, Reason: api.ReasonTerminating, Message: "waiting for the Pods of its Jobs to end: " + hangs + out, After: betweenDeletions},
		},
		"DeletedEnded": {
			reason: "A Pod that has ended stores nothing",
			args:   all(begun, deleted, func(o *Observed) { o.Take = nil }), job: "nightly", since: time.Hour, phase: corev1.PodFailed,
			want: Step{Action: Delete, Reason: api.ReasonDeleting, Message: "deleting the snapshot in the store"},
		},
		"Deleting": {
			reason: "What deletes is on a dead node: it is tried again on another one",
			args:   all(verified, deleted, deletion, func(o *Observed) { o.Take = nil }), job: "nightly-delete", since: patience, phase: corev1.PodRunning,
			want: Step{
				Action: Stall, Reason: api.ReasonDeletionFailed, After: betweenDeletions,
				Message: "the snapshot cannot be deleted, and it is tried again, after at most an hour: " + hangs + out,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			o.Take = &Job{Name: "nightly", UID: "j", Created: born}
			tc.args(&o)
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "nightly-x", Namespace: "team-a", DeletionTimestamp: instant(o.Now.Add(-tc.since)), DeletionGracePeriodSeconds: new(int64(30)),
				OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: tc.job, UID: map[string]types.UID{"nightly": "j", "nightly-delete": "d"}[tc.job], Controller: new(true)}},
			}}
			pod.Spec.NodeName, pod.Status.Phase = "worker-1", tc.phase
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "save", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			o.hear([]corev1.Pod{pod})
			if diff := cmp.Diff(tc.want, Plan(o)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
