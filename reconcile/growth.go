package reconcile

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
)

// A claim that is asked to grow may never do so: its driver cannot, or hangs, or the file system
// grows only when the volume is mounted again. No time is written down for that; the claim tells
// how far it has come, and since when.

// grows reports whether a claim has been asked to grow, and has not got so far as the spec asks
// for. What a spec does not ask for any more is not waited for, though the claim may still grow.
func grows(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim) bool {
	has := claim.Status.Capacity.Storage()
	return claim.Status.Phase == corev1.ClaimBound && has.Cmp(*claim.Spec.Resources.Requests.Storage()) < 0 && has.Cmp(c.Spec.Storage.Size) < 0
}

// telling are the conditions that tell of a growth: how far it has come, and why it does not go on.
var telling = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// stuck is how far a claim has come that has come no further since before then, and what to do;
// empty for any other claim. A try that fails again is no progress: external-resizer writes the
// time of each try into the condition Resizing, and its error into events alone where that may pass
// (gRPC's ResourceExhausted, which a quota of the provider is).
func stuck(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, then time.Time) string {
	since := appliedAt(claim)
	said := []string{string(claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage])}
	mounts, tries, fails := false, false, false
	for _, condition := range claim.Status.Conditions {
		if condition.Status != corev1.ConditionTrue || !slices.Contains(telling, condition.Type) {
			continue
		}
		switch condition.Type {
		case corev1.PersistentVolumeClaimFileSystemResizePending:
			mounts = true
			if condition.LastTransitionTime.After(since) {
				since = condition.LastTransitionTime.Time
			}
		case corev1.PersistentVolumeClaimResizing:
			tries = true
		case corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
			fails = true
		}
		words := string(condition.Type)
		if condition.Message != "" {
			words += ": " + podstatus.FirstLine(condition.Message)
		}
		said = append(said, words)
	}
	if !grows(c, claim) || since.IsZero() || !since.Before(then) {
		return ""
	}
	said = slices.DeleteFunc(said, func(words string) bool { return words == "" })
	slices.Sort(said[min(1, len(said)):])
	words := "has " + claim.Status.Capacity.Storage().String() + " of " + claim.Spec.Resources.Requests.Storage().String()
	if len(said) > 0 {
		words += " (" + strings.Join(said, "; ") + ")"
	}
	switch claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return words + ", and its driver refuses to give it more: see the events of the claim"
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		mounts = true
	case corev1.PersistentVolumeClaimControllerResizeInProgress:
		tries = true
	}
	switch {
	case mounts:
		return words + ": where its driver lets no file system grow in use, delete the Pod, one member after the other, for the volume to be mounted again"
	case fails:
		return words + ": its driver has reported an error, and retries. The events of the claim say why, for example that a volume cannot be expanded while it is mounted"
	case tries:
		return words + ": its driver has reported neither success nor an error, and may be slow. The events of the claim say whether it retries, and why, for example a quota of the provider, or that a volume cannot be expanded while it is mounted"
	default:
		return words + ": see the events of the claim, and whether its driver runs (a CSI driver needs external-resizer)"
	}
}
