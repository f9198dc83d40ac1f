package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestGrowth: when a volume that was asked to grow is waited for, and when a person is to see to
// it.
func TestGrowth(t *testing.T) {
	t.Parallel()
	type growth struct {
		Growing bool
		Stuck   string
	}
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	says := func(kind corev1.PersistentVolumeClaimConditionType, message string, since time.Duration) corev1.PersistentVolumeClaimCondition {
		return corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: ago(since)}
	}
	asks := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	const (
		mount  = ": where its driver lets no file system grow in use, delete the Pod, one member after the other, for the volume to be mounted again"
		driver = ": see the events of the claim, and whether its driver runs (a CSI driver needs external-resizer)"
		tries  = ": its driver has reported neither success nor an error, and may be slow. The events of the claim say whether it retries, and why, for example a quota of the provider, or that a volume cannot be expanded while it is mounted"
		fails  = ": its driver has reported an error, and retries. The events of the claim say why, for example that a volume cannot be expanded while it is mounted"
		never  = ", and its driver refuses to give it more: see the events of the claim"
	)
	resizing := says(corev1.PersistentVolumeClaimResizing, "", 2*time.Minute)
	retried := says(corev1.PersistentVolumeClaimResizing, "", time.Second) // external-resizer dates it at each try
	pending := says(corev1.PersistentVolumeClaimFileSystemResizePending, "Waiting for user to (re-)start a pod to finish file system resize of volume on node.\nmore", 2*time.Minute)
	cases := map[string]struct {
		reason     string
		asked, has string
		spec       string
		applied    time.Duration // how long ago
		unknown    bool          // when it was applied is not known
		status     corev1.ClaimResourceStatus
		conditions []corev1.PersistentVolumeClaimCondition
		want       growth
	}{
		"Grown":      {reason: "it has what it was asked for", asked: "2Gi", has: "2Gi", spec: "2Gi", applied: time.Hour},
		"Asked":      {reason: "a driver takes its time", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: 59 * time.Second, want: growth{Growing: true}},
		"Unheard":    {reason: "nothing sees to it", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, want: growth{true, "has 1Gi of 2Gi" + driver}},
		"Timeless":   {reason: "since when is not known", asked: "2Gi", has: "1Gi", spec: "2Gi", unknown: true, want: growth{Growing: true}},
		"InProgress": {reason: "a driver hangs, or is slow: nothing tells that it has failed", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimControllerResizeInProgress, conditions: []corev1.PersistentVolumeClaimCondition{resizing}, want: growth{true, "has 1Gi of 2Gi (ControllerResizeInProgress; Resizing)" + tries}},
		"Retried":    {reason: "a quota of the provider is an error that passes, to external-resizer: only its events tell of it", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimControllerResizeInProgress, conditions: []corev1.PersistentVolumeClaimCondition{retried}, want: growth{true, "has 1Gi of 2Gi (ControllerResizeInProgress; Resizing)" + tries}},
		"RetriedOld": {reason: "before Kubernetes 1.34 only the condition tells that it tries", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, conditions: []corev1.PersistentVolumeClaimCondition{retried}, want: growth{true, "has 1Gi of 2Gi (Resizing)" + tries}},
		"Failing": {
			reason: "an error that is final, and may pass all the same, is a condition", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimControllerResizeInProgress,
			conditions: []corev1.PersistentVolumeClaimCondition{retried, says(corev1.PersistentVolumeClaimControllerResizeError, "failed to expand pvc with rpc error: code = Internal desc = no", time.Second)},
			want:       growth{true, "has 1Gi of 2Gi (ControllerResizeInProgress; ControllerResizeError: failed to expand pvc with rpc error: code = Internal desc = no; Resizing)" + fails},
		},
		"Begun": {reason: "a driver that has begun a moment after it was asked takes its time", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: 59 * time.Second, status: corev1.PersistentVolumeClaimControllerResizeInProgress, conditions: []corev1.PersistentVolumeClaimCondition{retried}, want: growth{Growing: true}},

		"NextStep": {reason: "it has come to the next step a moment ago", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, conditions: []corev1.PersistentVolumeClaimCondition{resizing, says(corev1.PersistentVolumeClaimFileSystemResizePending, "", time.Second)}, want: growth{Growing: true}},
		"Infeasible": {
			reason: "a driver tries again, and says the same", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimControllerResizeInfeasible,
			conditions: []corev1.PersistentVolumeClaimCondition{resizing, says(corev1.PersistentVolumeClaimControllerResizeError, "rpc error: code = OutOfRange desc = too large", time.Second)},
			want:       growth{true, "has 1Gi of 2Gi (ControllerResizeInfeasible; ControllerResizeError: rpc error: code = OutOfRange desc = too large; Resizing)" + never},
		},
		"NodeInfeasible": {reason: "so says the node", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimNodeResizeInfeasible, want: growth{true, "has 1Gi of 2Gi (NodeResizeInfeasible)" + never}},
		"NodePending":    {reason: "the node has yet to begin", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimNodeResizePending, want: growth{true, "has 1Gi of 2Gi (NodeResizePending)" + mount}},
		"FileSystem":     {reason: "an older cluster says it by its condition alone", asked: "2Gi", has: "1Gi", spec: "2Gi", applied: time.Hour, conditions: []corev1.PersistentVolumeClaimCondition{pending}, want: growth{true, "has 1Gi of 2Gi (FileSystemResizePending: Waiting for user to (re-)start a pod to finish file system resize of volume on node.)" + mount}},
		"Reverted":       {reason: "the spec does not ask for it any more", asked: "2Gi", has: "1Gi", spec: "1Gi", applied: time.Hour, status: corev1.PersistentVolumeClaimControllerResizeInfeasible},
		"RevertedPartly": {reason: "the spec asks for less, and for more than it has", asked: "3Gi", has: "1Gi", spec: "2Gi", applied: time.Second, want: growth{Growing: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.cluster.Spec.Storage.Size = resource.MustParse(tc.spec)
			claim := w.claims["db-0"]
			claim.Spec.Resources.Requests = asks(tc.asked)
			claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: asks(tc.has), Conditions: tc.conditions}
			if tc.status != "" {
				claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: tc.status}
			}
			if !tc.unknown {
				claim.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: api.Manager, Time: new(ago(tc.applied))}, {Manager: "csi", Time: new(ago(0))}}
			}
			r := &Reconciler{StallAfter: time.Minute}
			seen := facts(w.cluster, w.pods, w.claims, w.asked, r.limits(w.cluster, now))
			i, _ := seen.Instance("db-0")
			if diff := cmp.Diff(tc.want, growth{i.Volume.Growing, i.Volume.Stuck}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
