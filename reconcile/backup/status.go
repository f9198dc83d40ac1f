package backup

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// status is what users see of a backup of which this step was decided.
func status(o Observed, step Step) api.EtcdBackupStatus {
	b := o.Backup
	s := *b.Status.DeepCopy()
	s.ObservedGeneration = b.Generation
	if step.Action == Begin {
		if s.Store == nil {
			s.Store = b.StoreFor(o.Cluster).DeepCopy()
			s.ClusterID = o.Cluster.Status.ClusterID
		}
		s.Name = snapshotName(b)
		if plainLost(b) {
			forgetStored(&s)
		}
		if s.SHA256 == "" {
			s.Encryption = b.EncryptionFor(o.Cluster).DeepCopy()
		}
		s.Attempt++
	}
	if step.Action == GiveUp {
		s.Failure = &api.BackupFailure{Reason: step.Reason, Message: step.Message}
	}
	set := func(kind string, value bool) {
		state := metav1.ConditionFalse
		if value {
			state = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: state, Reason: step.Reason, Message: step.Message, ObservedGeneration: b.Generation,
		})
	}
	only := func(kind string, holds bool) {
		if holds {
			set(kind, true)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	ready := step.Reason == api.ReasonVerified
	stalled := step.Action == Stall || step.Action == GiveUp || step.Action == RetryDeletion
	set(api.ConditionReady, ready)
	only(api.ConditionStalled, stalled)
	only(api.ConditionReconciling, !ready && !stalled)
	return s
}

// forgetStored makes room for another snapshot. The one that was stored stays in the store, and is
// deleted with the EtcdBackup, where that is wanted.
func forgetStored(s *api.EtcdBackupStatus) {
	s.Location, s.Member, s.EtcdVersion, s.Revision = "", "", "", 0
	s.Size, s.StoredSize, s.SHA256 = 0, 0, ""
	s.StartedAt, s.TakenAt = nil, nil
}

func isStalled(b *api.EtcdBackup) bool {
	return meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionStalled)
}

// instant is a time as the API has it, in whole seconds; nil for none.
func instant(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t.Truncate(time.Second)))
}
