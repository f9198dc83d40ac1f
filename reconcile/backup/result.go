package backup

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// Result is what came of the Pod of a Job, as far as it has got.
type Result struct {
	// Manifest is of the snapshot that was stored; nil while none is.
	Manifest *podstatus.Manifest
	// Verified is when what is stored was found to be good; zero while it was not.
	Verified time.Time
	// Failure is why the Pod has failed; nil where it has not.
	Failure *api.BackupFailure
	// Pending is why the Pod cannot start, or go on; empty where it can.
	Pending string
	// Runs is whether it has not ended yet.
	Runs bool
}

// result reads the status of a Pod.
func result(pod *corev1.Pod) Result {
	r := Result{Runs: pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		ended := status.State.Terminated
		if ended == nil || status.Name == render.Container { // the etcd ends when the Pod does
			continue
		}
		said := podstatus.ResultOf(status.Name, ended)
		if said.Failure != nil {
			if r.Failure == nil {
				r.Failure = new(api.BackupFailure(*said.Failure))
			}
			continue
		}
		if status.Name == render.ContainerSave {
			r.Manifest = said.Manifest
		}
		if said.Verification != nil && isLast(pod, status.Name) {
			r.Verified = said.Verification.At
		}
	}
	switch {
	case r.Runs:
		r.Pending = podstatus.Pending(pod)
	case pod.Status.Phase == corev1.PodFailed && r.Failure == nil:
		r.Failure = &api.BackupFailure{
			Reason:  podstatus.Reason(pod.Status.Reason),
			Message: podstatus.Clause("the Pod has failed", pod.Status.Message),
		}
	}
	return r
}

// isLast: all that was to be done is done when this container has.
func isLast(pod *corev1.Pod, name string) bool {
	return len(pod.Spec.Containers) == 1 && pod.Spec.Containers[0].Name == name
}

// record takes what came of an attempt into the status. What another snapshot's agent says is not
// taken.
func record(s *api.EtcdBackupStatus, r Result) {
	if m := r.Manifest; m != nil && m.Name == s.Name && s.SHA256 == "" {
		s.Location = render.Location(s.Store, m.Object)
		s.ClusterID = cmp.Or(m.ClusterID, s.ClusterID)
		s.Member, s.EtcdVersion, s.Revision = m.Member, m.EtcdVersion, m.Revision
		s.Size, s.StoredSize, s.SHA256 = m.Size, m.StoredSize, m.SHA256
		s.StartedAt, s.TakenAt = instant(m.StartedAt), instant(m.TakenAt)
	}
	if !r.Verified.IsZero() && s.SHA256 != "" && s.VerifiedAt == nil {
		s.VerifiedAt = instant(r.Verified)
	}
}
